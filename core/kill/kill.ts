import { GatewayError } from "../action/error.ts";
import { isJsonObject, type Json, type JsonObject, parseKept } from "../action/json.ts";
import { rangeOf, tenantPrefix } from "../store/key-range.ts";

/** How much a kill stops, from the least to the most. */
export const killScopes = ["session", "principal", "tenant", "gateway"] as const;
export type KillScope = (typeof killScopes)[number];

/** Why something was stopped: by hand, because it asked for too many reviews, or because its risk was too high. */
export const killReasons = ["operator", "review_flood", "risk"] as const;
type KillReason = (typeof killReasons)[number];

/** What a kill stops: the session or principal of this id, all of the tenant that it belongs to, or every tenant. */
export type KillTarget =
  | { readonly scope: "session"; readonly subject: string }
  | { readonly scope: "principal"; readonly subject: string }
  | { readonly scope: "tenant"; readonly subject: null }
  | { readonly scope: "gateway"; readonly subject: null };

/** Who wants something stopped, and why. */
export type KillOrder = KillTarget & {
  readonly reason: KillReason;
  /** The principal who stopped it; null where the gateway did. */
  readonly by: string | null;
  readonly note: string | null;
};

/** What stands stopped, as the store keeps it and the admin port tells it. */
export type Kill = KillOrder & {
  /** RFC 3339, milliseconds, UTC. */
  readonly killed_at: string;
};

export const wholeGateway: KillTarget & { readonly scope: "gateway" } = { scope: "gateway", subject: null };

/** What a scope and an id name together; undefined for a scope that nobody knows, and where an id is missing or one too many. */
export function targetOf(scope: Json | undefined, subject: Json | undefined): KillTarget | undefined {
  if (scope === "session" || scope === "principal") return typeof subject === "string" ? { scope, subject } : undefined;
  if (scope !== "tenant" && scope !== "gateway") return undefined;
  return subject === undefined || subject === null ? { scope, subject: null } : undefined;
}

/** The entry that is there for as long as something is stopped. */
export function killKey(tenant: string, { scope, subject }: KillTarget): string {
  return `${killPrefix(tenant)}${scope}/${encodeURIComponent(subject ?? "")}`;
}

/** What the keys of a tenant's entries begin with; of one scope's alone, where that is named. */
export function killPrefix(tenant: string, scope?: KillScope): string {
  const all = `${tenantPrefix(tenant)}kill/`;
  return scope === undefined ? all : `${all}${scope}/`;
}

/** The entries that begin with `prefix`, behind the one that goes on with `after`; all of them where that is empty. */
export function killRange(prefix: string, after: string = ""): { readonly gt: string; readonly lt: string } {
  return { gt: `${prefix}${after}`, lt: rangeOf(prefix).lt };
}

/** What the entry of this key is about. */
export function targetIn(key: string): KillTarget | undefined {
  const [scope, subject = ""] = key.split("/").slice(-2).map(decodeURIComponent);
  return targetOf(scope, subject === "" ? null : subject);
}

/** What the chain is told of a kill. */
export function killedDetail(kill: Kill): JsonObject {
  const { reason, by, note } = kill;
  const told = { ...(by === null ? {} : { by }), ...(note === null ? {} : { note }) };
  return { event: "killed", ...namedIn(kill), reason, ...told };
}

/** What the chain is told of a release. */
export function releasedDetail(target: KillTarget, by: string, reason: string): JsonObject {
  return { event: "released", ...namedIn(target), by, reason };
}

/**
 * What an event tells of: one that names no scope is of a time when sessions alone could be stopped. Throws
 * EVIDENCE_UNAVAILABLE where that is nothing known: then nobody knows what is stopped.
 */
export function targetTold({ scope = "session", session, principal }: JsonObject): KillTarget {
  const subject = scope === "session" ? session : scope === "principal" ? principal : undefined;
  const target = targetOf(scope, subject);
  if (target !== undefined) return target;
  throw new GatewayError("EVIDENCE_UNAVAILABLE", "expected an event to name what was stopped or released");
}

/** The kill that an event recorded at `time` tells of. Throws as `targetTold` does. */
export function killTold(detail: JsonObject, time: string): Kill {
  return { ...targetTold(detail), ...causeOf(detail), killed_at: time };
}

/** The kill in the entry of `target`. One that no gateway wrote stops what its key says nonetheless, and can be released. */
export function readKill(target: KillTarget, text: string): Kill {
  const entry = parseKept(text);
  const damaged = { reason: "operator", by: null, note: "the entry of this kill is damaged", killed_at: "" } as const;
  if (!isJsonObject(entry)) return { ...target, ...damaged };
  return { ...target, ...causeOf(entry), killed_at: textOrNull(entry.killed_at) ?? "" };
}

/** The member of an event that names a session or a principal is the one that its records name it by. */
function namedIn({ scope, subject }: KillTarget): JsonObject {
  return subject === null ? { scope } : { scope, [scope]: subject };
}

function causeOf({ reason, by, note }: JsonObject): Pick<Kill, "reason" | "by" | "note"> {
  const known = killReasons.find((each) => each === reason) ?? "operator";
  return { reason: known, by: textOrNull(by), note: textOrNull(note) };
}

function textOrNull(value: Json | undefined): string | null {
  return typeof value === "string" ? value : null;
}
