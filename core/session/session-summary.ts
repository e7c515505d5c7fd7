import { isJsonObject } from "../kernel/json.ts";
import { parseKept } from "../kernel/kept-json.ts";
import { tenantPrefix } from "../kernel/tenant-key.ts";

/** What is left of the sessions of a tenant that were forgotten. */
export interface ForgottenSessions {
  readonly sessions: number;
  /** All actions of them that were let through. */
  readonly actions: number;
  /** The highest risk any of them had when it was seen last. */
  readonly highest_risk: number;
}

const none: ForgottenSessions = { sessions: 0, actions: 0, highest_risk: 0 };

export function summaryKey(tenant: string): string {
  return `${tenantPrefix(tenant)}session-summary`;
}

/** What was forgotten before goes on; a text that no gateway wrote counts as nothing: it permits nothing. */
export function readSummary(text: string | undefined): ForgottenSessions {
  const summary = text === undefined ? null : parseKept(text);
  if (!isJsonObject(summary)) return none;
  const { sessions, actions, highest_risk: highest } = summary;
  return [sessions, actions, highest].every((count) => Number.isSafeInteger(count))
    ? (summary as unknown as ForgottenSessions)
    : none;
}

export function addSummary(one: ForgottenSessions, other: ForgottenSessions): ForgottenSessions {
  return {
    sessions: one.sessions + other.sessions,
    actions: one.actions + other.actions,
    highest_risk: Math.max(one.highest_risk, other.highest_risk),
  };
}
