import { GatewayError } from "../action/error.ts";
import { isJsonObject, type Json, type JsonObject, parseKept } from "../action/json.ts";
import { rangeOf, tenantPrefix } from "../store/key-range.ts";

/** The scopes of kills, the narrowest first. */
export const killScopes = ["session", "principal", "tenant", "gateway"] as const;
export type KillScope = (typeof killScopes)[number];

/** The reason for a kill: by an operator, for too many reviews, or for too high a risk. */
export const killReasons = ["operator", "review_flood", "risk"] as const;
type KillReason = (typeof killReasons)[number];

/** The target of a kill: the session or principal of this id, its whole tenant, or every tenant. */
export type KillTarget =
  | { readonly scope: "session"; readonly subject: string }
  | { readonly scope: "principal"; readonly subject: string }
  | { readonly scope: "tenant"; readonly subject: null }
  | { readonly scope: "gateway"; readonly subject: null };

/** A request to stop a target, with its author and reason. */
export type KillOrder = KillTarget & {
  readonly reason: KillReason;
  /** The principal who ordered it; null where the gateway did. */
  readonly by: string | null;
  readonly note: string | null;
};

/** A kill in force, as the store keeps it and the admin API returns it. */
export type Kill = KillOrder & {
  /** RFC 3339, milliseconds, UTC. */
  readonly killed_at: string;
};

export const wholeGateway: KillTarget & { readonly scope: "gateway" } = { scope: "gateway", subject: null };

/** Builds a target; undefined for an unknown scope, a missing id, and an id where the scope has none. */
export function targetOf(scope: Json | undefined, subject: Json | undefined): KillTarget | undefined {
  if (scope === "session" || scope === "principal") return typeof subject === "string" ? { scope, subject } : undefined;
  if (scope !== "tenant" && scope !== "gateway") return undefined;
  return subject === undefined || subject === null ? { scope, subject: null } : undefined;
}

/** The key of the entry that exists while a target is stopped. */
export function killKey(tenant: string, { scope, subject }: KillTarget): string {
  return `${killPrefix(tenant)}${scope}/${encodeURIComponent(subject ?? "")}`;
}

/** The key prefix of the kills of a tenant, or of one scope. */
export function killPrefix(tenant: string, scope?: KillScope): string {
  const all = `${tenantPrefix(tenant)}kill/`;
  return scope === undefined ? all : `${all}${scope}/`;
}

/** The range of keys with `prefix` after the one that continues with `after`; all of them where that is empty. */
export function killRange(prefix: string, after: string = ""): { readonly gt: string; readonly lt: string } {
  return { gt: `${prefix}${after}`, lt: rangeOf(prefix).lt };
}

export function targetOfKey(key: string): KillTarget | undefined {
  const [scope, subject = ""] = key.split("/").slice(-2).map(decodeURIComponent);
  return targetOf(scope, subject === "" ? null : subject);
}

/** The event that records a kill. */
export function killedDetail(kill: Kill): JsonObject {
  const { reason, by, note } = kill;
  const optional = { ...(by === null ? {} : { by }), ...(note === null ? {} : { note }) };
  return { event: "killed", ...namesOf(kill), reason, ...optional };
}

/** The event that records a release. */
export function releasedDetail(target: KillTarget, by: string, reason: string): JsonObject {
  return { event: "released", ...namesOf(target), by, reason };
}

/**
 * The target of a `killed` or `released` event. One without a scope was written when only sessions could be stopped.
 * Throws EVIDENCE_UNAVAILABLE for an unknown scope: the kills of the tenant are unknown then.
 */
export function targetOfEvent({ scope = "session", session, principal }: JsonObject): KillTarget {
  const subject = scope === "session" ? session : scope === "principal" ? principal : undefined;
  const target = targetOf(scope, subject);
  if (target !== undefined) return target;
  throw new GatewayError("EVIDENCE_UNAVAILABLE", "expected an event to name what was stopped or released");
}

/** The kill that a `killed` event recorded at `time`. Throws as `targetOfEvent` does. */
export function killOfEvent(detail: JsonObject, time: string): Kill {
  return { ...targetOfEvent(detail), ...causeOf(detail), killed_at: time };
}

/** Parses the entry of `target`. A damaged one stops its target nonetheless, and can be released. */
export function readKill(target: KillTarget, text: string): Kill {
  const entry = parseKept(text);
  const damaged = { reason: "operator", by: null, note: "the entry of this kill is damaged", killed_at: "" } as const;
  if (!isJsonObject(entry)) return { ...target, ...damaged };
  return { ...target, ...causeOf(entry), killed_at: textOrNull(entry.killed_at) ?? "" };
}

/** A session or a principal is named by the same member as in its own records. */
function namesOf({ scope, subject }: KillTarget): JsonObject {
  return subject === null ? { scope } : { scope, [scope]: subject };
}

function causeOf({ reason, by, note }: JsonObject): Pick<Kill, "reason" | "by" | "note"> {
  const known = killReasons.find((each) => each === reason) ?? "operator";
  return { reason: known, by: textOrNull(by), note: textOrNull(note) };
}

function textOrNull(value: Json | undefined): string | null {
  return typeof value === "string" ? value : null;
}
