import { sha256Hex } from "../action/canonical-json.ts";
import type { Decision } from "../action/decision.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { deepFreeze } from "../action/json.ts";
import { forgetOldest } from "../action/recent-map.ts";
import { maxPastActions, type PastAction, type SessionState, type Taint } from "../action/session-state.ts";
import { type RiskLimit, RiskMeter } from "./risk-meter.ts";
import type { SessionHead } from "./session-head.ts";

const noHistory: readonly PastAction[] = Object.freeze([]);

/** One session in memory. Its size is bounded. */
export class SessionEntry {
  readonly principal: string;
  /** Number of users; a pinned entry is not evicted. */
  pins = 0;
  /** Actions that are being evaluated, and may yet be dispatched. */
  judged = 0;
  readonly tools: ToolTrail;
  #risk: RiskMeter;
  #taints: TaintSet;
  readonly #limit: RiskLimit;
  #actions: number;
  #reviews: number;
  #last: number;
  #history = noHistory;
  #historySize = 0;

  /** `head`: the stored state; absent for a new session. */
  constructor(principal: string, limit: RiskLimit, head?: SessionHead) {
    this.principal = principal;
    this.#limit = limit;
    this.#risk = new RiskMeter(limit, head?.risk);
    this.#taints = new TaintSet(head?.taints);
    this.tools = new ToolTrail(head?.tools, head?.tool_count);
    this.#actions = head?.actions ?? 0;
    this.#reviews = head?.reviews ?? 0;
    this.#last = head?.last ?? 0;
  }

  get risk(): RiskMeter {
    return this.#risk;
  }

  get taints(): TaintSet {
    return this.#taints;
  }

  /** The latest first. */
  get history(): readonly PastAction[] {
    return this.#history;
  }

  /** Approximate bytes of the history. */
  get historySize(): number {
    return this.#historySize;
  }

  /** Time of the last attempted action; milliseconds since 1970. */
  get last(): number {
    return this.#last;
  }

  /** Returns the state that policies see before an action with this tool. */
  state(tool: KnownTool, now: number): SessionState {
    return {
      risk: this.#risk.score(now),
      actions: this.#actions + this.judged,
      reviews: this.#reviews,
      tools: this.tools.count,
      new_tool: !this.tools.has(tool),
      taints: this.#taints.list,
    };
  }

  countReview(): void {
    this.#reviews++;
  }

  /** Adds taints. Returns whether any of them is new. */
  taint(names: readonly string[], { id }: ActionEnvelope, { tool, target }: KnownTool, at: number): boolean {
    const added = names.map((name) => this.#taints.add({ name, target, tool, action: id, at }));
    return added.includes(true);
  }

  /** Clears risk and taints; counts and history stay. Returns a function that restores them beside what came since. */
  reset(): () => void {
    const [risk, taints] = [this.#risk, this.#taints];
    this.#risk = new RiskMeter(this.#limit);
    this.#taints = new TaintSet();
    return () => {
      this.#risk.add(risk.score(this.#last), this.#last);
      for (const taint of taints.list) this.#taints.add(taint);
    };
  }

  /** Adds a decided action to the history. */
  remember(tool: KnownTool, past: PastAction): void {
    const gone = this.#history[maxPastActions - 1];
    this.#last = Math.max(this.#last, past.at);
    this.#history = Object.freeze([past, ...this.#history.slice(0, maxPastActions - 1)]);
    this.#historySize += sizeOf(past) - (gone === undefined ? 0 : sizeOf(gone));
    if (!past.dispatched) return;
    this.#actions++;
    this.tools.add(tool);
  }

  /** Returns the state to store: all but the history. */
  head(): SessionHead {
    return {
      principal: this.principal,
      risk: this.#risk.counted,
      actions: this.#actions,
      reviews: this.#reviews,
      last: this.#last,
      taints: this.#taints.list,
      tools: this.tools.digests,
      tool_count: this.tools.count,
    };
  }
}

const maxTaints = 64;

/** The taints of a session, one per name, the first that came. A taint is in force when it is added, and recorded later. */
export class TaintSet {
  readonly #taints: Map<string, Taint>;
  /** The taints that are not on record: the running attempt to record each, or null. */
  readonly #unrecorded = new Map<string, Promise<void> | null>();
  #list: readonly Taint[] | undefined;

  /** `taints`: those on record already. */
  constructor(taints: readonly Taint[] = []) {
    this.#taints = new Map(taints.map((taint) => [taint.name, Object.freeze(taint)]));
  }

  get list(): readonly Taint[] {
    this.#list ??= Object.freeze([...this.#taints.values()]);
    return this.#list;
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
    this.#list = undefined;
    return true;
  }

  /**
   * Resolves when all taints of these names are on record. Calls `record` for those that are not being recorded, and
   * rejects as it does; they are recorded by the next call then.
   */
  async settle(names: readonly string[], record: (names: readonly string[]) => Promise<void>): Promise<void> {
    const due = names.filter((name) => this.#unrecorded.get(name) === null);
    if (due.length > 0) this.#trackAttempt(due, record(due));
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

const maxToolTrail = 128;

/** The tools of a session: the last 128, and a count of those that were new when they were used. */
export class ToolTrail {
  readonly #digests: Set<string>;
  #count: number;

  constructor(digests: readonly string[] = [], count = 0) {
    this.#digests = new Set(digests);
    this.#count = count;
  }

  get count(): number {
    return this.#count;
  }

  /** In the order of their last use. */
  get digests(): readonly string[] {
    return [...this.#digests];
  }

  has({ digest }: KnownTool): boolean {
    return this.#digests.has(digest);
  }

  add({ digest }: KnownTool): void {
    if (!this.#digests.delete(digest)) this.#count++;
    this.#digests.add(digest);
    forgetOldest(this.#digests, maxToolTrail);
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

/** Builds the history entry of an action. */
export function pastOf(
  { protocol, capability, facts }: ActionEnvelope,
  { tool, target }: KnownTool,
  decision: Decision,
  dispatched: boolean,
  at: number,
): PastAction {
  const [hosts, paths] = [copyPlaces(facts?.hosts), copyPlaces(facts?.paths)];
  return deepFreeze({ at, protocol, tool, target, capability, decision, dispatched, hosts, paths });
}

/** Approximates the bytes of a history entry, as if it shared nothing with others. */
export function sizeOf({ tool, target, hosts, paths }: PastAction): number {
  let size = entryOverhead + tool.length + target.length;
  for (const { length } of hosts) size += length;
  for (const { length } of paths) size += length;
  return size;
}

function copyPlaces(places: readonly string[] = []): readonly string[] {
  return places
    .filter(({ length }) => length <= maxPlaceLength)
    .slice(0, maxPlaces)
    .map(copyText);
}
