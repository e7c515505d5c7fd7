import { sha256Hex } from "../../kernel/digest.ts";
import { type EvidenceRecord, effects, eventKinds, recordSchema } from "../record.ts";
import { Breach } from "./breach.ts";
import { readCanonicalJson } from "./canonical-file.ts";
import type { Manifest } from "./manifest.ts";
import { count, digest, exactly, objectWith, oneOf, type Shape, text, time } from "./shape.ts";

export const recordFile = "records.jsonl";

/** A record with the digest of its exact bytes. */
export interface BundledRecord {
  readonly record: EvidenceRecord;
  readonly hash: string;
}

const newline = 0x0a;
const absent = exactly(undefined);
const evaluation = objectWith({ decision: text });
const approvalEvent = objectWith({
  event: text,
  id: text,
  session: text,
  scope: oneOf(absent, exactly("exact"), exactly("task")),
});
const otherKinds = eventKinds.filter((kind) => kind !== "genesis" && kind !== "approval");
const frame = {
  chain: text,
  prev_hash: digest,
  schema: exactly(recordSchema),
  seq: count,
  tenant: text,
  time,
  writer: objectWith({ epoch: count }),
} as const;
const step = {
  ...frame,
  action: objectWith({ arguments_digest: text, fingerprint: text, id: text, output_digest: oneOf(absent, text) }),
  approval: oneOf(absent, objectWith({ fingerprint: text, id: text, state: text })),
  session: objectWith({ id: text, index: count, prev_hash: digest }),
} as const;

/** What the rules will read of a record. A genesis is the first record of its chain, and only that. */
const recordShape: Shape = oneOf(
  objectWith({ ...step, kind: exactly("decision"), effect: oneOf(...effects.slice(0, 2).map(exactly)), evaluation }),
  objectWith({
    ...step,
    kind: exactly("outcome"),
    effect: oneOf(...effects.slice(2).map(exactly)),
  }),
  objectWith({ ...frame, kind: exactly("genesis"), detail: objectWith({}) }),
  objectWith({ ...frame, kind: exactly("approval"), detail: approvalEvent }),
  objectWith({ ...frame, kind: oneOf(...otherKinds.map(exactly)), detail: objectWith({}) }),
);

/**
 * Reads the records of a bundle, one on each line. Throws Breach for what is not a record in its canonical bytes, of
 * another tenant or chain, and `seq_gap` for numbers that do not rise. Says nothing of links, proofs and rules.
 */
export function readRecords(bytes: Uint8Array, manifest: Manifest): readonly BundledRecord[] {
  const records: BundledRecord[] = [];
  let before = -1;
  for (const line of splitLines(bytes)) {
    const record = readCanonicalJson<EvidenceRecord>(line, recordFile, recordShape);
    const place = { file: recordFile, seq: record.seq };
    if ((record.kind === "genesis") !== (record.seq === 0)) throw new Breach("bad_schema", place);
    if (record.seq <= before) throw new Breach("seq_gap", place);
    if (record.tenant !== manifest.tenant) throw new Breach("foreign_tenant", place);
    if (record.chain !== manifest.chain) throw new Breach("foreign_chain", place);
    before = record.seq;
    records.push({ record, hash: sha256Hex(line) });
  }
  return records;
}

function splitLines(bytes: Uint8Array): Uint8Array[] {
  const lines: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(newline, at);
    if (end === -1) throw new Breach("malformed", { file: recordFile });
    lines.push(bytes.subarray(at, end));
    at = end + 1;
  }
  return lines;
}
