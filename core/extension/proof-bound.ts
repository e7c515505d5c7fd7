import type { Bundle } from "@sigstore/bundle";

const mostProofs = 4;
const mostBytes = 16_384;
const mostEntryBytes = 65_536;
/** The library looks for this name in a log's address as a regular expression: with these characters it is none. */
const plainOrigin = /^[A-Za-z0-9._:/-]{1,256}$/;
const checkpointSigner = /\u2014 (\S+) /g;

/** Whether a bundle brings a time stamp or the entry of a log. */
export function hasProofs({ verificationMaterial: { tlogEntries, timestampVerificationData } }: Bundle): boolean {
  return tlogEntries.length > 0 || (timestampVerificationData?.rfc3161Timestamps.length ?? 0) > 0;
}

/** Whether its time stamps and log entries are few and small enough to be looked into. */
export function areBounded({ verificationMaterial: { tlogEntries, timestampVerificationData } }: Bundle): boolean {
  const stamps = timestampVerificationData?.rfc3161Timestamps ?? [];
  if (stamps.length > mostProofs || tlogEntries.length > mostProofs) return false;
  return stamps.every(({ signedTimestamp }) => signedTimestamp.length <= mostBytes) && tlogEntries.every(isBounded);
}

function isBounded({ canonicalizedBody, inclusionProof }: Entry): boolean {
  const note = inclusionProof?.checkpoint?.envelope ?? "";
  if (canonicalizedBody.length > mostEntryBytes || note.length > mostBytes) return false;
  return Array.from(note.matchAll(checkpointSigner)).every(([, name]) => name !== undefined && plainOrigin.test(name));
}

type Entry = Bundle["verificationMaterial"]["tlogEntries"][number];
