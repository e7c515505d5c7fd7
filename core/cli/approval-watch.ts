import { setTimeout as sleep } from "node:timers/promises";
import type { Approval } from "../action/approval.ts";
import { GatewayError } from "../action/error.ts";
import { asciiJson } from "../action/json.ts";
import { approvalOperations } from "../approval/operation.ts";
import { type AdminOptions, fetchItems } from "./admin-client.ts";
import { print, say } from "./print.ts";
import { approvalLine } from "./view/approval.ts";

const intervalMs = 2_000;

/**
 * `gateway approvals watch`: prints each approval once, as it becomes pending, until SIGINT or SIGTERM. Fails where the
 * gateway does not answer at first; waits for one that goes away later.
 */
export async function watchPending(options: AdminOptions & { readonly json?: true }): Promise<void> {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(0));
  process.stdout.once("error", () => process.exit(0));
  let seen: ReadonlySet<string> | undefined;
  let isAway = false;
  for (;;) {
    try {
      const pending = await fetchPending(options);
      if (isAway) say("the gateway answers again");
      isAway = false;
      for (const approval of pending.filter(({ id }) => !seen?.has(id))) {
        print(options.json ? asciiJson(approval) : approvalLine(approval, Date.now()));
      }
      seen = new Set(pending.map(({ id }) => id));
    } catch (error) {
      if (seen === undefined || !isTransient(GatewayError.from(error))) throw error;
      if (!isAway) say("no answer; waiting for the gateway");
      isAway = true;
    }
    await sleep(intervalMs);
  }
}

/** Every pending approval: ids of one millisecond have no order, so no cursor can skip those already printed. */
async function fetchPending(options: AdminOptions): Promise<readonly Approval[]> {
  const pending: Approval[] = [];
  for await (const approval of fetchItems<Approval>(options, approvalOperations.listApprovals)) pending.push(approval);
  return pending;
}

function isTransient({ code, data }: GatewayError): boolean {
  return code === "GATEWAY_UNREACHABLE" || Number(data?.status) >= 500;
}
