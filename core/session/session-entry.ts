import type { ActionEnvelope } from "../kernel/envelope.ts";
import { mostPastActions, type PastAction, type SessionState, type Taint } from "../kernel/session-state.ts";
import { sizeOf } from "./past-action.ts";
import { type RiskLimit, RiskMeter } from "./risk-meter.ts";
import type { SessionHead } from "./session-head.ts";
import { TaintSet } from "./taint-set.ts";
import type { KnownTool } from "./tool-table.ts";
import { ToolTrail } from "./tool-trail.ts";

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
    const gone = this.#history[mostPastActions - 1];
    this.#last = Math.max(this.#last, past.at);
    this.#history = Object.freeze([past, ...this.#history.slice(0, mostPastActions - 1)]);
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
