import { isJsonObject, type Json, type JsonObject } from "../kernel/json.ts";
import { lastPart, rangeOf, tenantPrefix } from "../kernel/tenant-key.ts";

/** Why a session was stopped: by hand, because it asked for too many reviews, or because its risk was too much. */
export const killReasons = ["operator", "review_flood", "risk"] as const;
export type KillReason = (typeof killReasons)[number];

/** A stopped session, as the store keeps it and the admin port tells it. */
export interface Kill {
  readonly session: string;
  readonly reason: KillReason;
  /** The principal who stopped it; null where the gateway did. */
  readonly by: string | null;
  readonly note: string | null;
  /** RFC 3339, milliseconds, UTC. */
  readonly killed_at: string;
}

/** The entry that is there for as long as a session is stopped. */
export function killKey(tenant: string, session: string): string {
  return `${killPrefix(tenant)}${encodeURIComponent(session)}`;
}

/** The tenant's entries behind that of the session `after`; all of them where that is empty. */
export function killRange(tenant: string, after: string): { readonly gt: string; readonly lt: string } {
  const prefix = killPrefix(tenant);
  return { gt: `${prefix}${encodeURIComponent(after)}`, lt: rangeOf(prefix).lt };
}

/** What the chain is told of a kill. */
export function killedDetail({ session, reason, by, note }: Kill): JsonObject {
  return { event: "killed", session, reason, ...(by === null ? {} : { by }), ...(note === null ? {} : { note }) };
}

/** The kill that an event recorded at `time` tells of. */
export function killOf({ session, reason, by, note }: JsonObject, time: string): Kill {
  return {
    session: String(session),
    reason: killReasons.find((known) => known === reason) ?? "operator",
    by: textOrNull(by),
    note: textOrNull(note),
    killed_at: time,
  };
}

/** The kill in a session's entry. One that no gateway wrote stops its session nonetheless, and can be released. */
export function readKill(session: string, text: string): Kill {
  const entry = parse(text);
  const note = "the entry of this kill is damaged";
  if (!isJsonObject(entry)) return { session, reason: "operator", by: null, note, killed_at: "" };
  return { ...killOf(entry, textOrNull(entry.killed_at) ?? ""), session };
}

/** The session whose entry has this key. */
export function sessionIn(key: string): string {
  return decodeURIComponent(lastPart(key));
}

function parse(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return null;
  }
}

function textOrNull(value: Json | undefined): string | null {
  return typeof value === "string" ? value : null;
}

function killPrefix(tenant: string): string {
  return `${tenantPrefix(tenant)}kill/`;
}
