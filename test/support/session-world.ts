import { readEvents } from "../../core/evidence/event-reader.ts";
import type { Ledger } from "../../core/evidence/ledger.ts";
import type { JsonObject } from "../../core/kernel/json.ts";
import type { KillSwitch } from "../../core/session/kill-switch.ts";
import { openSessionControl } from "../../core/session/session-control.ts";
import { LedgerWorld } from "./ledger-world.ts";

/** A kill switch on a real ledger, in a folder of its own. */
export class SessionWorld {
  readonly evidence: LedgerWorld;
  /** Sessions that were stopped, and why, in this order. */
  readonly killed: [session: string, reason: string][] = [];
  #killSwitch: KillSwitch | null = null;

  private constructor(evidence: LedgerWorld) {
    this.evidence = evidence;
  }

  static async create(): Promise<SessionWorld> {
    const world = new SessionWorld(await LedgerWorld.create());
    await world.open();
    await world.evidence.act();
    return world;
  }

  get killSwitch(): KillSwitch {
    if (this.#killSwitch === null) throw new Error("the world has no kill switch open");
    return this.#killSwitch;
  }

  get ledger(): Ledger {
    return this.evidence.ledger;
  }

  /** As at a start. */
  async open(): Promise<void> {
    const ledger = await this.evidence.open();
    const { killSwitch } = await openSessionControl({
      store: this.evidence.store,
      ledger,
      reviewFlood: { reviews: 0, windowMs: 1 },
      risk: { killAt: 0, windowMs: 1, mode: "enforce" },
      maxActive: 100,
      observer: { wouldKill: () => undefined, tainted: () => undefined, watchedSessions: () => undefined },
      clock: Date.now,
      elapsedMs: () => performance.now(),
      events: readEvents,
      onKilled: ({ session, reason }) => this.killed.push([session, reason]),
    });
    this.#killSwitch = killSwitch;
  }

  async restart(): Promise<void> {
    await this.close();
    await this.open();
  }

  async close(): Promise<void> {
    this.#killSwitch?.close();
    await this.evidence.close();
  }

  /** Resolves when what was told so far is durable. */
  async recorded(): Promise<void> {
    await this.ledger.recordEvent("acme", "heartbeat", {});
  }

  /** The details of the session events of `acme`, in the order of the chain. */
  async events(): Promise<readonly JsonObject[]> {
    const details: JsonObject[] = [];
    for await (const { detail } of readEvents(this.evidence.store, "acme", "session")) details.push(detail);
    return details;
  }

  async remove(): Promise<void> {
    this.#killSwitch?.close();
    await this.evidence.remove();
  }
}
