import type { ApprovalReservation } from "../../core/action/approval.ts";
import type { ActionEnvelope } from "../../core/action/envelope.ts";
import type { Evaluation } from "../../core/action/evaluation.ts";
import type { JsonObject } from "../../core/action/json.ts";
import type { Finding } from "../../core/action/policy.ts";
import { readEvents } from "../../core/evidence/chain/session-record.ts";
import type { Ledger } from "../../core/evidence/ledger.ts";
import type { KillSwitch } from "../../core/kill/kill-switch.ts";
import type { RiskLimit } from "../../core/session/risk-meter.ts";
import { openSessionControl, type SessionControl } from "../../core/session/session-control.ts";
import type { SessionParticipation, SessionWatch } from "../../core/session/session-watch.ts";
import { LedgerWorld, makeEvaluation } from "./ledger-world.ts";
import { pendingOf } from "./road-world.ts";

export interface SessionSettings {
  readonly risk?: Partial<RiskLimit>;
  readonly maxActive?: number;
  /** False where the operator calls no tool untrusted. */
  readonly hasUntrusted?: boolean;
  /** By task, the values that its manifest names. */
  readonly expected?: Readonly<Record<string, readonly string[]>>;
}

export const dayMs = 86_400_000;

/** What watches and stops sessions on a real ledger, in a folder of its own. Risk drains by the ledger's clock. */
export class SessionWorld {
  readonly evidence: LedgerWorld;
  readonly #settings: SessionSettings;
  /** How often each was observed. */
  readonly observed = { wouldKill: 0, tainted: 0, watched: 0 };
  /** What was stopped, and why, in this order. */
  readonly killed: [subject: string | null, reason: string][] = [];
  readonly sweepFailures: string[] = [];
  #control: SessionControl | null = null;

  private constructor(evidence: LedgerWorld, settings: SessionSettings) {
    this.evidence = evidence;
    this.#settings = settings;
  }

  static async create(settings: SessionSettings = {}): Promise<SessionWorld> {
    const world = new SessionWorld(await LedgerWorld.create(), settings);
    await world.open();
    await world.evidence.act();
    return world;
  }

  get control(): SessionControl {
    if (this.#control === null) throw new Error("the world has no sessions open");
    return this.#control;
  }

  get killSwitch(): KillSwitch {
    return this.control.killSwitch;
  }

  get watch(): SessionWatch {
    return this.control.sessionWatch;
  }

  get ledger(): Ledger {
    return this.evidence.ledger;
  }

  /** As at a start. */
  async open(): Promise<void> {
    const ledger = await this.evidence.open();
    const { risk, maxActive = 100 } = this.#settings;
    const { observed } = this;
    this.#control = await openSessionControl({
      store: this.evidence.store,
      ledger,
      reviewFlood: { reviews: 0, windowMs: 1 },
      risk: { killAt: 0, windowMs: 80_000, mode: "enforce", ...risk },
      maxActive,
      idleRetentionMs: dayMs,
      hasUntrusted: this.#settings.hasUntrusted ?? true,
      isExpected: (_, task, value) => this.#settings.expected?.[task]?.includes(value) ?? false,
      onSweepFailed: ({ message }) => this.sweepFailures.push(message),
      observer: {
        wouldKill: () => observed.wouldKill++,
        tainted: () => observed.tainted++,
        watchedSessions: (count) => {
          observed.watched = count;
        },
      },
      clock: this.evidence.clock.now,
      elapsedMs: () => performance.now(),
      events: readEvents,
      onKilled: (_, { subject, reason }) => this.killed.push([subject, reason]),
      onReleased: () => undefined,
    });
  }

  /** Takes an action to its decision, as the road does. Its visit has ended when this resolves. */
  async decide(action: ActionEnvelope, evaluation: Evaluation = makeEvaluation(action)): Promise<SessionParticipation> {
    const visit = this.watch.begin(action);
    try {
      visit.applyVerdict(pendingOf(action, evaluation, evaluation.decision === "review" ? newReview : null));
      await this.ledger.actions.recordDecision(action, evaluation, undefined, [this.killSwitch, visit]);
      return visit;
    } finally {
      visit.finish();
    }
  }

  async restart(): Promise<void> {
    await this.close();
    await this.open();
  }

  async close(): Promise<void> {
    this.#control?.killSwitch.close();
    await this.evidence.close();
  }

  /** Resolves when what was told so far is durable. */
  async recorded(): Promise<void> {
    await this.ledger.recordEvent("acme", "heartbeat", {});
  }

  /** The details of a tenant's session events, in the order of its chain. */
  async events(tenant = "acme"): Promise<readonly JsonObject[]> {
    const details: JsonObject[] = [];
    for await (const { detail } of readEvents(this.evidence.store, tenant, "session")) details.push(detail);
    return details;
  }

  async remove(): Promise<void> {
    this.#control?.killSwitch.close();
    await this.evidence.remove();
  }
}

/** An evaluation of an action by one pack that found this. */
export function findIn(action: ActionEnvelope, ...findings: readonly Partial<Finding>[]): Evaluation {
  const plain = makeEvaluation(action, findings[0]?.decision ?? "allow");
  const verdicts = plain.verdicts.map((verdict) => ({
    ...verdict,
    findings: findings.flatMap((found) => verdict.findings.map((finding) => ({ ...finding, ...found }))),
  }));
  return { ...plain, verdicts };
}

/** The reservation of an action that nobody was asked about before. */
const newReview = { kind: "held", isNew: true } as unknown as ApprovalReservation;

/** The reservation of an action that waits for review already. */
export const heldAgain = { kind: "held", isNew: false } as unknown as ApprovalReservation;
