import { GatewayError } from "../kernel/error.ts";
import type { Principal } from "../kernel/principal.ts";
import { type Kill, type KillTarget, targetOf } from "../session/kill.ts";
import type { AdminHandlers } from "./api/handler.ts";
import { KillAuthority, type KillAuthorityParts } from "./kill-authority.ts";

type KillRouteId =
  | "admin.kill"
  | "admin.release"
  | "admin.killed"
  | "admin.kills"
  | "admin.kill_scope"
  | "admin.release_scope";

/** Handlers that stop sessions, principals, tenants and the gateway, and release them. */
export function sessionKillHandlers(parts: KillAuthorityParts): AdminHandlers<KillRouteId> {
  const { killSwitch } = parts;
  const authority = new KillAuthority(parts);

  function kill(caller: Principal, target: KillTarget, note: string | null): Promise<void> {
    return killSwitch.kill(caller.tenant, { ...target, reason: "operator", by: caller.id, note });
  }

  function release(caller: Principal, target: KillTarget, reason: string): Promise<void> {
    return killSwitch.release(caller.tenant, target, caller.id, reason);
  }

  return {
    "admin.kill": async (ctx, caller, { id, body: { note = null } }) => {
      const session = sessionOf(id);
      await authority.check(caller, session);
      await kill(caller, session, note);
      ctx.body = { session: id, state: "killed" };
    },
    "admin.release": async (ctx, caller, { id, body: { reason } }) => {
      const session = sessionOf(id);
      await authority.check(caller, session);
      await release(caller, session, reason);
      ctx.body = { session: id, state: "released" };
    },
    "admin.killed": async (ctx, caller, { query }) => {
      const { items, next } = await killSwitch.list(caller.tenant, { ...query, scope: "session" });
      ctx.body = { items: items.map(showSession), next };
    },
    "admin.kills": async (ctx, caller, { query }) => {
      ctx.body = await killSwitch.list(caller.tenant, query);
    },
    "admin.kill_scope": async (ctx, caller, { body: { scope, subject, note = null } }) => {
      ctx.state.subject = subject;
      const target = readTarget(scope, subject);
      await authority.check(caller, target);
      await kill(caller, target, note);
      ctx.body = { ...target, state: "killed" };
    },
    "admin.release_scope": async (ctx, caller, { body: { scope, subject, reason } }) => {
      ctx.state.subject = subject;
      const target = readTarget(scope, subject);
      await authority.check(caller, target);
      await release(caller, target, reason);
      ctx.body = { ...target, state: "released" };
    },
  };
}

function sessionOf(id: string): KillTarget {
  return { scope: "session", subject: id };
}

/** Throws INVALID_PARAMS. */
function readTarget(scope: string, subject: string | undefined): KillTarget {
  const target = targetOf(scope, subject);
  if (target !== undefined) return target;
  throw new GatewayError(
    "INVALID_PARAMS",
    subject === undefined
      ? `expected \`subject\`: the id of a ${scope}`
      : `expected no \`subject\`: scope \`${scope}\` says it all`,
  );
}

function showSession({ subject, reason, by, note, killed_at }: Kill): object {
  return { session: subject, reason, by, note, killed_at };
}
