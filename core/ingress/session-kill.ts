import type { Context } from "koa";
import { GatewayError } from "../kernel/error.ts";
import type { Principal } from "../kernel/principal.ts";
import { type Kill, type KillTarget, killScopes, targetOf } from "../session/kill.ts";
import type { Handlers } from "./app.ts";
import { KillAuthority, type KillAuthorityParts } from "./kill-authority.ts";
import { readPage } from "./page.ts";
import { readTexts } from "./text-body.ts";

type KillRouteId =
  | "admin.kill"
  | "admin.release"
  | "admin.killed"
  | "admin.kills"
  | "admin.kill_scope"
  | "admin.release_scope";

const text = { least: 1, most: 1_024 };
const named = { scope: { least: 1, most: 64 }, subject: { least: 1, most: 256 } };

/** Handlers that stop sessions, principals, tenants and the gateway, and release them. */
export function sessionKillHandlers(parts: KillAuthorityParts): Pick<Handlers, KillRouteId> {
  const { killSwitch } = parts;
  const authority = new KillAuthority(parts);

  function kill(caller: Principal, target: KillTarget, note: string | null): Promise<void> {
    return killSwitch.kill(caller.tenant, { ...target, reason: "operator", by: caller.id, note });
  }

  async function release(caller: Principal, target: KillTarget, reason: string | undefined): Promise<void> {
    if (reason === undefined) throw new GatewayError("INVALID_PARAMS", "expected `reason`: why it may go on");
    await killSwitch.release(caller.tenant, target, caller.id, reason);
  }

  return {
    "admin.kill": async (ctx, caller) => {
      const session = sessionIn(ctx);
      await authority.check(caller, session);
      const { note = null } = await readTexts(ctx.req, { note: text });
      await kill(caller, session, note);
      ctx.body = { session: session.subject, state: "killed" };
    },
    "admin.release": async (ctx, caller) => {
      const session = sessionIn(ctx);
      await authority.check(caller, session);
      const { reason } = await readTexts(ctx.req, { reason: text });
      await release(caller, session, reason);
      ctx.body = { session: session.subject, state: "released" };
    },
    "admin.killed": async (ctx, caller) => {
      const { items, next } = await killSwitch.list(caller.tenant, { ...readPage(ctx), scope: "session" });
      ctx.body = { items: items.map(showSession), next };
    },
    "admin.kills": async (ctx, caller) => {
      ctx.body = await killSwitch.list(caller.tenant, readPage(ctx));
    },
    "admin.kill_scope": async (ctx, caller) => {
      const { scope, subject, note = null } = await readTexts(ctx.req, { ...named, note: text });
      ctx.state.subject = subject;
      const target = readTarget(scope, subject);
      await authority.check(caller, target);
      await kill(caller, target, note);
      ctx.body = { ...target, state: "killed" };
    },
    "admin.release_scope": async (ctx, caller) => {
      const { scope, subject, reason } = await readTexts(ctx.req, { ...named, reason: text });
      ctx.state.subject = subject;
      const target = readTarget(scope, subject);
      await authority.check(caller, target);
      await release(caller, target, reason);
      ctx.body = { ...target, state: "released" };
    },
  };
}

function sessionIn(ctx: Context): Extract<KillTarget, { readonly scope: "session" }> {
  return { scope: "session", subject: ctx.params.id as string };
}

/** Throws INVALID_PARAMS. */
function readTarget(scope: string | undefined, subject: string | undefined): KillTarget {
  const target = targetOf(scope, subject);
  if (target !== undefined) return target;
  if (scope === "session" || scope === "principal") {
    throw new GatewayError("INVALID_PARAMS", `expected \`subject\`: the id of a ${scope}`);
  }
  if (scope === "tenant" || scope === "gateway") {
    throw new GatewayError("INVALID_PARAMS", `expected no \`subject\`: scope \`${scope}\` says it all`);
  }
  const got = scope === undefined ? "nothing" : `\`${scope.toWellFormed()}\``;
  throw new GatewayError("INVALID_PARAMS", `expected \`scope\` to be one of ${killScopes.join(", ")}, got ${got}`);
}

function showSession({ subject, reason, by, note, killed_at }: Kill): object {
  return { session: subject, reason, by, note, killed_at };
}
