import { setImmediate } from "node:timers/promises";
import type { BatchOperation } from "../action/commit-hook.ts";
import type { Pause } from "../action/envelope.ts";
import { type Clock, poolRandom, type Random } from "../action/id.ts";
import type { JsonObject } from "../action/json.ts";
import type { Pace } from "../store/pace.ts";
import { ApprovalEvidence } from "./approval-evidence.ts";
import { ActionRecorder, type Stored } from "./chain/action-recorder.ts";
import type { BatchThread } from "./chain/batch-thread.ts";
import { type ChainStatus, ChainTable } from "./chain/chain-table.ts";
import type { CommitObserver } from "./chain/group-commit.ts";
import { type HighWater, HighWaterFile, HighWaterMemory, type Mark } from "./chain/high-water.ts";
import { rotateSigningKey } from "./chain/key-rotation.ts";
import type { OuterMark } from "./chain/outer-mark.ts";
import { Recovery } from "./chain/recovery.ts";
import { advanceEpoch, checkIntegers } from "./chain/seal.ts";
import {
  findSessions,
  listRecords,
  listSessions,
  type Page,
  type PageRequest,
  readSessions,
  type SessionSummary,
} from "./chain/session-record.ts";
import { Writer } from "./chain/writer.ts";
import type { KeyStore } from "./key/key-folder.ts";
import type { WrappingKeyStore } from "./key/wrapping-key.ts";
import { type Disclosure, discloseRecord, FieldHider, type FieldPolicy } from "./private/private-field.ts";
import { type ChainReading, LocalReading } from "./reading/chain-reading.ts";
import { ThreadReading } from "./reading/thread-reading.ts";
import type { EvidenceStore } from "./record/key-space.ts";
import type { ActionRecord, EventKind, EvidenceRecord } from "./record/record.ts";
import { type Reader, readFault, rootMessage } from "./record/store-view.ts";
import { type Compact, type Erased, Erasure, type ErasureRequest } from "./retention/erasure.ts";
import { type Pruned, type PruneRequest, type PruneTools, Retention } from "./retention/retention.ts";
import type { RecordRules } from "./verify/record-rule.ts";
import type { VerifyReport, VerifyWatch } from "./verify/verification.ts";

/** Kinds that callers record; those that introduce a signing key or record a pruning are the ledger's own. */
type RecordableKind = Exclude<EventKind, "genesis" | "key" | "retention">;

const defaultQueueLimit = 10_000;

/**
 * The evidence of every tenant: one hash chain each, on one store, through one writer.
 *
 * A call that resolves is durable: synced in the store, then marked in the high-water file. One that rejects with
 * EVIDENCE_UNAVAILABLE may or may not be on disk, and must not be acted on. After a failed write nothing is accepted until
 * the store was reopened, every chain read back and a probe written; attempts follow demand, at most one a second.
 * A tenant whose chain is not sound is refused alone.
 */
export class Ledger {
  /** Records the decisions and outcomes of actions. */
  readonly actions: ActionRecorder;
  /** The evidence of approvals, for the approval queue. */
  readonly approvals: ApprovalEvidence;
  readonly #options: LedgerOptions;
  readonly #store: EvidenceStore;
  readonly #highWater: HighWater;
  readonly #chains: ChainTable;
  readonly #writer: Writer;
  readonly #reading: ChainReading;
  readonly #erasure: Erasure;
  readonly #retention: Retention;
  readonly #recovery: Recovery;

  private constructor(options: LedgerOptions, highWater: HighWater, epoch: number) {
    const { store, holdsStore, clock, configDigest, observer, queueLimit: limit = defaultQueueLimit } = options;
    const random = poolRandom(options.random);
    const pause = options.pause ?? (() => setImmediate());
    this.#options = options;
    this.#store = store;
    this.#highWater = highWater;
    const { outerMark = null, keys, wrappingKeys, batchThread } = options;
    this.#chains = new ChainTable({ store, highWater, outerMark, keys, wrappingKeys, random });
    const stamp = { clock, random, configDigest, writer: { epoch, id: options.writerId } };
    const onFailure = (cause: unknown): void => this.#warnOf("evidence_write_failed", cause);
    const onRefused = (): void => this.#recovery.requestRepair();
    this.#writer = new Writer(
      { store, highWater, outerMark, limit, holdsStore, observer, batchThread, onFailure, onRefused },
      stamp,
    );
    this.actions = new ActionRecorder({
      chains: this.#chains,
      writer: this.#writer,
      limit,
      hider: new FieldHider(options.fieldPolicy, random),
      random,
      storeLabels: options.fieldPolicy.storeLabels,
      pause,
      stored: options.stored ?? (() => undefined),
    });
    this.approvals = new ApprovalEvidence({
      store,
      chains: this.#chains,
      markOf: (tenant) => highWater.marks.get(tenant),
      writable: () => this.writable,
      pause,
      record: (tenant, detail, operations) => this.recordEvent(tenant, "approval", detail, operations),
    });
    const upkeep = { store, chains: this.#chains, writer: this.#writer, random };
    this.#erasure = new Erasure(upkeep);
    this.#reading = this.#openReading(options);
    const verify = (tenant: string, watch: VerifyWatch): Promise<VerifyReport> => this.verify(tenant, watch);
    this.#retention = new Retention({ ...upkeep, reading: this.#reading, verify });
    this.#recovery = new Recovery({
      store,
      chains: this.#chains,
      actions: this.actions,
      writer: this.#writer,
      writerId: options.writerId,
      clock,
      warn: (message, fields) => this.#warn(message, fields),
      onFailure: (cause) => this.#warnOf("evidence_repair_failed", cause),
    });
  }

  /** Returns the secret under which sessions of a tenant digest values. Throws where the tenant has no evidence, or is refused. */
  valueKey(tenant: string): string {
    return this.#chains.get(tenant).wrapping.authenticate("session-values-v1", tenant);
  }

  /** Returns the secret under which the states of a tenant's chain hide their values. Throws as `valueKey` does. */
  stateSecret(tenant: string): string {
    return this.#chains.get(tenant).wrapping.authenticate("chain-state-v1", tenant);
  }

  /**
   * Takes the next writer epoch, checks every chain against its high-water mark, and records `unknown` for each
   * dispatched decision a former process left without outcome. Throws STATE_UNUSABLE where the marks are damaged.
   */
  static async open(options: LedgerOptions): Promise<Ledger> {
    const { highWaterPath, store } = options;
    const highWater =
      options.highWater ?? (highWaterPath === null ? new HighWaterMemory() : await HighWaterFile.open(highWaterPath));
    try {
      const ledger = new Ledger(options, highWater, await advanceEpoch(store));
      await ledger.#recovery.start();
      return ledger;
    } catch (error) {
      await options.batchThread?.close();
      await highWater.close();
      throw error;
    }
  }

  /**
   * Records an event that belongs to no action. `detail` holds integers only (TypeError) and no secret. `operations` are
   * the writes that commit with it. A function of them is called in the turn in which the event
   * gets its place in the chain.
   */
  async recordEvent(
    tenant: string,
    kind: RecordableKind,
    detail: JsonObject,
    operations: readonly BatchOperation[] | (() => readonly BatchOperation[]) = [],
  ): Promise<void> {
    checkIntegers(detail);
    const chain = this.#chains.peek(tenant) ?? (await this.#chains.open(tenant));
    this.#writer.commit.admit("bounded");
    const happening = typeof operations === "function" ? operations() : operations;
    await this.#writer.appendEvent(chain, { kind, detail }, happening);
  }

  /** Rotates a tenant's signing key and returns the new key's id. `asked` is recorded with it. See `rotateSigningKey`. */
  async rotateKey(tenant: string, asked?: JsonObject): Promise<string> {
    const parts = { chains: this.#chains, writer: this.#writer, keys: this.#options.keys };
    return rotateSigningKey(parts, tenant, asked);
  }

  /** Erases private fields for good; see `Erasure.erase`. */
  async erase(tenant: string, request: ErasureRequest, compact: Compact, pace?: Pace): Promise<Erased> {
    return this.#read(tenant, () => this.#erasure.erase(tenant, request, compact, pace));
  }

  /** The records that an erasure would go through, in order. Throws NOT_FOUND where the tenant has no such session or record. */
  async findErased(tenant: string, of: ErasureRequest["of"]): Promise<readonly number[]> {
    return this.#read(tenant, () => this.#erasure.findRecords(tenant, of));
  }

  /** Deletes a tenant's oldest records for good; see `Retention.prune`. */
  async prune(tenant: string, request: PruneRequest, tools: PruneTools): Promise<Pruned> {
    return this.#read(tenant, () => this.#retention.prune(tenant, request, tools));
  }

  /** A tenant's sessions, the latest begun first. */
  async sessions(tenant: string, page: PageRequest): Promise<Page<SessionSummary>> {
    return this.#read(tenant, () => listSessions(this.#store, tenant, page));
  }

  /** A tenant's sessions whose ids begin with `start`, at most `limit`. */
  async findSessions(tenant: string, start: string, limit: number): Promise<readonly SessionSummary[]> {
    return this.#read(tenant, () => findSessions(this.#store, tenant, start, limit));
  }

  /** Those of some ids that are sessions of a tenant. */
  async readSessions(tenant: string, ids: readonly string[]): Promise<readonly SessionSummary[]> {
    return this.#read(tenant, () => readSessions(this.#store, tenant, ids));
  }

  /** The records of one session in order. Throws NOT_FOUND for a session this tenant does not have. */
  async records(tenant: string, session: string, page: PageRequest): Promise<Page<EvidenceRecord>> {
    return this.#read(tenant, () => listRecords(this.#store, tenant, session, page));
  }

  /** Returns the private fields of a record as far as they are kept; see `discloseRecord`. */
  async disclosure(record: ActionRecord, reader: Reader = this.#store): Promise<Disclosure> {
    const { wrapping } = this.#chains.get(record.tenant);
    return this.#read(record.tenant, () => discloseRecord(reader, wrapping, record));
  }

  /** Checks a tenant's whole chain, in bounded memory. A tenant that fails is refused from then on; a refused one fails. */
  async verify(tenant: string, watch: VerifyWatch = {}): Promise<VerifyReport> {
    const report = await this.#reading.verify(tenant, this.#highWater.marks.get(tenant), watch);
    const refused = this.#chains.refusals.get(tenant);
    if (report.firstBad === undefined) return refused === undefined ? report : { ...report, ok: false, refused };
    const { seq, detail } = report.firstBad;
    this.refuse(tenant, `chain of tenant \`${tenant}\` is broken at record ${seq}: ${detail}`);
    return report;
  }

  /** False from a failed write until a repair: no tenant can write meanwhile. */
  get writable(): boolean {
    return !this.#writer.commit.failed;
  }

  /** The state and head of each tenant's chain. */
  status(): readonly ChainStatus[] {
    return this.#chains.status(this.#writer.commit.failed);
  }

  /** The tenants whose chains can be written. */
  readyTenants(): readonly string[] {
    return this.status().flatMap(({ tenant, state }) => (state === "ready" ? [tenant] : []));
  }

  /** Refuses a tenant until a start finds its chain sound. */
  refuse(tenant: string, reason: string): void {
    this.#chains.refuse(tenant, reason);
    this.#warn("evidence_refused", { tenant, reason });
  }

  /** Refuses to begin new chains. */
  refuseNew(reason: string): void {
    this.#chains.refuseNew(reason);
    this.#warn("new_tenants_refused", { reason });
  }

  /** Raises the marks outside the data folder, once no approval of an unmarked chain is live; durable when it resolves. */
  async adoptMarks(): Promise<void> {
    await this.#options.outerMark?.adopt(this.#durableMarks());
  }

  #durableMarks(): readonly Mark[] {
    return this.#chains.tenants.flatMap((tenant) => this.#highWater.marks.get(tenant) ?? []);
  }

  #openReading({ store, recordRules, readingThread }: LedgerOptions): ChainReading {
    const local = new LocalReading(store, recordRules);
    if (readingThread === undefined) return local;
    const countRecords = (tenant: string): number => (this.#chains.peek(tenant)?.head.seq ?? -1) + 1;
    return new ThreadReading({ ...readingThread, store, local, countRecords });
  }

  async #closeOuterMark(): Promise<void> {
    const { outerMark, holdsStore } = this.#options;
    try {
      // Who took the store over raises the marks.
      if (holdsStore()) await outerMark?.advance(this.#durableMarks());
    } catch (cause) {
      this.#warnOf("outer_mark_failed", cause);
    }
    await outerMark?.close();
  }

  /** Sets the configuration digest of later records. */
  updateConfigDigest(digest: string): void {
    this.#writer.updateConfigDigest(digest);
  }

  /** Accepts nothing more; resolves when accepted records are on disk and the marks are closed. The store stays open. */
  async close(): Promise<void> {
    await this.#chains.settled();
    await this.#writer.commit.close();
    await this.#recovery.settled();
    await this.#options.batchThread?.close();
    await this.#closeOuterMark();
    await this.#highWater.close();
  }

  async #read<T>(tenant: string, read: () => Promise<T>): Promise<T> {
    this.#chains.checkTrusted(tenant);
    try {
      return await read();
    } catch (error) {
      throw readFault(error);
    }
  }

  #warnOf(message: string, cause: unknown): void {
    this.#warn(message, { cause: rootMessage(cause) });
  }

  #warn(message: string, fields: object): void {
    this.#options.onWarning?.(message, fields);
  }
}

/** The dependencies and settings of a ledger. */
export interface LedgerOptions {
  readonly store: EvidenceStore;
  /** True while this process is the only one that can have the store open. */
  readonly holdsStore: () => boolean;
  /** The file of the high-water marks; null with a store in memory. */
  readonly highWaterPath: string | null;
  /** Marks that are kept elsewhere than in that file, which the ledger closes. */
  readonly highWater?: HighWater | undefined;
  /** Marks outside the data folder, which the ledger closes. */
  readonly outerMark?: OuterMark | null;
  /** The signing keys. */
  readonly keys: KeyStore;
  readonly wrappingKeys: WrappingKeyStore;
  /** The private values that are stored. */
  readonly fieldPolicy: FieldPolicy;
  /** The rules of the features that `verify` checks. */
  readonly recordRules: RecordRules;
  /** The program of the threads that read chains of at least so many records; absent where nothing is served meanwhile. */
  readonly readingThread?: { readonly program: URL; readonly minRecords: number };
  /** Encodes and seals the values of large batches; the ledger closes it. */
  readonly batchThread?: BatchThread;
  readonly clock: Clock;
  readonly random: Random;
  /** Names this installation in every record. */
  readonly writerId: string;
  /** `sha256:<hex>` of the configuration in force. */
  readonly configDigest: string;
  /** Records that may wait for the disk, and actions that may wait for their outcome; default 10,000. */
  readonly queueLimit?: number;
  readonly observer?: CommitObserver;
  /** Called between the steps of a large action; by default others have one turn of the event loop. */
  readonly pause?: Pause;
  /** Told of each piece of a large output before it is written. */
  readonly stored?: Stored;
  readonly onWarning?: (message: string, fields: object) => void;
}
