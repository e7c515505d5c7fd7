import { sha256Hex } from "../../action/canonical-json.ts";
import { forgetOldest } from "../../action/recent-map.ts";
import { ApprovalRules } from "../../approval/evidence-rule.ts";
import { KillRules } from "../../kill/evidence-rule.ts";
import { TicketRules } from "../../ticket/evidence-rule.ts";
import { openKey, recordKey, sessionRecordKey } from "../record/key-space.ts";
import { type ChainFault, chainFault, type FirstBad, isChainFault } from "../record/reason.ts";
import { type ActionRecord, type EvidenceRecord, noHash } from "../record/record.ts";
import { isAction, isApprovalEvent, isSessionEvent, readRecord } from "../record/record-text.ts";
import type { Reader } from "../record/store-view.ts";
import { isLeafOf } from "../tree/merkle.ts";
import type { PrunedLeaves } from "../tree/pruned-prefix.ts";

interface SessionEnd {
  readonly index: number;
  readonly hash: string;
}

const rememberedSessions = 10_000;
const maxOpen = 100_000;
/** Far more than may wait in a tenant, and than any two uses of one approval lie apart. */
const remembered = { live: 100_000, consumed: 100_000 };
const maxKills = 100_000;
const rememberedTickets = 100_000;
const ruleTexts = {
  dispatch_without_allow: "expected only an action that was allowed or approved to be dispatched",
  approval_consumed_twice: "expected an approval to be used once, got a second use",
  approval_mismatch: "the approval was not given for this action, or no longer stood",
} as const;
const outOfPlace = "expected an outcome to follow a dispatched decision of its action";

/**
 * What must hold between the records of a chain whose links are sound: each session's own index and hashes leave no
 * gap, only an allowed action is dispatched, or one held for review on an approval that was given for it and not used
 * before, a ticket's uses are counted without a gap, and an outcome answers exactly one dispatched decision.
 * Remembers the sessions seen last, the decisions that are open and the approvals that stand; all are bounded.
 */
export class ActionRules {
  readonly #reader: Reader;
  readonly #tenant: string;
  readonly #pruned: PrunedLeaves | undefined;
  readonly #sessions = new Map<string, SessionEnd>();
  /** Dispatched decisions without outcome so far: action to sequence number. */
  readonly #open = new Map<string, number>();
  readonly #approvals = new ApprovalRules(remembered);
  readonly #kills = new KillRules(maxKills);
  readonly #tickets = new TicketRules(rememberedTickets);

  /** `pruned`: what is left of the records before the first one that is checked. */
  constructor(reader: Reader, tenant: string, pruned?: PrunedLeaves) {
    this.#reader = reader;
    this.#tenant = tenant;
    this.#pruned = pruned;
  }

  /** Takes the next record of the chain; says which rule it breaks. */
  async check(record: EvidenceRecord, hash: string): Promise<ChainFault | undefined> {
    if (isAction(record)) {
      return (await this.#checkSession(record, hash)) ?? this.#checkAction(record) ?? this.#checkTicket(record);
    }
    if (isApprovalEvent(record)) this.#approvals.note(record);
    if (record.kind === "ticket") this.#tickets.note(record);
    this.noteKill(record);
    return undefined;
  }

  /** Takes a record that stayed where the chain was pruned: what it stopped is stopped for those that are checked. */
  noteKill(record: EvidenceRecord): void {
    if (isSessionEvent(record)) this.#kills.note(record);
  }

  #checkTicket(record: ActionRecord): ChainFault | undefined {
    if (this.#tickets.check(record, this.#pruned !== undefined)) return undefined;
    return chainFault("ticket_misused", "expected the next use of a ticket that has one left");
  }

  /** After the last record: what has no outcome must be on the list that the next start settles. */
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
      return this.#open.delete(id) ? undefined : chainFault("outcome_without_decision", outOfPlace);
    }
    if (record.effect !== "dispatched") return undefined;
    if (this.#kills.covers(record))
      return chainFault("allow_after_kill", "expected nothing that is stopped to be dispatched");
    const broken = this.#approvals.check(record);
    if (broken !== undefined) return chainFault(broken, ruleTexts[broken]);
    if (this.#open.has(id))
      return chainFault("second_decision", "expected one dispatched decision an action, got a second");
    this.#open.set(id, record.seq);
    return this.#open.size > maxOpen
      ? chainFault("open_outcome", `expected at most ${maxOpen} open decisions`)
      : undefined;
  }

  async #checkSession(record: ActionRecord, hash: string): Promise<ChainFault | undefined> {
    const { id, index, prev_hash } = record.session;
    const before = this.#sessions.get(id) ?? (await this.#recall(record));
    if (before === undefined) return chainFault("bad_session_link", "the session's index does not lead to this record");
    if (index !== before.index + 1)
      return chainFault("session_gap", `expected session index ${before.index + 1}, got ${index}`);
    if (prev_hash !== before.hash) {
      return chainFault("bad_session_link", "the session's `prev_hash` is not the digest of its record before");
    }
    this.#sessions.delete(id);
    this.#sessions.set(id, { index, hash });
    forgetOldest(this.#sessions, rememberedSessions);
    return undefined;
  }

  /**
   * The end of a session that is not remembered. The index must lead to this very record, so that a session cannot
   * begin twice, and to the one before.
   */
  async #recall(record: ActionRecord): Promise<SessionEnd | undefined> {
    const { id, index } = record.session;
    const own = await this.#reader.get(sessionRecordKey(this.#tenant, id, index));
    if (own !== String(record.seq)) return undefined;
    if (index === 0) return { index: -1, hash: noHash };
    const seq = Number(await this.#reader.get(sessionRecordKey(this.#tenant, id, index - 1)));
    if (!Number.isSafeInteger(seq) || seq >= record.seq) return undefined;
    const text = await this.#reader.get(recordKey(this.#tenant, seq));
    if (text === undefined) return this.#recallPruned(record, seq);
    const before = readRecord(text);
    if (isChainFault(before) || !isAction(before)) return undefined;
    return before.session.id === id ? { index: before.session.index, hash: sha256Hex(text) } : undefined;
  }

  /** A session that goes on after the cut: its record before must be the very leaf that the index leads to. */
  async #recallPruned({ session }: ActionRecord, seq: number): Promise<SessionEnd | undefined> {
    const { index, prev_hash: hash } = session;
    if (this.#pruned === undefined || seq >= this.#pruned.prefix.firstKept) return undefined;
    return isLeafOf(await this.#pruned.at(seq), hash) ? { index: index - 1, hash } : undefined;
  }
}
