import type { ActionEnvelope } from "../action/envelope.ts";
import type { Evaluation } from "../action/evaluation.ts";
import { RecentMap } from "../action/recent-map.ts";

/** An action and what was decided about it. */
interface RecentDecision {
  /** As policy saw it, but for the answer: that is kept nowhere. */
  readonly action: ActionEnvelope;
  readonly evaluation: Evaluation;
}

interface RecentLimits {
  /** Over all tenants. */
  readonly decisions: number;
  /** About what they take in memory, over all tenants. */
  readonly bytes: number;
}

const usualLimits: RecentLimits = { decisions: 1_000, bytes: 8_388_608 };

/** Where no values are to be kept, none are: not in memory either. */
export function recentLimits({ storeValues }: { readonly storeValues: boolean }): RecentLimits {
  return storeValues ? usualLimits : { decisions: 0, bytes: 0 };
}

/** What an action and its evaluation take beside what can be large; names are of bounded length. */
const frameBytes = 2_048;

/** What one decision may take of the whole: a greater one is not remembered. */
const greatestShare = 16;

/**
 * The last decisions, whole, so that they can be explained: in memory alone, and gone with the process. Where there are
 * too many, the tenant that has most of them loses its oldest: nobody's traffic makes another tenant's forgotten.
 */
export class RecentActions {
  readonly #limits: RecentLimits;
  readonly #tenants = new Map<string, Shelf>();
  #count = 0;
  #bytes = 0;

  constructor(limits: RecentLimits) {
    this.#limits = limits;
  }

  /** Call for each evaluation that goes on record; a second time it changes nothing. */
  note(action: ActionEnvelope, evaluation: Evaluation): void {
    if (this.#limits.decisions === 0) return;
    const most = Math.floor(this.#limits.bytes / greatestShare);
    const bytes = frameBytes + weigh(growing(action, evaluation), most);
    if (bytes > most) return;
    const shelf = this.#tenants.get(action.tenant) ?? { kept: new RecentMap<Kept>(), bytes: 0 };
    this.#tenants.set(action.tenant, shelf);
    if (shelf.kept.peek(evaluation.id) !== undefined) return;
    shelf.kept.set(evaluation.id, { decided: { action, evaluation }, bytes });
    this.#add(shelf, 1, bytes);
    while (this.#count > this.#limits.decisions || this.#bytes > this.#limits.bytes) this.#forgetOne(shelf);
  }

  /** The decision of that id, or the one about the input of the action of that id; undefined where it is not remembered. */
  find(tenant: string, id: string): RecentDecision | undefined {
    const kept = this.#tenants.get(tenant)?.kept;
    if (kept === undefined) return undefined;
    const known = kept.peek(id);
    if (known !== undefined) return known.decided;
    for (const [, { decided }] of kept.entries())
      if (decided.action.id === id && decided.evaluation.phase === "input") return decided;
    return undefined;
  }

  /** Takes the oldest from the tenant that has more than its share: whoever came last, in nearly every case. */
  #forgetOne(latest: Shelf): void {
    const share = this.#bytes / this.#tenants.size;
    const shelf = latest.bytes >= share ? latest : this.#greatest();
    for (const [id, { bytes }] of shelf.kept.entries()) {
      shelf.kept.delete(id);
      this.#add(shelf, -1, -bytes);
      return;
    }
  }

  #greatest(): Shelf {
    return [...this.#tenants.values()].reduce((most, each) => (each.bytes > most.bytes ? each : most));
  }

  #add(shelf: Shelf, count: number, bytes: number): void {
    this.#count += count;
    this.#bytes += bytes;
    shelf.bytes += bytes;
  }
}

/** What of a decision has any size: all else is on the road of every action, and would be weighed for nothing. */
function growing({ arguments: args, continuation, history }: ActionEnvelope, evaluation: Evaluation): unknown[] {
  const parts: unknown[] = [args, continuation ?? null, history ?? null];
  for (const { findings } of evaluation.verdicts) if (findings.length > 0) parts.push(findings);
  for (const { findings } of evaluation.shadow) if (findings.length > 0) parts.push(findings);
  return parts;
}

interface Kept {
  readonly decided: RecentDecision;
  readonly bytes: number;
}

interface Shelf {
  readonly kept: RecentMap<Kept>;
  bytes: number;
}

/** What an object, a list or a text takes beside what is in it; no more than a guess at what an engine takes. */
const overhead = 24;

/**
 * About how many bytes of memory a value holds that is made of JSON and nothing else: what is shared counts each time. Stops
 * at `most`: the answer is then more than that, and no more work was done than that took.
 */
function weigh(value: unknown, most: number): number {
  let weight = 0;
  const open: unknown[] = [value];
  for (let next = open.pop(); weight <= most && next !== undefined; next = open.pop()) {
    weight += overhead;
    if (typeof next === "string") weight += next.length * 2;
    if (typeof next !== "object" || next === null) continue;
    if (Array.isArray(next)) for (const item of next as readonly unknown[]) open.push(item ?? null);
    else weight += pushMembers(next, open);
  }
  return weight;
}

/** Returns what their names take. */
function pushMembers(value: object, open: unknown[]): number {
  let length = 0;
  for (const [name, member] of Object.entries(value) as [string, unknown][]) {
    length += name.length;
    open.push(member ?? null);
  }
  return length;
}
