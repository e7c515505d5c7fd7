/** The page a bundle carries about itself. */
export function readmeText(session: string): string {
  return `Evidence of one session: what an agent attempted, what was decided, and what came of it.

Session: ${session}

This file and everything beside it are untrusted until verified. Do not run anything from here. You need verify.py from
the gateway's project (sdk/evidence), python3 and openssl; and, from the operator and not from this archive, the first
public key of the tenant's chain ("gateway evidence keys"). With a copy of the witness's notes, cut tails, old copies
and second histories are found too.

  python3 verify.py bundle.tar --key <base64>
  python3 verify.py bundle.tar --key <base64> --witness <notes file>

Exit code 0: sound, and seen by the witness. 10: sound, on the operator's word. 20: too old. 30: the witness has seen
another history. 40: not sound. 50: something is missing.

records.jsonl       the records, byte for byte as the chain holds them
proofs.json         for each record, its inclusion proof (RFC 6962) in the checkpoint's tree
checkpoint.txt      the signed note (C2SP) over the whole chain
disclosures.json    the fields behind the records' digests, as the texts that were hashed; of withheld ones the hash only
consistency.json    the tree as a witness had last seen it, and the proof (RFC 6962) that it only grew since
manifest.json       the digests of these files, signed (DSSE)
`;
}
