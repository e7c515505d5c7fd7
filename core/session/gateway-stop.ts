import { GatewayError } from "../kernel/error.ts";
import { type Kill, wholeGateway } from "./kill.ts";
import { alreadyStopped, conflict, type KillBook, notRecordedYet, notStopped } from "./kill-book.ts";

/**
 * The stop of every tenant at once: one kill, on the record of each.
 *
 * INVARIANT: it is in force for all, tenants that never acted among them, until its release is durable for all.
 */
export class GatewayStop {
  readonly #book: KillBook;
  /** Those whose evidence can be written: others cannot act anyway. */
  readonly #tenants: () => readonly string[];
  #kill: Kill | null = null;
  #isReleasing = false;

  constructor(book: KillBook, tenants: () => readonly string[]) {
    this.#book = book;
    this.#tenants = tenants;
  }

  get isOn(): boolean {
    return this.#kill !== null;
  }

  /**
   * Stops every tenant, in force when this returns. The promise resolves once that is on the record of each, and rejects
   * with EVIDENCE_UNAVAILABLE where it is not: it is in force nonetheless. Throws SESSION_STATE where it is stopped.
   */
  kill(kill: Kill): Promise<void> {
    if (this.#kill !== null && !this.#isReleasing) throw conflict("killed", alreadyStopped);
    this.#kill = kill;
    this.#isReleasing = false;
    return this.#settled(this.#tenants(), (tenant) => this.#book.hold(tenant, kill));
  }

  /**
   * Lets every tenant act again, once that is on the record of each. Where it cannot be, this rejects with
   * EVIDENCE_UNAVAILABLE and all stay stopped. Rejects with SESSION_STATE as the release of anything else does.
   */
  async release(by: string, reason: string): Promise<void> {
    const kill = this.#kill;
    if (kill === null) throw conflict("active", notStopped);
    const tenants = this.#tenants().filter((tenant) => this.#book.has(tenant, wholeGateway));
    if (this.#isReleasing || tenants.some((tenant) => this.#book.isUnsettled(tenant, wholeGateway))) {
      throw conflict("killed", notRecordedYet);
    }
    this.#isReleasing = true;
    try {
      await this.#settled(tenants, (tenant) => this.#book.release(tenant, wholeGateway, by, reason));
    } catch (error) {
      if (this.#kill === kill) this.#resume();
      throw error;
    }
    // COMMIT POINT: it is released on every record. Whoever stopped it anew meanwhile has the last word.
    if (this.#kill !== kill) return;
    this.#kill = null;
    this.#isReleasing = false;
  }

  /** Puts what a former process left in force again. Of several, the first that is found tells who and why. */
  restore(kill: Kill): void {
    this.#kill ??= kill;
  }

  /** Puts a stop that is in force on the record of the tenants that do not have it: new ones, and half-released ones. */
  cover(): void {
    const kill = this.#kill;
    if (kill === null) return;
    for (const tenant of this.#tenants()) {
      if (!this.#book.has(tenant, wholeGateway)) this.#book.hold(tenant, kill).catch(() => undefined);
    }
  }

  #resume(): void {
    this.#isReleasing = false;
    this.cover();
  }

  /** Rejects where it fails for a tenant that is not refused by then, or where there is none. */
  async #settled(tenants: readonly string[], change: (tenant: string) => Promise<void>): Promise<void> {
    if (tenants.length === 0) throw new GatewayError("EVIDENCE_UNAVAILABLE", "no tenant has evidence to record it in");
    const settled = await Promise.allSettled(tenants.map(change));
    const able = new Set(this.#tenants());
    for (const [index, each] of settled.entries()) {
      if (each.status === "rejected" && able.has(tenants[index] ?? "")) throw each.reason;
    }
  }
}
