import type { TObject, TProperties } from "@sinclair/typebox";
import { type ErrorCode, GatewayError } from "../action/error.ts";
import type { Principal } from "../action/principal.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { Type } from "../config/type.ts";
import type { Ledger } from "../evidence/ledger.ts";
import { anonymousPrincipal, type KeyRing } from "../identity/key-ring.ts";
import {
  type AdminHandlers,
  type AdminOperations,
  checkAccess,
  type OperationResponse,
  smallBody,
} from "../operation/operation.ts";
import {
  anyText,
  boundedText,
  closed,
  enumOf,
  jsonResponse,
  nonBlankText,
  nullable,
  page,
  paging,
  ref,
  sessionParameter,
} from "../operation/shape.ts";
import { type Kill, type KillTarget, killReasons, killScopes, targetOf } from "./kill.ts";
import type { KillSwitch } from "./kill-switch.ts";

const killMembers = {
  reason: enumOf(killReasons),
  by: nullable(anyText),
  note: nullable(anyText),
  killed_at: anyText,
} satisfies TProperties;

const params = { id: sessionParameter };
const reason = nonBlankText(1_024, "1 to 1024 characters: why");
const note = Type.Optional(nonBlankText(1_024, "1 to 1024 characters: why, for later readers"));
const scope = enumOf(killScopes, { description: `one of ${killScopes.join(", ")}` });
const subject = Type.Optional(
  boundedText(1, 256, "the id of the principal, or the session as paths name it; absent for a tenant and the gateway"),
);
const errors: readonly ErrorCode[] = ["SESSION_STATE", "EVIDENCE_UNAVAILABLE"];
const scopeErrors: readonly ErrorCode[] = ["NOT_FOUND", "ROLE_FORBIDDEN", ...errors];

function sessionResponse(state: string): OperationResponse {
  return jsonResponse("The state in force.", Type.Object({ session: anyText, state: Type.Literal(state) }));
}

function scopeResponse(state: string): OperationResponse {
  const target = { scope: enumOf(killScopes), subject: nullable(anyText), state: Type.Literal(state) };
  return jsonResponse("The state in force.", Type.Object(target));
}

/** The kill switch. */
export const killOperations = {
  listKilledSessions: {
    id: "admin.killed",
    method: "GET",
    path: "/admin/v1/sessions/killed",
    access: "evidence.read",
    tag: "sessions",
    summary: "List stopped sessions",
    query: closed(paging),
    response: jsonResponse("A page of sessions.", page(Type.Object({ session: anyText, ...killMembers }))),
    errors: [],
  },
  killSession: {
    id: "admin.kill",
    method: "POST",
    path: "/admin/v1/sessions/:id/kill",
    access: "session.kill",
    tag: "sessions",
    summary: "Stop a session: none of its actions is allowed until it is released",
    params,
    body: {
      schema: closed({ note }),
      example: { note: "it reads what it should not" },
      required: false,
      limits: smallBody,
    },
    response: sessionResponse("killed"),
    errors,
  },
  releaseSession: {
    id: "admin.release",
    method: "POST",
    path: "/admin/v1/sessions/:id/release",
    access: "session.kill",
    tag: "sessions",
    summary: "Release a stopped session",
    params,
    body: { schema: closed({ reason }), example: { reason: "it was looked at" }, required: true, limits: smallBody },
    response: sessionResponse("released"),
    errors,
  },
  listKills: {
    id: "admin.kills",
    method: "GET",
    path: "/admin/v1/kills",
    access: "evidence.read",
    tag: "sessions",
    summary: "List everything that is stopped: sessions, principals, the tenant",
    query: closed(paging),
    response: jsonResponse("A page of kills.", page(ref("Kill"))),
    errors: [],
  },
  kill: {
    id: "admin.kill_scope",
    method: "POST",
    path: "/admin/v1/kills",
    access: "session.kill",
    tag: "sessions",
    summary: "Stop a session, a principal, the tenant or the whole gateway",
    body: {
      schema: closed({ scope, subject, note }),
      example: { scope: "tenant", note: "an incident" },
      required: true,
      limits: smallBody,
    },
    response: scopeResponse("killed"),
    errors: scopeErrors,
    subjectMember: "subject",
    sessionMember: "subject",
  },
  release: {
    id: "admin.release_scope",
    method: "POST",
    path: "/admin/v1/kills/release",
    access: "session.kill",
    tag: "sessions",
    summary: "Release a stopped session, principal, tenant or gateway",
    body: {
      schema: closed({ scope, subject, reason }),
      example: { scope: "tenant", reason: "it is over" },
      required: true,
      limits: smallBody,
    },
    response: scopeResponse("released"),
    errors: scopeErrors,
    subjectMember: "subject",
    sessionMember: "subject",
  },
} as const satisfies AdminOperations;

/** Components of the document. */
export const killSchemas: Readonly<Record<string, TObject>> = {
  Kill: Type.Object({ scope: enumOf(killScopes), subject: nullable(anyText), ...killMembers }),
};

interface KillSources {
  readonly config: Pick<GatewayConfig, "sessions" | "mcpGateway">;
  readonly killSwitch: KillSwitch;
  readonly keys: KeyRing;
  readonly ledger: Ledger;
}

/** Handlers that stop sessions, principals, tenants and the gateway, and release them. */
export function killHandlers(sources: KillSources): AdminHandlers<typeof killOperations> {
  const { killSwitch } = sources;

  async function kill(caller: Principal, target: KillTarget, note: string | null): Promise<void> {
    await checkTarget(sources, caller, target);
    await killSwitch.kill(caller.tenant, { ...target, reason: "operator", by: caller.id, note });
  }

  async function release(caller: Principal, target: KillTarget, why: string): Promise<void> {
    await checkTarget(sources, caller, target);
    await killSwitch.release(caller.tenant, target, caller.id, why);
  }

  return {
    listKilledSessions: async ({ tenant }, { query }) => {
      const { items, next } = await killSwitch.list(tenant, { ...query, scope: "session" });
      return { items: items.map(viewKilledSession), next };
    },
    killSession: async (caller, { id, body }) => {
      await kill(caller, { scope: "session", subject: id }, body.note ?? null);
      return { session: id, state: "killed" };
    },
    releaseSession: async (caller, { id, body }) => {
      await release(caller, { scope: "session", subject: id }, body.reason);
      return { session: id, state: "released" };
    },
    listKills: ({ tenant }, { query }) => killSwitch.list(tenant, query),
    kill: async (caller, { body }) => {
      const target = readTarget(body.scope, body.subject);
      await kill(caller, target, body.note ?? null);
      return { ...target, state: "killed" };
    },
    release: async (caller, { body }) => {
      const target = readTarget(body.scope, body.subject);
      await release(caller, target, body.reason);
      return { ...target, state: "released" };
    },
  };
}

/** Throws INVALID_PARAMS. */
function readTarget(scope: string, subject: string | undefined): KillTarget {
  const target = targetOf(scope, subject);
  if (target !== undefined) return target;
  throw new GatewayError(
    "INVALID_PARAMS",
    subject === undefined
      ? `expected \`subject\`: the id of a ${scope}`
      : `expected no \`subject\` with scope \`${scope}\``,
  );
}

function viewKilledSession({ subject, reason, by, note, killed_at }: Kill): object {
  return { session: subject, reason, by, note, killed_at };
}

/**
 * Throws NOT_FOUND for a session or principal that the caller's tenant does not have, and ROLE_FORBIDDEN where the caller
 * may not stop the whole gateway. That the caller's role may stop anything is checked before.
 */
async function checkTarget(sources: KillSources, caller: Principal, target: KillTarget): Promise<void> {
  if (target.scope === "gateway") return checkGateway(sources, caller);
  // Whatever is stopped can be released, even where no other trace of it is left.
  if (target.scope === "tenant" || isKilled(sources, caller, target)) return;
  if (target.scope === "principal") return checkPrincipal(sources, caller, target.subject);
  await checkSession(sources, caller, target.subject);
}

function checkGateway({ config }: KillSources, caller: Principal): void {
  const { gatewayTenant } = config.sessions;
  checkAccess(caller, "gateway.kill");
  if (gatewayTenant === caller.tenant) return;
  throw new GatewayError(
    "ROLE_FORBIDDEN",
    gatewayTenant === null
      ? "nobody may stop the whole gateway: name a tenant in `sessions.gateway_tenant` and restart"
      : "expected an admin of the tenant that `sessions.gateway_tenant` names",
  );
}

function checkPrincipal({ keys, config }: KillSources, { tenant }: Principal, id: string): void {
  const isAnonymous = config.mcpGateway.anonymousTenant === tenant && anonymousPrincipal(tenant).id === id;
  if (!isAnonymous && !keys.knows(tenant, id)) throw new GatewayError("NOT_FOUND", "no such principal");
}

/** Unreadable evidence prevents nobody from stopping a session. */
async function checkSession({ ledger }: KillSources, { tenant }: Principal, id: string): Promise<void> {
  try {
    await ledger.records(tenant, id, { limit: 1 });
  } catch (cause) {
    if (GatewayError.from(cause).code === "NOT_FOUND") throw cause;
  }
}

function isKilled({ killSwitch }: KillSources, { tenant }: Principal, target: KillTarget): boolean {
  try {
    return killSwitch.isKilled(tenant, target);
  } catch {
    return false;
  }
}
