import type { Reason } from "../record/reason.ts";
import { isAction } from "../record/record-text.ts";
import { countedAs, countedEvents, digestState } from "../state/chain-state.ts";
import { isStateProof, subjectPath } from "../state/state-map.ts";
import type { ShownState } from "../state/state-store.ts";
import type { Checkpoint } from "../tree/checkpoint.ts";
import { Breach, type BundledEntry, type BundledRecord, type BundleHead, type BundlePart } from "./bundle-line.ts";

/** Something missing from a bundle: which part, and the record that is missing where its number is known. */
export interface Lack {
  readonly reason: Reason;
  readonly file: BundlePart;
  readonly seq?: number;
}

/** The session of a bundle and its principal, as far as the bundle names one. */
interface Subjects {
  readonly session: string;
  readonly principal: string | undefined;
}

/** Checks that the states of a bundle say what they say of its session and principal. Throws Breach `bad_state`. */
export function checkStates({ session, states = [] }: BundleHead, entries: readonly BundledEntry[]): void {
  const principal = principalOf(entries);
  for (const { state, ...proofs } of states) {
    const isProven =
      isStateProof(state.map, subjectPath("session", session), proofs.session) &&
      (principal === undefined || isStateProof(state.map, subjectPath("principal", principal), proofs.principal));
    if (!isProven) throw new Breach("bad_state", { file: "states" });
  }
}

/**
 * The first thing that is missing by the states of a bundle; null where all is there that they name. `due` are the checkpoints
 * whose states it has to show: its own, and those that a witness kept.
 */
export function findLack(
  { session, states = [] }: BundleHead,
  entries: readonly BundledEntry[],
  due: readonly Checkpoint[],
): Lack | null {
  const shown = new Set(states.map(({ state }) => `${state.size} ${digestState(state)}`));
  const named = due.filter(({ state }) => state !== undefined);
  if (!named.every(({ size, state }) => shown.has(`${size} ${state}`)))
    return { reason: "state_missing", file: "states" };
  const subjects = { session, principal: principalOf(entries) };
  for (const each of states) {
    const lack = findLackIn(each, entries, subjects);
    if (lack !== undefined) return { file: "states", ...lack };
  }
  return null;
}

/** The principal of a session, by its last action; undefined where there is none. */
export function principalOf(records: readonly BundledRecord[]): string | undefined {
  return records.map(({ record }) => record).findLast(isAction)?.principal.id;
}

function findLackIn(
  { principal, session, state }: ShownState,
  entries: readonly BundledEntry[],
  subjects: Subjects,
): Omit<Lack, "file"> | undefined {
  const records = entries.map(({ record }) => record).filter(({ seq }) => seq < state.size);
  const [end = 0, stops = 0] = session.value;
  if (end !== (records.findLast(isAction)?.seq ?? -1) + 1) return { reason: "tail_missing", seq: Math.max(0, end - 1) };
  const counts = new Map<string, number>();
  for (const record of records) {
    const counted = countedAs(record);
    const name = typeof counted === "object" ? `${counted.kind} ${counted.id}` : counted;
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const countOf = (name: string): number => counts.get(name) ?? 0;
  const stopped = subjects.principal === undefined ? 0 : countOf(`principal ${subjects.principal}`);
  if (countOf(`session ${subjects.session}`) !== stops || stopped !== (principal.value[0] ?? 0)) {
    return { reason: "stop_missing" };
  }
  const event = countedEvents.find((each) => countOf(each) !== state.events[each]);
  if (event === undefined) return undefined;
  return { reason: event === "tenant" || event === "gateway" ? "stop_missing" : `${event}_missing` };
}
