import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import { sizeOfRange } from "../store/open.ts";
import { backgroundPace, Pace } from "../store/pace.ts";
import type { ChainStatus } from "./chain/chain-table.ts";
import type { EvidenceJobs } from "./evidence-jobs.ts";
import { type EvidenceStore, growingParts, partRange, recordKey } from "./record/key-space.ts";
import type { EvidenceRecord } from "./record/record.ts";
import { StoreView } from "./record/store-view.ts";
import { findCut } from "./retention/cut.ts";
import { isKept } from "./retention/retention-rule.ts";
import { readFirstKept } from "./tree/pruned-prefix.ts";

interface RetentionScheduleOptions {
  readonly store: EvidenceStore;
  readonly jobs: Pick<EvidenceJobs, "begin">;
  readonly status: () => readonly ChainStatus[];
  readonly clock: Clock;
  readonly elapsedMs: () => number;
  /** 0: records of any age stay. */
  readonly retentionDays: number;
  /** Bytes of each tenant's records with their private fields; 0: any number. */
  readonly retentionBytes: number;
  readonly onWarning: (message: string, fields: object) => void;
}

/** The limit that a tenant's records exceed, and the time before which they may go. */
interface Excess {
  readonly before: string;
  readonly by: "evidence.retention_days" | "evidence.retention_bytes";
}

const intervalMs = 3_600_000;
const dayMs = 86_400_000;
/** Records read at once. */
const atOnce = 64;

/** Prunes what the configuration no longer keeps: at the start, and every hour. */
export class RetentionSchedule {
  readonly #options: RetentionScheduleOptions;
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(options: RetentionScheduleOptions) {
    this.#options = options;
  }

  /** Does nothing where the configuration sets no limit. */
  start(): void {
    const { retentionDays, retentionBytes } = this.#options;
    if (retentionDays === 0 && retentionBytes === 0) return;
    const run = (): void => {
      this.#running = this.#running.then(() => this.run());
    };
    this.#timer = setInterval(run, intervalMs).unref();
    run();
  }

  /** Begins a prune for each tenant of whom something may go. A tenant that fails is logged, and tried again by the next. */
  async run(): Promise<void> {
    for (const { tenant, state, seq } of this.#options.status()) {
      if (this.#stop.signal.aborted) return;
      if (state === "ready") await this.#runTenant(tenant, seq).catch((error: unknown) => this.#report(tenant, error));
    }
  }

  async close(): Promise<void> {
    this.#stop.abort(new GatewayError("STOPPING"));
    clearInterval(this.#timer);
    await this.#running;
  }

  async #runTenant(tenant: string, seq: number): Promise<void> {
    const { store, jobs } = this.#options;
    const firstKept = await readFirstKept(store, tenant);
    const excess = (await this.#findOversize(tenant, firstKept, seq)) ?? this.#oldest();
    if (excess === undefined) return;
    if (!(await this.#canPrune(tenant, firstKept, excess.before))) return;
    await jobs.begin(tenant, excess.by, { kind: "prune", before: excess.before, reason: "retention" });
  }

  #oldest(): Excess | undefined {
    const { clock, retentionDays } = this.#options;
    if (retentionDays === 0) return undefined;
    return { before: new Date(clock() - retentionDays * dayMs).toISOString(), by: "evidence.retention_days" };
  }

  /** Takes every record to be of the same size. Undefined where the bytes are within the limit, or the age cuts more. */
  async #findOversize(tenant: string, firstKept: number, seq: number): Promise<Excess | undefined> {
    const { store, retentionBytes } = this.#options;
    if (retentionBytes === 0) return undefined;
    const sizes = await Promise.all(growingParts.map((part) => sizeOfRange(store, partRange(tenant, part))));
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    if (bytes <= retentionBytes) return undefined;
    const surplus = Math.ceil((seq + 1 - firstKept) * (1 - retentionBytes / bytes));
    const text = await store.get(recordKey(tenant, Math.min(firstKept + surplus, seq)));
    const before = text === undefined ? undefined : (JSON.parse(text) as EvidenceRecord).time;
    if (before === undefined) return undefined;
    const oldest = this.#oldest();
    return oldest !== undefined && oldest.before > before ? undefined : { before, by: "evidence.retention_bytes" };
  }

  /** Asked first: a prune verifies the whole chain. */
  async #canPrune(tenant: string, firstKept: number, before: string): Promise<boolean> {
    const { store, elapsedMs } = this.#options;
    const pace = new Pace({ ...backgroundPace, elapsedMs, signal: this.#stop.signal });
    const { removed } = await findCut(new StoreView(store), tenant, firstKept, before, pace);
    return removed > 0 || (await this.#isInterrupted(tenant, firstKept));
  }

  /** A prune that was interrupted has left the last records before its cut. */
  async #isInterrupted(tenant: string, firstKept: number): Promise<boolean> {
    const range = { gte: recordKey(tenant, 0), lt: recordKey(tenant, firstKept), reverse: true, limit: atOnce };
    const texts = await this.#options.store.values(range).all();
    return texts.some((text) => !isKept(JSON.parse(text) as EvidenceRecord));
  }

  #report(tenant: string, error: unknown): void {
    const { code, message } = GatewayError.from(error);
    if (code === "STOPPING" || code === "EVIDENCE_BUSY") return;
    this.#options.onWarning("evidence_retention_failed", { tenant, cause: message });
  }
}
