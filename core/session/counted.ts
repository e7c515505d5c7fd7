import type { BatchOperation, CommitHook } from "../action/commit-hook.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import { SecretTrail } from "./secret-trail.ts";
import type { SessionCache } from "./session-cache.ts";
import { groupId, type KnownTool, type SessionEntry } from "./session-entry.ts";

/** Something that actions count for: a session, or a group of sessions. */
export interface Counted {
  readonly id: string;
  readonly cache: SessionCache;
  readonly entry: SessionEntry;
}

/**
 * The session of an action, the group that it is judged with, and, where that is the group of a task, all sessions of its
 * principal.
 */
export type CountedList = readonly [session: Counted, group: Counted, all?: Counted];

/** The part of an action that says what it counts for. */
export interface Counting {
  readonly tenant: string;
  readonly session: { readonly id: string };
  readonly principal: { readonly id: string };
  readonly task: string | null;
}

/** The ids of the groups that a session counts for. */
export function groupsOf({ principal, task }: SessionEntry): readonly string[] {
  return task === null ? [principal] : [groupId(principal, task), principal];
}

/** Pins sessions and groups until their change is durable, and writes them as they are after `change`. */
export function writeAll(tenant: string, counted: readonly (Counted | undefined)[], change: () => void): CommitHook {
  for (const each of counted) if (each !== undefined) each.entry.pins++;
  return {
    operations: () => {
      change();
      return putAll(tenant, counted);
    },
    end: () => {
      for (const each of counted) if (each !== undefined) each.entry.pins--;
    },
  };
}

export function putAll(tenant: string, counted: readonly (Counted | undefined)[]): readonly BatchOperation[] {
  return counted.flatMap((each) => (each === undefined ? [] : [each.cache.put(tenant, each.id, each.entry)]));
}

/** Notes the time of an action in the groups it counts for. */
export function renewAll([, group, all]: CountedList, at: number): void {
  group.entry.last = Math.max(group.entry.last, at);
  if (all !== undefined) all.entry.last = Math.max(all.entry.last, at);
}

/** Taints a session and the groups it counts for. Returns whether a taint is new to the session. */
export function taintAll(
  counted: CountedList,
  names: readonly string[],
  action: ActionEnvelope,
  known: KnownTool,
  at: number,
): boolean {
  const [isNew = false] = counted.map((each) => each?.entry.taint(names, action, known, at));
  renewAll(counted, at);
  return isNew;
}

/** Throws TAINT_LIMIT where a session, or a group that it counts for, has no room for further taints. */
export function checkRoom(counted: CountedList, { session }: ActionEnvelope, names: readonly string[]): void {
  if (counted.every((each) => each === undefined || each.entry.taints.hasRoom(names))) return;
  throw new GatewayError("TAINT_LIMIT", `session \`${session.id}\`; an operator can reset it`);
}

/** Follows the secrets of an answer from now on: all that a principal does counts together. */
export function learnSecrets({ tenant, output = null }: ActionEnvelope, [, group, all = group]: CountedList): void {
  all.entry.secrets ??= new SecretTrail();
  all.entry.secrets.learn(output);
  all.cache.weigh(tenant, all.id, all.entry);
}

/** Counts a dispatched action for its task, if any, and adds the taints that it brings in. */
export function countDispatched(
  counted: CountedList,
  taints: readonly string[],
  action: ActionEnvelope,
  known: KnownTool,
  at: number,
): void {
  const [, group, all] = counted;
  if (all !== undefined) group.entry.countAction();
  if (taints.length > 0) taintAll(counted, taints, action, known, at);
}
