import { isCheckpointSignedBy, parseCheckpoint } from "../../evidence/checkpoint.ts";
import type { PublishedCheckpoint } from "../../evidence/custody.ts";
import { GatewayError } from "../../kernel/error.ts";
import { VerifyingKey } from "../../kernel/signing-key.ts";
import { askAdmin } from "../admin-client.ts";
import { type Finding, fail, ok, warn } from "./finding.ts";

/** Clocks of two machines differ a little. */
const mostAheadMs = 5_000;

/** Where a running gateway's evidence ends, by its own latest checkpoint. */
export async function examineHead(admin: string): Promise<Finding> {
  try {
    const body = await askAdmin({ admin }, "/admin/v1/evidence/checkpoint");
    return judgeCheckpoint(JSON.parse(body.toString("utf8")) as PublishedCheckpoint, Date.now());
  } catch (cause) {
    const { message } = GatewayError.from(cause);
    const mend = "set `--admin` and GATEWAY_API_KEY to its own";
    return warn(`the gateway at ${admin} does not say where its evidence ends: ${message}`, mend);
  }
}

/** A checkpoint against the keys told with it, and the clock. Whose keys they are, nobody here can know. */
export function judgeCheckpoint({ note, keys }: PublishedCheckpoint, nowMs: number): Finding {
  const checkpoint = parseCheckpoint(note);
  const mend = "`gateway evidence verify` tells more; restore the newest backup";
  if (checkpoint === undefined) return fail("the gateway's latest checkpoint is none", mend);
  const { size, time } = checkpoint;
  const valid = keys.filter(({ from_size: from, to_size: to }) => from <= size && size <= (to ?? size));
  const known = valid.map(({ public_key: key }) => VerifyingKey.parse(key)).filter((key) => key !== undefined);
  if (known.length < valid.length || !isCheckpointSignedBy(checkpoint, known)) {
    return fail(`the gateway's latest checkpoint, over ${size} records, is not signed by its key`, mend);
  }
  if (Date.parse(time) - nowMs > mostAheadMs) {
    return fail(
      `the gateway's latest record is of ${time}, which is yet to come`,
      "set the clock of one of the two machines",
    );
  }
  return ok(`the gateway vouches for ${size} records of your tenant, the latest of ${time}`);
}
