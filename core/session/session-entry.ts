import { sha256Hex } from "../action/canonical-json.ts";
import type { Decision } from "../action/decision.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import { deepFreeze, isJsonObject, parseKept } from "../action/json.ts";
import { forgetOldest } from "../action/recent-map.ts";
import { maxPastActions, type PastAction, type SessionState, type Taint } from "../action/session-state.ts";
import { type KeyRange, lastPart, rangeOf, tenantPrefix } from "../store/key-range.ts";
import { type CountedRisk, type RiskLimit, RiskMeter } from "./risk-meter.ts";
import type { SecretTrail } from "./secret-trail.ts";
import { type StoredValues, ValueMemory } from "./value-memory.ts";

const maxToolTrail = 128;
const noHistory: readonly PastAction[] = Object.freeze([]);

/**
 * One session in memory, or the sessions of a principal that count together. Its size is bounded. Others change only `pins`,
 * `judged`, `task`, `last`, `stops`, `values` and `secrets`.
 */
export class SessionEntry {
  readonly principal: string;
  /** Number of users; a pinned entry is not evicted. */
  pins = 0;
  /** Actions that are being evaluated, and may yet be dispatched. */
  judged = 0;
  risk: RiskMeter;
  taints: TaintSet;
  /** Time of the last attempted action; milliseconds since 1970. Of a group: as stored, at most an hour older. */
  last: number;
  /** The task of the session's last action. */
  task: string | null;
  /** Sessions of a group that were stopped, and stop the others of the group while they are. */
  stops: readonly string[];
  /** The values that untrusted answers named to a group, and those that were known before; null where nothing was named. */
  values: ValueMemory | null;
  /** The secrets that answers told a principal; null where none did. In memory alone. */
  secrets: SecretTrail | null = null;
  /** The latest first. */
  history = noHistory;
  /** Approximate bytes of the history. */
  historySize = 0;
  readonly #limit: RiskLimit;
  #actions: number;
  #reviews: number;
  /** Digests of the last 128 tools, in the order of their last use. */
  readonly #tools: Set<string>;
  /** Tools that were new when they were used. */
  #toolCount: number;

  /** `head`: the stored state; absent for a new session. */
  constructor(principal: string, limit: RiskLimit, head?: SessionHead) {
    this.principal = principal;
    this.#limit = limit;
    this.risk = new RiskMeter(limit, head?.risk);
    this.taints = new TaintSet(head?.taints);
    this.last = head?.last ?? 0;
    this.task = head?.task ?? null;
    this.stops = head?.stopped_by ?? noStops;
    this.values = head?.untrusted_values === undefined ? null : new ValueMemory(head);
    this.#actions = head?.actions ?? 0;
    this.#reviews = head?.reviews ?? 0;
    this.#tools = new Set(head?.tools);
    this.#toolCount = head?.tool_count ?? 0;
  }

  /** Returns the state that policies see before an action with this tool; `group`: the sessions that count with this one. */
  state({ digest }: KnownTool, now: number, group: SessionEntry): SessionState {
    // Nearly every session has none.
    const isRisky = this.risk.counted[0] > 0 || group.risk.counted[0] > 0;
    return {
      risk: isRisky ? Math.max(this.risk.score(now), group.risk.score(now)) : 0,
      actions: Math.max(this.#actions + this.judged, group.#actions + group.judged),
      reviews: this.#reviews,
      tools: this.#toolCount,
      new_tool: !this.#tools.has(digest),
      taints: this.taints.list.length === 0 ? group.taints.list : joinTaints(this.taints.list, group.taints.list),
    };
  }

  /** Counts a dispatched action. */
  countAction(): void {
    this.#actions++;
  }

  countReview(): void {
    this.#reviews++;
  }

  /** Adds taints. Returns whether any of them is new. */
  taint(names: readonly string[], { id }: ActionEnvelope, { tool, target }: KnownTool, at: number): boolean {
    const added = names.map((name) => this.taints.add({ name, target, tool, action: id, at }));
    return added.includes(true);
  }

  /** Clears risk, taints and values; counts and history stay. Returns a function that restores them beside what came since. */
  reset(): () => void {
    const { risk, taints, values, secrets } = this;
    this.values = null;
    this.secrets = null;
    this.risk = new RiskMeter(this.#limit);
    this.taints = new TaintSet();
    return () => {
      this.risk.add(risk.score(this.last), this.last);
      for (const taint of taints.list) this.taints.add(taint);
      if (values !== null && this.values !== null) values.join(this.values);
      this.values = values;
      this.secrets ??= secrets;
    };
  }

  /** Adds a decided action to the history. */
  remember(action: ActionEnvelope, known: KnownTool, decision: Decision, dispatched: boolean, at: number): void {
    const { protocol, capability, facts } = action;
    const { tool, target, digest } = known;
    const hosts = facts === undefined || facts.hosts.length === 0 ? noPlaces : copyPlaces(facts.hosts);
    const paths = facts === undefined || facts.paths.length === 0 ? noPlaces : copyPlaces(facts.paths);
    const past = deepFreeze({ at, protocol, tool, target, capability, decision, dispatched, hosts, paths });
    const gone = this.history[maxPastActions - 1];
    this.last = Math.max(this.last, at);
    this.history = Object.freeze([past, ...this.history.slice(0, maxPastActions - 1)]);
    this.historySize += sizeOf(past) - (gone === undefined ? 0 : sizeOf(gone));
    if (!dispatched) return;
    this.#actions++;
    const isKnown = this.#tools.delete(digest);
    this.#tools.add(digest);
    if (isKnown) return;
    this.#toolCount++;
    forgetOldest(this.#tools, maxToolTrail);
  }

  /** Returns the state to store: all but the history. */
  head(): SessionHead {
    return {
      principal: this.principal,
      risk: this.risk.counted,
      actions: this.#actions,
      reviews: this.#reviews,
      last: this.last,
      taints: this.taints.list,
      tools: [...this.#tools],
      tool_count: this.#toolCount,
      ...(this.task === null ? {} : { task: this.task }),
      ...(this.stops.length === 0 ? {} : { stopped_by: this.stops }),
      ...(this.values === null ? {} : this.values.stored()),
    };
  }
}

const noStops: readonly string[] = Object.freeze([]);

/** Returns the taints of a session, and those of its group that it has not. */
function joinTaints(own: readonly Taint[], others: readonly Taint[]): readonly Taint[] {
  const further = others.filter(({ name }) => own.every((taint) => taint.name !== name));
  return further.length === 0 ? own : [...own, ...further];
}

const maxTaints = 64;

/** The taints of a session, one per name, the first that came. A taint is in force when it is added, and recorded later. */
export class TaintSet {
  readonly #taints: Map<string, Taint>;
  /** The taints that are not on record: the running attempt to record each, or null. */
  readonly #unrecorded = new Map<string, Promise<void> | null>();
  /** In the order in which they came. */
  list: readonly Taint[];

  /** `taints`: those on record already. */
  constructor(taints: readonly Taint[] = []) {
    this.#taints = new Map(taints.map((taint) => [taint.name, Object.freeze(taint)]));
    this.list = Object.freeze([...this.#taints.values()]);
  }

  /** Returns whether taints of all these names fit. Where they do not, the caller refuses the action that would add them. */
  hasRoom(names: readonly string[]): boolean {
    return this.#taints.size + names.filter((name) => !this.#taints.has(name)).length <= maxTaints;
  }

  /** Returns false where there is one of that name. */
  add(taint: Taint): boolean {
    if (this.#taints.has(taint.name)) return false;
    this.#taints.set(taint.name, Object.freeze(taint));
    this.#unrecorded.set(taint.name, null);
    this.list = Object.freeze([...this.#taints.values()]);
    return true;
  }

  /**
   * Resolves when all taints of these names are on record. Calls `record` for those that are not being recorded, and
   * rejects as it does; they are recorded by the next call then. `renewed`: a name that is recorded again, with the values that
   * came with it.
   */
  async settle(
    names: readonly string[],
    record: (names: readonly string[]) => Promise<void>,
    renewed?: string,
  ): Promise<void> {
    const due = names.filter((name) => this.#unrecorded.get(name) === null);
    if (due.length > 0) this.#trackAttempt(due, record(due));
    if (renewed !== undefined && !due.includes(renewed)) await record([renewed]);
    await Promise.all(names.map((name) => this.#unrecorded.get(name)));
  }

  #trackAttempt(names: readonly string[], attempt: Promise<void>): void {
    const end = (isRecorded: boolean): void => {
      for (const name of names) {
        if (this.#unrecorded.get(name) !== attempt) continue;
        if (isRecorded) this.#unrecorded.delete(name);
        else this.#unrecorded.set(name, null);
      }
    };
    for (const name of names) this.#unrecorded.set(name, attempt);
    attempt.then(
      () => end(true),
      () => end(false),
    );
  }
}

/** A tool of an upstream, in texts that may be kept in memory. */
export interface KnownTool {
  readonly tool: string;
  readonly target: string;
  /** Short, because each session keeps many, and too long for an upstream to find two names that share one. */
  readonly digest: string;
}

const maxKnown = 1_000;

/** Interns the tools that sessions used recently. */
export class ToolTable {
  readonly #known = new Map<string, KnownTool>();

  find({ tool, target }: Pick<ActionEnvelope, "tool" | "target">): KnownTool {
    const key = `${target}\n${tool}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const found = Object.freeze({
      tool: copyText(tool),
      target: copyText(target),
      digest: sha256Hex(key).slice(0, 16),
    });
    this.#known.set(key, found);
    forgetOldest(this.#known, maxKnown);
    return found;
  }
}

/**
 * Copies a text into memory of its own: a slice of a request would keep the whole request in memory. Expects well-formed
 * text, as in every action.
 */
function copyText(text: string): string {
  return Buffer.from(text).toString();
}

const maxPlaces = 4;
const maxPlaceLength = 256;
/** Bytes of an entry beside its texts. */
const entryOverhead = 256;

/** Approximates the bytes of a history entry, as if it shared nothing with others. */
function sizeOf({ tool, target, hosts, paths }: PastAction): number {
  let size = entryOverhead + tool.length + target.length;
  for (const { length } of hosts) size += length;
  for (const { length } of paths) size += length;
  return size;
}

/** The places of nearly every action: it names none. */
const noPlaces: readonly string[] = Object.freeze([]);

function copyPlaces(places: readonly string[]): readonly string[] {
  return places
    .filter(({ length }) => length <= maxPlaceLength)
    .slice(0, maxPlaces)
    .map(copyText);
}

/** The stored state of a session, or of a group: all of it but the history. */
export interface SessionHead extends StoredValues {
  readonly principal: string;
  readonly risk: CountedRisk;
  readonly actions: number;
  readonly reviews: number;
  /** Milliseconds since 1970. */
  readonly last: number;
  readonly taints: readonly Taint[];
  /** Digests of the tools used last. */
  readonly tools: readonly string[];
  readonly tool_count: number;
  /** The task of the last action; absent for none. */
  readonly task?: string;
  /** At most 64 sessions of a group that stopped the others. */
  readonly stopped_by?: readonly string[];
}

/** Begins the id of every group, which is that of its principal, with its task where it has one. */
const groupPrefix = "principal-v1-";

/**
 * The id of the sessions that count together: those of one principal that work on this task; for null, all that the principal
 * has.
 */
export function groupId(principal: string, task: string | null): string {
  return task === null ? principal : `${principal}/${task}`;
}

export function isGroup(id: string): boolean {
  return id.startsWith(groupPrefix);
}

/** `id`: of a session or a group. */
export function headKey(tenant: string, id: string): string {
  const folder = id.startsWith(groupPrefix) ? "principal-head" : "session-head";
  return `${tenantPrefix(tenant)}${folder}/${encodeURIComponent(id)}`;
}

/** The range of the heads of a tenant's groups. */
export function groupRange(tenant: string): KeyRange {
  return rangeOf(headKey(tenant, groupPrefix).slice(0, -groupPrefix.length));
}

/** The range of the heads of a tenant's sessions. */
export function headRange(tenant: string): KeyRange {
  return rangeOf(headKey(tenant, ""));
}

/** Returns the id of a session or group from its key. */
export function sessionOfHead(key: string): string {
  return decodeURIComponent(lastPart(key));
}

/**
 * Parses a head. Throws SESSION_DAMAGED for a damaged one: a session whose risk and taints are unknown may not act as if it
 * were new.
 */
export function readHead(session: string, text: string): SessionHead {
  const head = parseKept(text);
  if (isHead(head)) return head;
  throw new GatewayError("SESSION_DAMAGED", `session \`${session}\`; an operator can reset it`);
}

function isHead(value: unknown): value is SessionHead {
  if (!isJsonObject(value)) return false;
  const { principal, risk, actions, reviews, last, taints, tools, tool_count: count, task, stopped_by: stops } = value;
  const { untrusted_values: values, untrusted_overflow: overflow } = value;
  return (
    typeof principal === "string" &&
    Array.isArray(risk) &&
    risk.length === 2 &&
    [...risk, actions, reviews, last, count].every(isAmount) &&
    Array.isArray(taints) &&
    taints.every(isTaint) &&
    isTexts(tools) &&
    (task === undefined || typeof task === "string") &&
    (stops === undefined || isTexts(stops)) &&
    (values === undefined || typeof values === "string") &&
    (overflow === undefined || overflow === true)
  );
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((text) => typeof text === "string");
}

function isTaint(value: unknown): boolean {
  if (!isJsonObject(value)) return false;
  const { name, target, tool, action, at } = value;
  return [name, target, tool, action].every((text) => typeof text === "string") && isAmount(at);
}

function isAmount(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}
