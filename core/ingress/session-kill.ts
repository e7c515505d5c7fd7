import type { Context } from "koa";
import type { Ledger } from "../evidence/ledger.ts";
import { GatewayError } from "../kernel/error.ts";
import type { Principal } from "../kernel/principal.ts";
import type { KillSwitch } from "../session/kill-switch.ts";
import type { Handlers } from "./app.ts";
import { readPage } from "./page.ts";
import { readTexts } from "./text-body.ts";

export interface SessionKillParts {
  readonly killSwitch: KillSwitch;
  readonly ledger: Ledger;
}

const text = { least: 1, most: 1_024 };

/** Handlers that stop sessions and release them. A session that the caller's tenant does not have is not found. */
export function sessionKillHandlers(
  parts: SessionKillParts,
): Pick<Handlers, "admin.kill" | "admin.release" | "admin.killed"> {
  const { killSwitch } = parts;
  return {
    "admin.kill": async (ctx, caller) => {
      const session = await findSession(parts, ctx, caller);
      const { note = null } = await readTexts(ctx.req, { note: text });
      await killSwitch.kill(caller.tenant, { session, reason: "operator", by: caller.id, note });
      ctx.body = { session, state: "killed" };
    },
    "admin.release": async (ctx, caller) => {
      const session = await findSession(parts, ctx, caller);
      const { reason } = await readTexts(ctx.req, { reason: text });
      if (reason === undefined) throw new GatewayError("INVALID_PARAMS", "expected `reason`: why it may go on");
      await killSwitch.release(caller.tenant, session, caller.id, reason);
      ctx.body = { session, state: "released" };
    },
    "admin.killed": async (ctx, caller) => {
      const { limit, cursor } = readPage(ctx);
      ctx.body = await killSwitch.list(caller.tenant, limit, cursor);
    },
  };
}

/**
 * Throws NOT_FOUND. Evidence that cannot be read keeps nobody from stopping a session, nor does evidence that was pruned
 * from releasing one.
 */
async function findSession(parts: SessionKillParts, ctx: Context, { tenant }: Principal): Promise<string> {
  const session = ctx.params.id as string;
  try {
    if (!parts.killSwitch.isKilled(tenant, session)) await parts.ledger.records(tenant, session, { limit: 1 });
  } catch (cause) {
    if (GatewayError.from(cause).code === "NOT_FOUND") throw cause;
  }
  return session;
}
