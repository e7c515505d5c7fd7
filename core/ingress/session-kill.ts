import type { Context } from "koa";
import type { Ledger } from "../evidence/ledger.ts";
import { GatewayError } from "../kernel/error.ts";
import { isJsonObject } from "../kernel/json.ts";
import type { Principal } from "../kernel/principal.ts";
import type { KillSwitch } from "../session/kill-switch.ts";
import type { Handlers } from "./app.ts";
import { type BodyLimits, readJsonBody } from "./body.ts";
import { readPage } from "./page.ts";

export interface SessionKillParts {
  readonly killSwitch: KillSwitch;
  readonly ledger: Ledger;
}

const longestText = 1_024;
const bodyLimits: BodyLimits = {
  bytes: 16_384,
  json: { depth: 4, nodes: 16, stringLength: longestText, reader: "exact" },
};

/** Handlers that stop sessions and release them. A session that the caller's tenant does not have is not found. */
export function sessionKillHandlers(
  parts: SessionKillParts,
): Pick<Handlers, "admin.kill" | "admin.release" | "admin.killed"> {
  const { killSwitch } = parts;
  return {
    "admin.kill": async (ctx, caller) => {
      const session = await findSession(parts, ctx, caller);
      const note = await readText(ctx, "note");
      await killSwitch.kill(caller.tenant, { session, reason: "operator", by: caller.id, note });
      ctx.body = { session, state: "killed" };
    },
    "admin.release": async (ctx, caller) => {
      const session = await findSession(parts, ctx, caller);
      const reason = await readText(ctx, "reason");
      if (reason === null) throw new GatewayError("INVALID_PARAMS", "expected `reason` to say why it may go on");
      await killSwitch.release(caller.tenant, session, caller.id, reason);
      ctx.body = { session, state: "released" };
    },
    "admin.killed": async (ctx, caller) => {
      const { limit, cursor } = readPage(ctx);
      ctx.body = await killSwitch.list(caller.tenant, limit, cursor);
    },
  };
}

/** Throws NOT_FOUND. Evidence that cannot be read keeps nobody from stopping a session. */
async function findSession({ ledger }: SessionKillParts, ctx: Context, caller: Principal): Promise<string> {
  const session = ctx.params.id as string;
  try {
    await ledger.records(caller.tenant, session, { limit: 1 });
  } catch (cause) {
    if (GatewayError.from(cause).code !== "EVIDENCE_UNAVAILABLE") throw cause;
  }
  return session;
}

/** The text of the one member that the body may have; null where it has none, or where there is no body. */
async function readText(ctx: Context, member: string): Promise<string | null> {
  if (!hasBody(ctx)) return null;
  const json = await readJsonBody(ctx.req, bodyLimits);
  const text = isJsonObject(json) && Object.keys(json).every((key) => key === member) ? (json[member] ?? null) : false;
  if (text === null) return null;
  if (typeof text === "string" && text !== "" && text.length <= longestText && text.isWellFormed()) return text;
  throw new GatewayError("INVALID_PARAMS", `expected \`{"${member}": …}\` with 1 to ${longestText} characters`);
}

function hasBody({ req }: Context): boolean {
  return (req.headers["content-length"] ?? "0") !== "0" || req.headers["transfer-encoding"] !== undefined;
}
