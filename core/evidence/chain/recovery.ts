import type { BatchOperation } from "../../action/commit-hook.ts";
import { GatewayError } from "../../action/error.ts";
import type { Clock } from "../../action/id.ts";
import { durably, type EvidenceStore, openKey, probeKey, recordKey } from "../record/key-space.ts";
import { isChainFault } from "../record/reason.ts";
import type { ActionRecord } from "../record/record.ts";
import { isAction, readRecord } from "../record/record-text.ts";
import type { Abandoned, ActionRecorder } from "./action-recorder.ts";
import type { ChainTable } from "./chain-table.ts";
import { unknownOutcomeContent } from "./seal.ts";
import type { Writer } from "./writer.ts";

interface RecoveryOptions {
  readonly store: EvidenceStore;
  readonly chains: ChainTable;
  readonly actions: ActionRecorder;
  readonly writer: Writer;
  readonly writerId: string;
  readonly clock: Clock;
  readonly warn: (message: string, fields: object) => void;
  /** Called for each attempt to repair that failed. */
  readonly onFailure: (cause: unknown) => void;
}

/** The work that a former process, or a failed write, left behind. */
interface LeftOpen {
  /** Dispatched decisions whose outcome no process will record. */
  readonly decisions: readonly Abandoned[];
  /** The writes that delete pieces of records that were never written. */
  readonly pieces: readonly BatchOperation[];
}

const settledAtOnce = 256;
const repairIntervalMs = 1_000;

/** Brings the ledger's memory back in line with the disk, at a start and after a failed write. */
export class Recovery {
  readonly #options: RecoveryOptions;
  #isStarted = false;
  #repair: Promise<void> | null = null;
  #repairedMs = Number.NEGATIVE_INFINITY;

  constructor(options: RecoveryOptions) {
    this.#options = options;
  }

  /** Checks every chain against its mark, and records `unknown` for each decision that a former process left open. */
  async start(): Promise<void> {
    await this.#settle(await this.#load(), "process ended before the outcome was recorded");
    this.#isStarted = true;
  }

  /**
   * Begins to repair after a failed write, unless a repair runs or ran within the last second. Needs no timer: demand
   * drives it. A clock set back counts as time passed.
   */
  requestRepair(): void {
    const now = this.#options.clock();
    if (!this.#isStarted || this.#repair !== null || Math.abs(now - this.#repairedMs) < repairIntervalMs) return;
    this.#repairedMs = now;
    this.#repair = this.#reopen()
      .catch((cause: unknown) => this.#options.onFailure(cause))
      .finally(() => {
        this.#repair = null;
      });
  }

  /** Resolves when no repair runs. */
  async settled(): Promise<void> {
    await this.#repair;
  }

  /**
   * Does what a start does, on a store opened anew: after half a record in LevelDB's log, whatever is written behind it
   * can never be read back. Rejects while the disk still fails.
   */
  async #reopen(): Promise<void> {
    const { store, writer, writerId, warn } = this.#options;
    await store.close();
    await store.open();
    await store.put(probeKey, writerId, durably);
    const left = await this.#load();
    writer.resume();
    await this.#settle(left, "evidence could not be written when the outcome was due");
    warn("evidence_repaired", { unknown: left.decisions.length });
  }

  /** Reads the chains back; returns what no process will go on with. */
  async #load(): Promise<LeftOpen> {
    const { store, chains, actions, warn } = this.#options;
    await chains.load();
    for (const [tenant, reason] of chains.refusals) warn("evidence_refused", { tenant, reason });
    return {
      decisions: await actions.findAbandoned(store, chains.tenants),
      pieces: await actions.findAbandonedPieces(store, chains.tenants),
    };
  }

  async #settle({ decisions: abandoned, pieces }: LeftOpen, reason: string): Promise<void> {
    const { commit } = this.#options.writer;
    if (pieces.length > 0) {
      commit.admit("outcome");
      await commit.submitWrites(pieces);
    }
    for (let at = 0; at < abandoned.length; at += settledAtOnce) {
      await Promise.all(abandoned.slice(at, at + settledAtOnce).map((each) => this.#settleOne(each, reason)));
    }
  }

  /** A tenant whose decision cannot be settled is refused; another failure of the disk ends the recovery. */
  async #settleOne(each: Abandoned, reason: string): Promise<void> {
    const { store, chains, writer, warn } = this.#options;
    try {
      const decision = await readAbandoned(store, each);
      const chain = await chains.open(each.tenant);
      const operation: BatchOperation = { type: "del", key: openKey(each.tenant, decision.action.id) };
      writer.commit.admit("outcome");
      const placed = writer.sealAction(chain, unknownOutcomeContent(decision, reason));
      await writer.appendAction(chain, placed, [operation]);
    } catch (error) {
      if (writer.commit.failed || !(error instanceof GatewayError)) throw error;
      chains.refuse(each.tenant, error.detail ?? error.message);
      warn("evidence_refused", { tenant: each.tenant, reason: error.detail ?? error.message });
    }
  }
}

/** Reads the record of an abandoned decision. Throws EVIDENCE_UNAVAILABLE where the store holds anything else. */
async function readAbandoned(store: EvidenceStore, { tenant, seq }: Abandoned): Promise<ActionRecord> {
  const text = Number.isSafeInteger(seq) ? await store.get(recordKey(tenant, seq)) : undefined;
  const record = text === undefined ? undefined : readRecord(text);
  if (record !== undefined && !isChainFault(record) && isAction(record) && record.effect === "dispatched") {
    return record;
  }
  throw new GatewayError("EVIDENCE_UNAVAILABLE", `chain of tenant \`${tenant}\` has no open decision at record ${seq}`);
}
