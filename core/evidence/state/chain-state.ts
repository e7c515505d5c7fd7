import { canonicalJson, sha256Hex } from "../../action/canonical-json.ts";
import { isJsonObject, type Json, parseKept } from "../../action/json.ts";
import type { EvidenceRecord } from "../record/record.ts";
import { isAction } from "../record/record-text.ts";
import { type StateMap, subjectPath } from "./state-map.ts";

/** Events that a state counts over the whole chain: by their kind, and stops and releases of the tenant and the gateway. */
export const countedEvents = [
  "configuration",
  "extension",
  "gateway",
  "key",
  "redaction",
  "retention",
  "tenant",
] as const;
type CountedEvent = (typeof countedEvents)[number];
export type EventCounts = Readonly<Record<CountedEvent, number>>;

/** The state of a chain after its first `size` records. Pruning changes no count, since it keeps what is counted. */
export interface ChainState {
  readonly events: EventCounts;
  /**
   * Root (hex) of the map of subjects. Of a session: the number after that of its last record, and its stops and releases;
   * of a principal: its stops and releases.
   */
  readonly map: string;
  readonly size: number;
}

export const emptyState: ChainState = {
  events: { configuration: 0, extension: 0, gateway: 0, key: 0, redaction: 0, retention: 0, tenant: 0 },
  map: "",
  size: 0,
};

/** Parses the text of a state; undefined for one that is none. */
export function parseState(text: string): ChainState | undefined {
  const state = parseKept(text);
  if (!isJsonObject(state) || typeof state.map !== "string" || !isJsonObject(state.events)) return undefined;
  const counts = [state.size, ...Object.values({ ...emptyState.events, ...state.events })];
  return counts.every((count) => Number.isSafeInteger(count) && Number(count) >= 0)
    ? (state as unknown as ChainState)
    : undefined;
}

/** The SHA-256 (hex) by which a checkpoint names its state. */
export function digestState({ events, map, size }: ChainState): string {
  return sha256Hex(canonicalJson({ events: { ...events }, map, size }));
}

/** The event that a record counts as: one of the chain, or one of a session or principal; undefined for any other record. */
export function countedAs(
  record: EvidenceRecord,
): CountedEvent | { readonly kind: "session" | "principal"; readonly id: string } | undefined {
  if (isAction(record)) return undefined;
  const { detail, kind } = record;
  if (kind !== "session") return countedEvents.find((each) => each === kind);
  const { event, scope = "session" } = detail;
  if (event !== "killed" && event !== "released") return undefined;
  if (scope === "tenant" || scope === "gateway") return scope;
  const id: Json | undefined = scope === "session" || scope === "principal" ? detail[scope] : undefined;
  return typeof id === "string" ? { kind: scope as "session" | "principal", id } : undefined;
}

interface SubjectChange {
  readonly kind: "session" | "principal";
  /** The number after that of its last record; undefined where it has no new one. */
  end?: number;
  stops: number;
}

/** The change of a state by some consecutive records. Memory: one entry for each of their sessions and principals. */
export class StateChange {
  readonly #events: Record<CountedEvent, number>;
  readonly #subjects = new Map<string, SubjectChange>();
  #firstKept = 0;

  constructor(before: ChainState) {
    this.#events = { ...before.events };
  }

  /** The first record that the last pruning among these records kept; 0 where there is none. */
  get firstKept(): number {
    return this.#firstKept;
  }

  accept(record: EvidenceRecord): void {
    if (isAction(record)) {
      this.#subject("session", record.session.id).end = record.seq + 1;
      this.#subject("principal", record.principal.id);
      return;
    }
    const counted = countedAs(record);
    if (typeof counted === "string") this.#events[counted]++;
    else if (counted !== undefined) this.#subject(counted.kind, counted.id).stops++;
    const { event, first_kept: firstKept } = record.detail;
    if (record.kind === "retention" && event === "pruned") this.#firstKept = Number(firstKept);
  }

  /**
   * Changes the map of the state before; `leaves` are those that it may have to drop after a pruning. Returns the state after. `rest` is
   * called before each subject, and each page of the map that changed.
   */
  async apply(
    map: StateMap,
    size: number,
    leaves: AsyncIterable<string>,
    rest: () => Promise<unknown>,
  ): Promise<ChainState> {
    for (const [path, { kind, end, stops }] of this.#subjects) {
      await rest();
      const before = await map.get(path);
      const total = (before?.at(-1) ?? 0) + stops;
      await map.set(path, kind === "principal" ? [total] : [end ?? before?.[0] ?? 0, total]);
    }
    if (this.#firstKept > 0) for await (const path of leaves) await this.#forget(map, path);
    return { events: this.#events, map: await map.root(rest), size };
  }

  /** Drops a session whose records were pruned. What stopped it stays in the chain, and is counted on. */
  async #forget(map: StateMap, path: string): Promise<void> {
    const [end = 0, stops] = (await map.get(path)) ?? [];
    if (stops === undefined || end > this.#firstKept) return;
    if (stops === 0) await map.delete(path);
    else await map.set(path, [0, stops]);
  }

  #subject(kind: "session" | "principal", id: string): SubjectChange {
    const path = subjectPath(kind, id);
    const change = this.#subjects.get(path) ?? { kind, stops: 0 };
    this.#subjects.set(path, change);
    return change;
  }
}
