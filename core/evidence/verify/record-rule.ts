import type { ChainFault } from "../record/reason.ts";
import type { ActionRecord, EventRecord } from "../record/record.ts";

/**
 * A rule of one feature over the records of a chain: an approval is used once, nothing runs after a kill.
 * The verifiers know the chain alone; features bring their rules.
 */
export interface RecordRule {
  /** Starts a check of one chain or bundle that remembers at most `maxRemembered` subjects and drops the oldest first. */
  start(maxRemembered: number): RecordCheck;
}

/** One run of a rule over records in the order of their chain. Methods that a rule does not need are absent. */
export interface RecordCheck {
  /** Accepts an event. */
  readEvent?(event: EventRecord): void;
  /** Accepts an event that was kept where the records around it were pruned. */
  readKeptEvent?(event: EventRecord): void;
  /** Checks whether a dispatched decision was permitted. */
  checkDispatch?(decision: ActionRecord): ChainFault | undefined;
  /** Checks any record of an action. `hasGap`: records before it may be missing. */
  checkAction?(record: ActionRecord, hasGap: boolean): ChainFault | undefined;
  /** After the last record: sequence numbers of break-glass approvals without a post-mortem. */
  missingPostMortems?(): readonly number[];
}

/** The rules of a verification. Never empty: a verifier without rules would accept any story. */
export type RecordRules = readonly [RecordRule, ...RecordRule[]];

/** The checks of all rules as one: the first breach counts. */
export class RuleSet {
  readonly #checks: readonly RecordCheck[];

  /** Throws TypeError without rules. */
  constructor(rules: RecordRules, maxRemembered: number) {
    if (rules.length === 0) throw new TypeError("evidence: expected the rules of a verification, got none");
    this.#checks = rules.map((rule) => rule.start(maxRemembered));
  }

  readEvent(event: EventRecord): void {
    for (const check of this.#checks) check.readEvent?.(event);
  }

  readKeptEvent(event: EventRecord): void {
    for (const check of this.#checks) check.readKeptEvent?.(event);
  }

  checkDispatch(decision: ActionRecord): ChainFault | undefined {
    for (const check of this.#checks) {
      const broken = check.checkDispatch?.(decision);
      if (broken !== undefined) return broken;
    }
    return undefined;
  }

  checkAction(record: ActionRecord, hasGap: boolean): ChainFault | undefined {
    for (const check of this.#checks) {
      const broken = check.checkAction?.(record, hasGap);
      if (broken !== undefined) return broken;
    }
    return undefined;
  }

  missingPostMortems(): readonly number[] {
    return this.#checks.flatMap((check) => check.missingPostMortems?.() ?? []);
  }
}
