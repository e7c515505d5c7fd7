import type { JsonObject } from "../kernel/json.ts";
import type { ChainStatus } from "./chain-table.ts";

/** What a heartbeat needs of the ledger. */
export interface BeatingLedger {
  status(): readonly ChainStatus[];
  recordEvent(tenant: string, kind: "heartbeat", detail: JsonObject): Promise<void>;
}

export interface HeartbeatOptions {
  readonly ledger: BeatingLedger;
  /** A chain without a record for so long gets one. */
  readonly intervalMs: number;
  readonly onFailure: (tenant: string, error: unknown) => void;
}

/**
 * Lets idle chains beat: a chain that says nothing for longer than its heartbeat was stopped, or cut.
 * The first beat comes between one and two intervals after the last record.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #timer: NodeJS.Timeout;
  #heads: ReadonlyMap<string, number> = new Map();
  #running: Promise<unknown> = Promise.resolve();

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#beat(), options.intervalMs).unref();
  }

  /** Resolves when the last beat is recorded or refused. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
  }

  #beat(): void {
    const ready = this.#options.ledger.status().filter(({ state, seq }) => state === "ready" && seq >= 0);
    const idle = ready.filter(({ tenant, seq }) => this.#heads.get(tenant) === seq);
    this.#heads = new Map(ready.map(({ tenant, seq }) => [tenant, seq]));
    this.#running = Promise.all(idle.map(({ tenant }) => this.#record(tenant)));
  }

  async #record(tenant: string): Promise<void> {
    try {
      await this.#options.ledger.recordEvent(tenant, "heartbeat", {});
    } catch (error) {
      this.#options.onFailure(tenant, error);
    }
  }
}
