import { sha256Hex } from "../action/canonical-json.ts";
import type { Decision } from "../action/decision.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { deepFreeze } from "../action/json.ts";
import { forgetOldest } from "../action/recent-map.ts";
import { maxPastActions, type PastAction, type SessionState, type Taint } from "../action/session-state.ts";
import { type RiskLimit, RiskMeter } from "./risk-meter.ts";
import type { SessionHead } from "./session-head.ts";

const noHistory: readonly PastAction[] = Object.freeze([]);

/** What is kept of one session while it is in memory. Its size does not grow with what the session does. */
export class SessionEntry {
  readonly principal: string;
  /** Who uses it now: it stays in memory as long. */
  pins = 0;
  /** Actions that are being judged, and may yet be let through. */
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

  /** `head`: as it was left; without one, it begins. */
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

  /** About how many bytes its history takes. */
  get historySize(): number {
    return this.#historySize;
  }

  /** When it last attempted something; milliseconds since 1970. */
  get last(): number {
    return this.#last;
  }

  /** What policies see of it before an action with this tool. */
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

  /** Whether it was not tainted with all of these before. */
  taint(names: readonly string[], { id }: ActionEnvelope, { tool, target }: KnownTool, at: number): boolean {
    const added = names.map((name) => this.#taints.add({ name, target, tool, action: id, at }));
    return added.includes(true);
  }

  /** Takes risk and taints away; what it did stays. Returns what puts back what was taken, beside what came since. */
  reset(): () => void {
    const [risk, taints] = [this.#risk, this.#taints];
    this.#risk = new RiskMeter(this.#limit);
    this.#taints = new TaintSet();
    return () => {
      this.#risk.add(risk.score(this.#last), this.#last);
      this.#restoreTaints(taints.list);
    };
  }

  /** Takes an action that was decided into its past. */
  remember(tool: KnownTool, past: PastAction): void {
    const gone = this.#history[maxPastActions - 1];
    this.#last = Math.max(this.#last, past.at);
    this.#history = Object.freeze([past, ...this.#history.slice(0, maxPastActions - 1)]);
    this.#historySize += sizeOf(past) - (gone === undefined ? 0 : sizeOf(gone));
    if (!past.dispatched) return;
    this.#actions++;
    this.tools.add(tool);
  }

  /** What outlives the process: all but the history. */
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

  #restoreTaints(taints: readonly Taint[]): void {
    for (const taint of taints) this.#taints.add(taint);
  }
}

const most = 64;

/**
 * What a session is tainted with: one taint of a name, the first that came. A taint is in force when it is added, and
 * remembers until when it is not on record.
 */
export class TaintSet {
  readonly #taints: Map<string, Taint>;
  /** Of those that are not on record: the attempt that is under way, or null. */
  readonly #unrecorded = new Map<string, Promise<void> | null>();
  #list: readonly Taint[] | undefined;

  /** `taints`: those on record. */
  constructor(taints: readonly Taint[] = []) {
    this.#taints = new Map(taints.map((taint) => [taint.name, Object.freeze(taint)]));
  }

  get list(): readonly Taint[] {
    this.#list ??= Object.freeze([...this.#taints.values()]);
    return this.#list;
  }

  /** Whether one more taint of each name may come. Whoever finds no room refuses what would bring it. */
  hasRoom(names: readonly string[]): boolean {
    return this.#taints.size + names.filter((name) => !this.#taints.has(name)).length <= most;
  }

  /** Whether there was none of that name. */
  add(taint: Taint): boolean {
    if (this.#taints.has(taint.name)) return false;
    this.#taints.set(taint.name, Object.freeze(taint));
    this.#unrecorded.set(taint.name, null);
    this.#list = undefined;
    return true;
  }

  /**
   * Resolves when all taints of these names are on record; `record` is called for those that nobody is recording.
   * Rejects with what it rejects with; then these are recorded by the next who asks.
   */
  async settle(names: readonly string[], record: (names: readonly string[]) => Promise<void>): Promise<void> {
    const due = names.filter((name) => this.#unrecorded.get(name) === null);
    if (due.length > 0) this.#await(due, record(due));
    await Promise.all(names.map((name) => this.#unrecorded.get(name)));
  }

  #await(names: readonly string[], attempt: Promise<void>): void {
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

/** Which tools a session used: the last 128, and how many that were not among these when they were used. */
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

  /** The one used last is the last. */
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

/** A tool of an upstream, in texts that may be kept. */
export interface KnownTool {
  readonly tool: string;
  readonly target: string;
  /** Short, as each session keeps many, and too long for an upstream to name two tools that share one. */
  readonly digest: string;
}

const maxKnown = 1_000;

/** The tools that were used last by any session, each told once. */
export class ToolTable {
  readonly #known = new Map<string, KnownTool>();

  find({ tool, target }: Pick<ActionEnvelope, "tool" | "target">): KnownTool {
    const key = `${target}\n${tool}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const found = Object.freeze({ tool: ownText(tool), target: ownText(target), digest: sha256Hex(key).slice(0, 16) });
    this.#known.set(key, found);
    forgetOldest(this.#known, maxKnown);
    return found;
  }
}

/**
 * The same text in memory of its own. One that was cut out of a request keeps all of the request in memory as long as it
 * is kept itself. Expects well-formed text, as every action's is.
 */
function ownText(text: string): string {
  return Buffer.from(text).toString();
}

const maxPlaces = 4;
const maxPlace = 256;
/** What its members and lists take beside their texts. */
const overhead = 256;

/** What a session remembers of an action. */
export function pastOf(
  { protocol, capability, facts }: ActionEnvelope,
  { tool, target }: KnownTool,
  decision: Decision,
  dispatched: boolean,
  at: number,
): PastAction {
  const [hosts, paths] = [placesIn(facts?.hosts), placesIn(facts?.paths)];
  return deepFreeze({ at, protocol, tool, target, capability, decision, dispatched, hosts, paths });
}

/** About how many bytes it takes in memory, as if it shared nothing with others. */
export function sizeOf({ tool, target, hosts, paths }: PastAction): number {
  return overhead + sum([tool, target]) + sum(hosts) + sum(paths);
}

function placesIn(places: readonly string[] = []): readonly string[] {
  return places
    .filter(({ length }) => length <= maxPlace)
    .slice(0, maxPlaces)
    .map(ownText);
}

function sum(texts: readonly string[]): number {
  return texts.reduce((total, { length }) => total + length, 0);
}
