import { sha256Hex } from "../kernel/digest.ts";
import type { ActionEnvelope } from "../kernel/envelope.ts";
import { forgetOldest } from "../kernel/forget.ts";
import { mostPastActions, type PastAction, type SessionState, type Taint } from "../kernel/session-state.ts";
import { type RiskLimit, RiskMeter } from "./risk-meter.ts";
import type { SessionHead } from "./session-head.ts";

const mostTools = 128;
const mostTaints = 64;
const noHistory: readonly PastAction[] = Object.freeze([]);

/** What is kept of one session while it is in memory. Its size does not grow with what the session does. */
export class SessionEntry {
  readonly principal: string;
  /** Who uses it now: it stays in memory as long. */
  pins = 0;
  /** Actions that are being judged. */
  judged = 0;
  #risk: RiskMeter;
  #actions: number;
  #reviews: number;
  #last: number;
  readonly #taints: Map<string, Taint>;
  readonly #tools: Set<string>;
  #toolCount: number;
  #history = noHistory;
  #frozenTaints: readonly Taint[] | undefined;

  /** `head`: as it was left; undefined for a session that begins. */
  constructor(principal: string, head: SessionHead | undefined) {
    this.principal = principal;
    this.#risk = new RiskMeter(...(head?.risk ?? [0, 0]));
    this.#actions = head?.actions ?? 0;
    this.#reviews = head?.reviews ?? 0;
    this.#last = head?.last ?? 0;
    this.#taints = new Map((head?.taints ?? []).map((taint) => [taint.name, Object.freeze(taint)]));
    this.#tools = new Set(head?.tools);
    this.#toolCount = head?.tool_count ?? 0;
  }

  /** The latest first. */
  get history(): readonly PastAction[] {
    return this.#history;
  }

  /** Milliseconds since 1970. */
  get last(): number {
    return this.#last;
  }

  get taints(): readonly Taint[] {
    this.#frozenTaints ??= Object.freeze([...this.#taints.values()]);
    return this.#frozenTaints;
  }

  /** What policies see of it before an action. */
  state(action: ActionEnvelope, now: number, limit: RiskLimit): SessionState {
    return {
      risk: this.#risk.score(now, limit),
      actions: this.#actions + this.judged,
      reviews: this.#reviews,
      tools: this.#toolCount,
      new_tool: !this.#tools.has(toolKey(action)),
      taints: this.taints,
    };
  }

  score(now: number, limit: RiskLimit): number {
    return this.#risk.score(now, limit);
  }

  /** The score it comes to. */
  addRisk(points: number, now: number, limit: RiskLimit): number {
    this.#risk.add(points, now, limit);
    return this.#risk.score(now, limit);
  }

  countReview(): void {
    this.#reviews++;
  }

  /** Whether it was not tainted with that yet. Throws RangeError where no more can be remembered. */
  taint(taint: Taint): boolean {
    if (this.#taints.has(taint.name)) return false;
    if (this.#taints.size === mostTaints) throw new RangeError(`a session has at most ${mostTaints} taints`);
    this.#taints.set(taint.name, Object.freeze(taint));
    this.#frozenTaints = undefined;
    return true;
  }

  /** Without taint and risk; what it did stays. */
  reset(): void {
    this.#taints.clear();
    this.#frozenTaints = undefined;
    this.#risk = new RiskMeter();
  }

  /** Takes an action that was decided into its past. */
  remember(action: ActionEnvelope, past: PastAction): void {
    this.#last = Math.max(this.#last, past.at);
    this.#history = Object.freeze([past, ...this.#history.slice(0, mostPastActions - 1)]);
    if (!past.dispatched) return;
    this.#actions++;
    const tool = toolKey(action);
    if (this.#tools.has(tool)) return;
    this.#toolCount++;
    this.#tools.add(tool);
    forgetOldest(this.#tools, mostTools);
  }

  /** What outlives the process: all but the history. */
  head(): SessionHead {
    return {
      principal: this.principal,
      risk: this.#risk.state,
      actions: this.#actions,
      reviews: this.#reviews,
      last: this.#last,
      taints: this.taints,
      tools: [...this.#tools],
      tool_count: this.#toolCount,
    };
  }
}

/** Short, as there are many, and too long for an upstream to name two tools that share one. */
function toolKey({ target, tool }: ActionEnvelope): string {
  return sha256Hex(`${target}\n${tool}`).slice(0, 16);
}
