import { setTimeout as sleep } from "node:timers/promises";
import type { Approval } from "../kernel/approval.ts";
import { asciiJson } from "../kernel/ascii-json.ts";
import { GatewayError } from "../kernel/error.ts";
import type { AdminOptions } from "./admin-client.ts";
import { approvalLine } from "./approval-line.ts";
import { approvalsPath } from "./approval-path.ts";
import { askItems } from "./list.ts";
import { print, say } from "./print.ts";

const everyMs = 2_000;

/**
 * Prints each approval once, as it begins to wait for a reviewer, until SIGINT or SIGTERM. A gateway that does not answer
 * from the start is an error; one that goes away later is waited for.
 */
export async function watchPending(options: AdminOptions & { readonly json?: true }): Promise<void> {
  // At once, whatever is being waited for; and when nobody reads any more.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(0));
  process.stdout.once("error", () => process.exit(0));
  let seen: ReadonlySet<string> | undefined;
  let isAway = false;
  for (;;) {
    try {
      const pending = await readPending(options);
      if (isAway) say("it answers again");
      isAway = false;
      for (const approval of pending.filter(({ id }) => !seen?.has(id))) {
        print(options.json ? asciiJson(approval) : approvalLine(approval, Date.now()));
      }
      seen = new Set(pending.map(({ id }) => id));
    } catch (error) {
      if (seen === undefined || !isPassing(GatewayError.from(error))) throw error;
      if (!isAway) say("no answer; waiting for it to come back");
      isAway = true;
    }
    await sleep(everyMs);
  }
}

/** All that wait: ids made in one millisecond are in no order, so none can be skipped by those before it. */
async function readPending(options: AdminOptions): Promise<readonly Approval[]> {
  const pending: Approval[] = [];
  for await (const approval of askItems<Approval>(options, approvalsPath)) pending.push(approval);
  return pending;
}

/** Nobody answers, or somebody who says that it is not for long. */
function isPassing({ code, data }: GatewayError): boolean {
  return code === "GATEWAY_UNREACHABLE" || Number(data?.status) >= 500;
}
