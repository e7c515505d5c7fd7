import type { Decision } from "../../core/action/decision.ts";
import type { ActionRecord, EventRecord, EvidenceRecord } from "../../core/evidence/record/record.ts";

/** The requests of an agent in one session, and the answers to them that came whole. */
export interface Errand {
  readonly label: string;
  sent: number;
  /** Answers of an upstream or a model. */
  served: number;
  /** Refusals: the decision that each names, by the id of its action. */
  readonly refused: Map<string, Decision>;
}

/** A change that somebody asked for over the admin port. */
export interface AskedChange {
  /** The `event` or `action` of the record that it leaves. */
  readonly event: string;
  /** A value that is in no other record of this event. */
  readonly mark: string;
  isAnswered: boolean;
}

/** Everything that was asked of one gateway process, and what was answered whole. */
export class Acknowledged {
  readonly changes: AskedChange[] = [];
  readonly #errands = new Map<string, Errand>();

  get errands(): readonly Errand[] {
    return [...this.#errands.values()];
  }

  /** Returns the errand of a session; a new one where there is none. */
  errand(label: string): Errand {
    const errand = this.#errands.get(label) ?? { label, sent: 0, served: 0, refused: new Map() };
    this.#errands.set(label, errand);
    return errand;
  }

  /** Remembers a change that is about to be asked for. */
  change(event: string, mark: string): AskedChange {
    const change = { event, mark, isAnswered: false };
    this.changes.push(change);
    return change;
  }
}

/** Describes what was acknowledged and is not in the records of that time, or is there twice: a line each. */
export function findLosses(acknowledged: Acknowledged, records: readonly EvidenceRecord[]): readonly string[] {
  const events = records.filter((record) => "detail" in record);
  return [
    ...acknowledged.errands.flatMap((errand) => findErrandLosses(errand, recordsOf(errand, records))),
    ...acknowledged.changes.flatMap((change) => findChangeLosses(change, events)),
  ];
}

/** Returns the records that alone show something acknowledged: each of them lost is a loss. */
export function findOwed(
  acknowledged: Acknowledged,
  records: readonly EvidenceRecord[],
): readonly { readonly record: EvidenceRecord; readonly of: string }[] {
  const whole = acknowledged.errands.filter(({ sent, served, refused }) => sent === served + refused.size);
  const changes = acknowledged.changes.filter(({ isAnswered }) => isAnswered);
  return [
    ...whole.flatMap((errand) => recordsOf(errand, records).map((record) => ({ record, of: errand.label }))),
    ...changes.flatMap((change) =>
      records
        .filter((record) => "detail" in record && isRecordOf(change, record))
        .map((record) => ({ record, of: change.event })),
    ),
  ];
}

/** Returns whether an event records a change. */
export function isRecordOf({ event, mark }: AskedChange, { detail }: EventRecord): boolean {
  return (detail.event === event || detail.action === event) && JSON.stringify(detail).includes(JSON.stringify(mark));
}

/** The decisions of an errand at that time, and their outcomes: not those of earlier decisions. */
function recordsOf({ label }: Errand, records: readonly EvidenceRecord[]): readonly ActionRecord[] {
  const actions = records.filter(
    (record): record is ActionRecord => "action" in record && record.session.label === label,
  );
  const decided = new Set(actions.filter(({ kind }) => kind === "decision").map(({ action }) => action.id));
  return actions.filter(({ action }) => decided.has(action.id));
}

function findErrandLosses(errand: Errand, records: readonly ActionRecord[]): readonly string[] {
  const { label, sent, served, refused } = errand;
  const decisions = new Map(
    records.filter(({ kind }) => kind === "decision").map((record) => [record.action.id, record]),
  );
  const successes = records.filter(({ kind, effect }) => kind === "outcome" && effect === "success").length;
  const losses: string[] = [];
  if (decisions.size < served + refused.size || decisions.size > sent) {
    losses.push(`${label}: ${sent} sent, ${served} served and ${refused.size} refused, ${decisions.size} decisions`);
  }
  if (successes < served) losses.push(`${label}: ${served} served, ${successes} outcomes \`success\``);
  for (const [id, decision] of refused) {
    const record = decisions.get(id);
    const [found, effect] = [record?.evaluation?.decision, record?.effect];
    if (found === decision && effect === "not_dispatched") continue;
    losses.push(`${label}: action ${id} was refused by \`${decision}\`, the chain has \`${found}\`, \`${effect}\``);
  }
  return losses;
}

function findChangeLosses(change: AskedChange, events: readonly EventRecord[]): readonly string[] {
  const count = events.filter((record) => isRecordOf(change, record)).length;
  const { event, mark, isAnswered } = change;
  if (count === 1 || (count === 0 && !isAnswered)) return [];
  return [`\`${event}\` of ${mark} was ${isAnswered ? "acknowledged" : "asked for"}, the chain has ${count} records`];
}

/** Follows a chain from kill to kill: each dispatched decision has one outcome, at the latest after the next start. */
export class Settlement {
  /** Dispatched decisions without outcome. */
  readonly #open = new Set<string>();
  /** How many actions of a session were dispatched, by its label. */
  readonly dispatched: Map<string, number> = new Map();
  /** Outcomes that nobody knows. */
  unknownCount = 0;

  /** Reads the records that one gateway left beside those of before; describes what does not fit, a line each. */
  add(records: readonly EvidenceRecord[]): readonly string[] {
    const left = new Set(this.#open);
    const faults = records.flatMap((record) => ("action" in record ? this.#addAction(record, left) : []));
    for (const id of left) if (this.#open.has(id)) faults.push(`${id} was in flight at a kill, and has no outcome`);
    return faults;
  }

  #addAction({ kind, effect, action, session }: ActionRecord, left: ReadonlySet<string>): readonly string[] {
    if (kind === "decision") {
      if (effect !== "dispatched") return [];
      this.#open.add(action.id);
      const label = session.label ?? "";
      this.dispatched.set(label, (this.dispatched.get(label) ?? 0) + 1);
      return [];
    }
    if (effect === "unknown") this.unknownCount++;
    if (!this.#open.delete(action.id)) return [`${action.id} has an outcome beside its one, or without a dispatch`];
    if (effect === "unknown" || !left.has(action.id)) return [];
    return [`${action.id} was in flight at a kill, and its outcome is \`${effect}\``];
  }
}

/** The calls that reached upstream and provider by their own logs, by the mark of each: `<label> <more>`. */
export class Receipts {
  readonly #counts = new Map<string, number>();
  readonly #limits = new Map<string, number>();
  readonly #countsByLabel = new Map<string, number>();
  /** Labels with calls that were not compared with the chain yet. */
  readonly #fresh = new Set<string>();
  total = 0;

  /** Allows a call to arrive so often, where that is not once. */
  limit(mark: string, max: number): void {
    this.#limits.set(mark, max);
  }

  of(mark: string): number {
    return this.#counts.get(mark) ?? 0;
  }

  /** Adds what arrived; describes what arrived too often, a line each. */
  add(marks: readonly string[]): readonly string[] {
    this.total += marks.length;
    for (const mark of marks) {
      const [label = ""] = mark.split(" ");
      this.#fresh.add(label);
      this.#counts.set(mark, this.of(mark) + 1);
      this.#countsByLabel.set(label, (this.#countsByLabel.get(label) ?? 0) + 1);
    }
    return [...new Set(marks)].flatMap((mark) => {
      const max = this.#limits.get(mark) ?? 1;
      return this.of(mark) > max ? [`\`${mark}\` arrived ${this.of(mark)} times, expected at most ${max}`] : [];
    });
  }

  /** Describes sessions of which more arrived than the whole chain says was dispatched, a line each. */
  findUndecided(dispatched: ReadonlyMap<string, number>): readonly string[] {
    const labels = [...this.#fresh];
    this.#fresh.clear();
    return labels.flatMap((label) => {
      const [arrived, max] = [this.#countsByLabel.get(label) ?? 0, dispatched.get(label) ?? 0];
      return arrived > max ? [`${arrived} calls of \`${label}\` arrived, the chain has ${max} dispatched`] : [];
    });
  }
}
