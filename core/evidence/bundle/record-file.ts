import { sha256Hex } from "../../kernel/digest.ts";
import type { Json } from "../../kernel/json.ts";
import { type EvidenceRecord, effects, eventKinds, recordSchema } from "../record.ts";
import { Breach } from "./breach.ts";
import { readCanonicalJson } from "./canonical-file.ts";
import { count, digest, exactly, isCount, listOf, objectWith, oneOf, type Shape, text, time } from "./shape.ts";

export const recordFile = "records.jsonl";

/** A record with the digest of its exact bytes. */
export interface BundledRecord {
  readonly record: EvidenceRecord;
  readonly hash: string;
}

const newline = 0x0a;
const absent = exactly(undefined);
const policy = objectWith({
  digest: text,
  kind: text,
  name: text,
  signer: oneOf(exactly(null), text),
  version: text,
});
const evaluation = objectWith({ decision: text, policies: listOf(policy), shadow: listOf(policy) });
const approvalEvent = objectWith({
  event: text,
  id: text,
  session: text,
  scope: oneOf(absent, exactly("exact"), exactly("task")),
});
const otherKinds = eventKinds.filter((kind) => kind !== "genesis" && kind !== "approval");
const frame = {
  chain: text,
  config_digest: text,
  id: text,
  prev_hash: digest,
  salt: text,
  schema: exactly(recordSchema),
  seq: (value: Json | undefined): boolean => isCount(value) && value > 0,
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
    evaluation: oneOf(absent, evaluation),
  }),
  objectWith({ ...frame, kind: exactly("genesis"), detail: objectWith({}), seq: exactly(0) }),
  objectWith({ ...frame, kind: exactly("approval"), detail: approvalEvent }),
  objectWith({ ...frame, kind: oneOf(...otherKinds.map(exactly)), detail: objectWith({}) }),
);

/**
 * Reads the records of a bundle, one on each line. Throws Breach for what is not a record in its canonical bytes, and
 * `seq_gap` for numbers that do not rise. Says nothing of links, proofs and rules.
 */
export function readRecords(bytes: Uint8Array): readonly BundledRecord[] {
  const records: BundledRecord[] = [];
  let before = -1;
  for (const line of splitLines(bytes)) {
    const record = readCanonicalJson<EvidenceRecord>(line, recordFile, recordShape);
    if (record.seq <= before) throw new Breach("seq_gap", { file: recordFile, seq: record.seq });
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
