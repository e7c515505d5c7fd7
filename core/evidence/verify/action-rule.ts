import { sha256Hex } from "../../action/canonical-json.ts";
import { forgetOldest } from "../../action/recent-map.ts";
import { openKey, recordKey, sessionKey } from "../record/key-space.ts";
import { type ChainFault, chainFault, type FirstBad, isChainFault } from "../record/reason.ts";
import { type ActionRecord, type EvidenceRecord, noHash } from "../record/record.ts";
import { isAction, readRecord } from "../record/record-text.ts";
import type { Reader } from "../record/store-view.ts";
import { isLeafOf } from "../tree/merkle.ts";
import type { PrunedLeaves } from "../tree/pruned-prefix.ts";
import { type RecordRules, RuleSet } from "./record-rule.ts";

interface SessionEnd {
  readonly index: number;
  readonly hash: string;
}

interface ActionRulesOptions {
  readonly reader: Reader;
  readonly tenant: string;
  /** The rules of the features. */
  readonly rules: RecordRules;
  /** The leaves of the records before the first one that is checked; undefined for a chain that was never pruned. */
  readonly pruned: PrunedLeaves | undefined;
}

const maxSessions = 10_000;
const maxOpen = 100_000;
/** Far more approvals, kills or tickets than a tenant has at once, and than lie between two uses of one. */
const maxRemembered = 100_000;

/**
 * Checks what must hold between the records of a chain whose links are sound: each session's own index and hashes leave
 * no gap, an outcome answers exactly one dispatched decision, and the rules of the features hold.
 * Remembers the latest sessions and the open decisions; both are bounded.
 */
export class ActionRules {
  readonly #reader: Reader;
  readonly #tenant: string;
  readonly #rules: RuleSet;
  readonly #pruned: PrunedLeaves | undefined;
  readonly #sessions = new Map<string, SessionEnd>();
  /** Dispatched decisions without outcome so far: action to sequence number. */
  readonly #open = new Map<string, number>();

  constructor({ reader, tenant, rules, pruned }: ActionRulesOptions) {
    this.#reader = reader;
    this.#tenant = tenant;
    this.#rules = new RuleSet(rules, maxRemembered);
    this.#pruned = pruned;
  }

  /** Accepts the next record of the chain; returns the rule it breaks. */
  async check(record: EvidenceRecord, hash: string): Promise<ChainFault | undefined> {
    if (!isAction(record)) {
      this.#rules.readEvent(record);
      return undefined;
    }
    return (
      (await this.#checkSession(record, hash)) ??
      this.#checkAction(record) ??
      this.#rules.checkAction(record, this.#pruned !== undefined)
    );
  }

  /** Accepts a record that was kept where the records around it were pruned. */
  acceptKept(record: EvidenceRecord): void {
    if (!isAction(record)) this.#rules.readKeptEvent(record);
  }

  /** After the last record: every decision without an outcome must be listed as open, for the next start to settle. */
  async findForgotten(): Promise<FirstBad | undefined> {
    for (const [id, seq] of this.#open) {
      if ((await this.#reader.get(openKey(this.#tenant, id))) === String(seq)) continue;
      return { seq, reason: "open_outcome", detail: "the decision has no outcome and is not listed as open" };
    }
    return undefined;
  }

  #checkAction(record: ActionRecord): ChainFault | undefined {
    const { id } = record.action;
    if (record.kind === "outcome") {
      if (this.#open.delete(id)) return undefined;
      const text = "expected an outcome to follow a dispatched decision of its action";
      return chainFault("outcome_without_decision", text);
    }
    if (record.effect !== "dispatched") return undefined;
    const broken = this.#rules.checkDispatch(record);
    if (broken !== undefined) return broken;
    if (this.#open.has(id)) {
      return chainFault("second_decision", "expected one dispatched decision an action, got a second");
    }
    this.#open.set(id, record.seq);
    if (this.#open.size <= maxOpen) return undefined;
    return chainFault("open_outcome", `expected at most ${maxOpen} open decisions`);
  }

  async #checkSession(record: ActionRecord, hash: string): Promise<ChainFault | undefined> {
    const { id, index, prev_hash } = record.session;
    const before = this.#sessions.get(id) ?? (await this.#readSessionEnd(record));
    if (before === undefined) {
      return chainFault("bad_session_link", "the session's index does not lead to this record");
    }
    if (index !== before.index + 1) {
      return chainFault("session_gap", `expected session index ${before.index + 1}, got ${index}`);
    }
    if (prev_hash !== before.hash) {
      return chainFault("bad_session_link", "the session's `prev_hash` is not the digest of its record before");
    }
    this.#sessions.delete(id);
    this.#sessions.set(id, { index, hash });
    forgetOldest(this.#sessions, maxSessions);
    return undefined;
  }

  /**
   * Reads the end of a session that is not remembered. The index must lead to this very record, so that a session cannot
   * begin twice, and to the one before.
   */
  async #readSessionEnd(record: ActionRecord): Promise<SessionEnd | undefined> {
    const { id, index } = record.session;
    const own = await this.#reader.get(sessionKey(this.#tenant, id, index));
    if (own !== String(record.seq)) return undefined;
    if (index === 0) return { index: -1, hash: noHash };
    const seq = Number(await this.#reader.get(sessionKey(this.#tenant, id, index - 1)));
    if (!Number.isSafeInteger(seq) || seq >= record.seq) return undefined;
    const text = await this.#reader.get(recordKey(this.#tenant, seq));
    if (text === undefined) return this.#readPrunedEnd(record, seq);
    const before = readRecord(text);
    if (isChainFault(before) || !isAction(before)) return undefined;
    return before.session.id === id ? { index: before.session.index, hash: sha256Hex(text) } : undefined;
  }

  /** The end of a session that continues after the cut: the record before must be the leaf that the index leads to. */
  async #readPrunedEnd({ session }: ActionRecord, seq: number): Promise<SessionEnd | undefined> {
    const { index, prev_hash: hash } = session;
    if (this.#pruned === undefined || seq >= this.#pruned.prefix.firstKept) return undefined;
    return isLeafOf(await this.#pruned.at(seq), hash) ? { index: index - 1, hash } : undefined;
  }
}
