import { Worker } from "node:worker_threads";
import type { AbstractIterator, AbstractSnapshot } from "abstract-level";
import { GatewayError } from "../../action/error.ts";
import { HeldSnapshot } from "../../store/held-snapshot.ts";
import type { Pace } from "../../store/pace.ts";
import { packValues } from "../../store/packed-value.ts";
import type { Mark } from "../chain/high-water.ts";
import type { EvidenceStore } from "../record/key-space.ts";
import { chunkSize, isClosedFault, readFault } from "../record/store-view.ts";
import type { Cut } from "../retention/cut.ts";
import type { GoingRecords } from "../retention/record-sweep.ts";
import type { VerifyReport, VerifyWatch } from "../verify/verification.ts";
import type { ChainReading } from "./chain-reading.ts";
import type { ChainMessage, ChainOrder, ChainResult, ChainTask } from "./chain-task.ts";
import type { ViewAnswer, ViewQuestion } from "./remote-view.ts";

interface ThreadReadingParts {
  readonly store: EvidenceStore;
  /** The program of the threads: it calls `runChainTask`. */
  readonly program: URL;
  /** Reads the chains that are too short for a thread. */
  readonly local: ChainReading;
  /** The shortest chain that is read on a thread. */
  readonly minRecords: number;
  /** Records of a tenant's chain. */
  readonly countRecords: (tenant: string) => number;
}

/** Bounds a thread whatever a chain holds: it remembers some 100,000 subjects, and ends where that takes more. */
const resourceLimits = { maxOldGenerationSizeMb: 256 };

/**
 * Reads long chains on a thread of its own, in bounded memory: requests are served meanwhile. The thread that has the store
 * hands over bytes; they are decoded, parsed, hashed and checked on the other. Rejects as `LocalReading` does.
 */
export class ThreadReading implements ChainReading {
  readonly #parts: ThreadReadingParts;

  constructor(parts: ThreadReadingParts) {
    this.#parts = parts;
  }

  async verify(tenant: string, mark: Mark | undefined, watch: VerifyWatch): Promise<VerifyReport> {
    if (this.#isShort(tenant)) return this.#parts.local.verify(tenant, mark, watch);
    try {
      await using held = new HeldSnapshot(this.#parts.store);
      const { onProgress, pace } = watch;
      const task: ChainTask = { kind: "verify", tenant, mark };
      return (await this.#run(task, { pace, onProgress, snapshot: held.snapshot })) as VerifyReport;
    } catch (error) {
      throw isClosedFault(error) ? readFault(error) : error;
    }
  }

  async findCut(tenant: string, from: number, before: string, pace: Pace | undefined): Promise<Cut> {
    if (this.#isShort(tenant)) return this.#parts.local.findCut(tenant, from, before, pace);
    return (await this.#run({ kind: "cut", tenant, from, before }, { pace })) as Cut;
  }

  async findGoing(
    tenant: string,
    firstKept: number,
    onGoing: (going: GoingRecords) => Promise<void>,
    pace: Pace | undefined,
  ): Promise<void> {
    if (this.#isShort(tenant)) return this.#parts.local.findGoing(tenant, firstKept, onGoing, pace);
    await this.#run({ kind: "sweep", tenant, firstKept }, { pace, onGoing });
  }

  #isShort(tenant: string): boolean {
    return this.#parts.countRecords(tenant) < this.#parts.minRecords;
  }

  async #run(task: ChainTask, { pace, ...use }: TaskUse & { readonly pace: Pace | undefined }): Promise<ChainResult> {
    const signal = pace?.signal;
    signal?.throwIfAborted();
    const order: ChainOrder = { task, rhythm: pace?.rhythm };
    const worker = new Worker(this.#parts.program, { workerData: order, env: {}, resourceLimits });
    await using host = new ViewHost(this.#parts.store, worker, use);
    let abort = (): void => {};
    try {
      return await new Promise((resolve, reject) => {
        abort = () => reject(signal?.reason);
        signal?.addEventListener("abort", abort);
        worker.on("message", (message: ChainMessage) => host.accept(message, resolve, reject));
        worker.once("error", reject);
        worker.once("exit", () => reject(new Error("the thread that reads a chain ended without an answer")));
      });
    } finally {
      signal?.removeEventListener("abort", abort);
      await worker.terminate();
    }
  }
}

interface TaskUse {
  readonly snapshot?: AbstractSnapshot | undefined;
  readonly onProgress?: ((done: number) => void) | undefined;
  readonly onGoing?: (going: GoingRecords) => Promise<void>;
}

/** Answers the questions of one thread out of the store. */
class ViewHost implements AsyncDisposable {
  readonly #store: EvidenceStore;
  readonly #worker: Worker;
  readonly #use: TaskUse;
  readonly #readers = new Map<number, AbstractIterator<EvidenceStore, string, Buffer>>();
  /** The first read that failed. */
  #fault: unknown;

  constructor(store: EvidenceStore, worker: Worker, use: TaskUse) {
    this.#store = store;
    this.#worker = worker;
    this.#use = use;
  }

  async accept(
    message: ChainMessage,
    resolve: (result: ChainResult) => void,
    reject: (error: unknown) => void,
  ): Promise<void> {
    switch (message.ask) {
      case "progress":
        this.#use.onProgress?.(message.done);
        break;
      case "done":
        resolve(message.result);
        break;
      case "failed":
        reject(this.#fault ?? new GatewayError(message.code, message.detail));
        break;
      default:
        await this.#answer(message.id, message).catch(reject);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const reader of this.#readers.values()) await reader.close();
  }

  /** Rejects where the store was closed, and where a deletion failed: then nothing more is to be read. */
  async #answer(id: number, question: ViewQuestion): Promise<void> {
    try {
      const answer = { id, ...(await this.#read(question)) };
      this.#worker.postMessage(answer, answer.values === undefined ? [] : [answer.values.bytes.buffer as ArrayBuffer]);
    } catch (error) {
      if (question.ask === "going" || isClosedFault(error)) throw error;
      this.#fault ??= error;
      const fault = error instanceof Error ? error.message : String(error);
      this.#worker.postMessage({ id, fault } satisfies ViewAnswer);
    }
  }

  async #read(question: ViewQuestion): Promise<Omit<ViewAnswer, "id">> {
    switch (question.ask) {
      case "get": {
        const { snapshot } = this.#use;
        const keys = [...question.keys];
        const values = await this.#store.getMany<string, Buffer>(keys, { snapshot, valueEncoding: "buffer" });
        return { values: packValues(values) };
      }
      case "next": {
        const entries = await this.#readerOf(question).nextv(question.size);
        return { keys: entries.map(([key]) => key), values: packValues(entries.map(([, value]) => value)) };
      }
      case "close":
        await this.#readers.get(question.reader)?.close();
        this.#readers.delete(question.reader);
        return {};
      case "going":
        await this.#use.onGoing?.(question.going);
        return {};
    }
  }

  #readerOf({ reader, range }: ViewQuestion & { ask: "next" }): AbstractIterator<EvidenceStore, string, Buffer> {
    const opened = this.#readers.get(reader);
    if (opened !== undefined) return opened;
    const { snapshot } = this.#use;
    const options = { ...range, snapshot, valueEncoding: "buffer", ...chunkSize };
    const iterator = this.#store.iterator<string, Buffer>(options);
    this.#readers.set(reader, iterator);
    return iterator;
  }
}
