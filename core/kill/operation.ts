import { GatewayError } from "../action/error.ts";
import type { Principal } from "../action/principal.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { Ledger } from "../evidence/ledger.ts";
import { checkRole } from "../http/access.ts";
import { anonymousPrincipal, type KeyRing } from "../identity/key-ring.ts";
import type { AdminHandlers } from "../operation/operation.ts";
import { type Kill, type KillTarget, targetOf } from "./kill.ts";
import type { KillSwitch } from "./kill-switch.ts";

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

export interface KillAuthorityParts {
  readonly config: Pick<GatewayConfig, "sessions" | "mcpGateway">;
  readonly killSwitch: KillSwitch;
  readonly keys: KeyRing;
  readonly ledger: Ledger;
}

/** Who may stop and release what. That the caller's role may stop anything at all is decided by then. */
class KillAuthority {
  readonly #parts: KillAuthorityParts;

  constructor(parts: KillAuthorityParts) {
    this.#parts = parts;
  }

  /**
   * Throws NOT_FOUND for a session or principal that the caller's tenant does not have, and ROLE_FORBIDDEN where the whole
   * gateway is not the caller's to stop.
   */
  async check(caller: Principal, target: KillTarget): Promise<void> {
    if (target.scope === "gateway") return this.#checkGateway(caller);
    // What is stopped can be released even where nothing else is left of it.
    if (target.scope === "tenant" || this.#isKilled(caller, target)) return;
    if (target.scope === "principal") return this.#checkPrincipal(caller, target.subject);
    await this.#checkSession(caller, target.subject);
  }

  #checkGateway(caller: Principal): void {
    const { gatewayTenant } = this.#parts.config.sessions;
    checkRole(caller, "gateway.kill");
    if (gatewayTenant === caller.tenant) return;
    throw new GatewayError(
      "ROLE_FORBIDDEN",
      gatewayTenant === null
        ? "nobody may stop the whole gateway: name a tenant in `sessions.gateway_tenant` and start again"
        : "expected an admin of the tenant that `sessions.gateway_tenant` names",
    );
  }

  #checkPrincipal({ tenant }: Principal, id: string): void {
    const { keys, config } = this.#parts;
    const isAnonymous = config.mcpGateway.anonymousTenant === tenant && anonymousPrincipal(tenant).id === id;
    if (!isAnonymous && !keys.names(tenant, id)) throw new GatewayError("NOT_FOUND", "no such principal");
  }

  /** Evidence that cannot be read keeps nobody from stopping a session. */
  async #checkSession({ tenant }: Principal, id: string): Promise<void> {
    try {
      await this.#parts.ledger.records(tenant, id, { limit: 1 });
    } catch (cause) {
      if (GatewayError.from(cause).code === "NOT_FOUND") throw cause;
    }
  }

  #isKilled({ tenant }: Principal, target: KillTarget): boolean {
    try {
      return this.#parts.killSwitch.isKilled(tenant, target);
    } catch {
      return false;
    }
  }
}
