import { effects, eventKinds, recordSchema } from "../record.ts";
import { count, digest, exactly, objectWith, oneOf, type Shape, text, time } from "./shape.ts";

const absent = exactly(undefined);
const evaluation = objectWith({ decision: text });
const approvalEvent = objectWith({
  event: text,
  id: text,
  session: text,
  scope: oneOf(absent, exactly("exact"), exactly("task")),
});
const otherEvent = objectWith({ ticket: oneOf(absent, text) });
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
  principal: objectWith({ id: text }),
  session: objectWith({ id: text, index: count, prev_hash: digest }),
  ticket: oneOf(absent, objectWith({ id: oneOf(absent, text), of: oneOf(absent, count), use: oneOf(absent, count) })),
} as const;

/** What the rules will read of a record. */
export const recordShape: Shape = oneOf(
  objectWith({ ...step, kind: exactly("decision"), effect: oneOf(...effects.slice(0, 2).map(exactly)), evaluation }),
  objectWith({
    ...step,
    kind: exactly("outcome"),
    effect: oneOf(...effects.slice(2).map(exactly)),
  }),
  objectWith({ ...frame, kind: exactly("genesis"), detail: objectWith({}) }),
  objectWith({ ...frame, kind: exactly("approval"), detail: approvalEvent }),
  objectWith({ ...frame, kind: oneOf(...otherKinds.map(exactly)), detail: otherEvent }),
);
