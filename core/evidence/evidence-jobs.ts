import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import { findDamageInThread } from "../store/damage-thread.ts";
import { backgroundPace, Pace } from "../store/pace.ts";
import { rewriteRange } from "../store/rewrite.ts";
import type { Ledger } from "./ledger.ts";
import type { EvidenceStore } from "./record/key-space.ts";
import type { Compact, ErasureRequest } from "./retention/erasure.ts";
import type { Pruned } from "./retention/retention.ts";
import type { VerifyWatch } from "./verify/verification.ts";

/** The task of a job: a change of the evidence of one tenant. */
export type JobTask =
  | { readonly kind: "prune"; readonly before: string; readonly reason?: string | undefined }
  | ({ readonly kind: "erase" } & Omit<ErasureRequest, "by">);

/** A job as the admin API shows it. Times are RFC 3339. */
export interface EvidenceJob {
  readonly id: string;
  readonly tenant: string;
  readonly kind: JobTask["kind"];
  readonly state: "waiting" | "running" | "complete" | "failed";
  readonly by: string;
  readonly begun_at: string;
  /** Records that were verified, and deleted, so far. */
  readonly verified: number;
  readonly deleted: number;
  readonly result: PruneResult | EraseResult | null;
  readonly fault: string | null;
}

export interface PruneResult {
  readonly before: string;
  readonly records: number;
  readonly first_kept: number;
  readonly first_younger: number;
}

export interface EraseResult {
  readonly fields: number;
  readonly seqs: readonly number[];
}

export interface EvidenceJobsOptions {
  readonly store: EvidenceStore;
  /** The folder of the store's files; null for a store in memory. */
  readonly stateDir: string | null;
  readonly ledger: Pick<Ledger, "erase" | "findErased" | "prune" | "recordEvent">;
  /** Deletes what other features keep about a tenant's records before `firstKept`; durable when it resolves. */
  readonly forget: (tenant: string, firstKept: number) => Promise<void>;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly elapsedMs: () => number;
  readonly onWarning: (message: string, fields: object) => void;
}

/** Jobs of a tenant that are shown, the running one included. */
const maxShown = 5;
/** Half of the event loop's time. */
const attendedPace = { sliceMs: 2, restRatio: 1 } as const;

/**
 * Prunes and erases evidence while the gateway serves: one job of a tenant at a time, and of all tenants one after another.
 * A job that is ended half way, by a stop or a fault, can be begun again.
 */
export class EvidenceJobs {
  readonly #options: EvidenceJobsOptions;
  readonly #stop = new AbortController();
  readonly #byTenant = new Map<string, readonly EvidenceJob[]>();
  readonly #busy = new Set<string>();
  #last: Promise<void> = Promise.resolve();

  constructor(options: EvidenceJobsOptions) {
    this.#options = options;
  }

  /**
   * Begins a job and returns it. The request is recorded first. Throws EVIDENCE_BUSY where a job of the tenant has not
   * ended, NOT_FOUND where the tenant has not what is to be erased, EVIDENCE_UNAVAILABLE where the request cannot be
   * recorded, STOPPING after `close`.
   */
  async begin(tenant: string, by: string, task: JobTask): Promise<EvidenceJob> {
    this.#stop.signal.throwIfAborted();
    if (this.#busy.has(tenant)) throw new GatewayError("EVIDENCE_BUSY", "ask again when it has ended");
    const { clock, newId, ledger } = this.#options;
    this.#busy.add(tenant);
    try {
      if (task.kind === "erase") await ledger.findErased(tenant, task.of);
      await ledger.recordEvent(tenant, "admin", { action: `evidence.${task.kind}`, principal: by, ...subjectOf(task) });
    } catch (error) {
      this.#busy.delete(tenant);
      throw error;
    }
    const job: EvidenceJob = {
      id: `job_${newId().replaceAll("-", "")}`,
      tenant,
      kind: task.kind,
      state: "waiting",
      by,
      begun_at: new Date(clock()).toISOString(),
      verified: 0,
      deleted: 0,
      result: null,
      fault: null,
    };
    this.#byTenant.set(tenant, [job, ...this.list(tenant)].slice(0, maxShown));
    this.#last = this.#last.then(() => this.#run(job, task));
    return job;
  }

  /** The latest jobs of a tenant since the start, the last one first. */
  list(tenant: string): readonly EvidenceJob[] {
    return this.#byTenant.get(tenant) ?? [];
  }

  /**
   * Checks the files of the store, and returns the pace of a verification that a person waits for. Throws
   * EVIDENCE_UNAVAILABLE for damage in any file, STOPPING after `close`.
   */
  async beginWatch(): Promise<VerifyWatch> {
    await this.#checkFiles();
    const { elapsedMs } = this.#options;
    return { pace: new Pace({ ...attendedPace, elapsedMs, signal: this.#stop.signal }) };
  }

  /** Ends the running job after its current batch, and begins no other. */
  async close(): Promise<void> {
    this.#stop.abort(new GatewayError("STOPPING"));
    await this.#last;
  }

  async #run({ id, tenant, by }: EvidenceJob, task: JobTask): Promise<void> {
    const update = (change: Partial<EvidenceJob>): void => {
      const jobs = this.list(tenant).map((job) => (job.id === id ? { ...job, ...change } : job));
      this.#byTenant.set(tenant, jobs);
    };
    update({ state: "running" });
    try {
      update({ state: "complete", result: await this.#perform(tenant, by, task, update) });
    } catch (cause) {
      const error = GatewayError.from(cause);
      this.#options.onWarning("evidence_job_failed", { tenant, job: id, kind: task.kind, cause: error.message });
      update({ state: "failed", fault: error.publicMessage });
    } finally {
      this.#busy.delete(tenant);
    }
  }

  /** The database would return what it finds, end the process at some of it, and write the rest anew as if it were sound. */
  async #checkFiles(): Promise<void> {
    const { stateDir, onWarning } = this.#options;
    const damage = stateDir === null ? undefined : await findDamageInThread(stateDir, this.#stop.signal);
    if (damage === undefined) return;
    const { file, offset, reason } = damage;
    onWarning("store_damaged", { file, offset, reason });
    const found = `\`${file}\` of the store is damaged at byte ${offset}: ${reason}`;
    throw new GatewayError("EVIDENCE_UNAVAILABLE", `${found}; restore the newest backup`);
  }

  async #perform(
    tenant: string,
    by: string,
    task: JobTask,
    update: (change: Partial<EvidenceJob>) => void,
  ): Promise<PruneResult | EraseResult> {
    const { store, ledger, forget, elapsedMs } = this.#options;
    const { signal } = this.#stop;
    const pace = new Pace({ ...backgroundPace, elapsedMs, signal });
    const compact: Compact = (range) => rewriteRange(store, range, signal);
    await this.#checkFiles();
    if (task.kind === "erase") {
      const { fields, seqs } = await ledger.erase(tenant, { ...task, by }, compact, pace);
      return { fields, seqs };
    }
    const { before, reason } = task;
    const pruned = await ledger.prune(
      tenant,
      { before, reason, by },
      {
        compact,
        pace,
        forget: (firstKept) => forget(tenant, firstKept),
        onProgress: (done, what) => update(what === "sound" ? { verified: done } : { deleted: done }),
      },
    );
    return pruneResultOf(before, pruned);
  }
}

/** The result of a prune as jobs and commands show it. */
export function pruneResultOf(before: string, { records, firstKept, firstYounger }: Pruned): PruneResult {
  return { before, records, first_kept: firstKept, first_younger: firstYounger };
}

/** The subject that the record of the request names. The fields and the reason are on the record of the erasure or pruning itself. */
function subjectOf(task: JobTask): { readonly [name: string]: string | number } {
  return task.kind === "prune" ? { before: task.before } : { ...task.of };
}
