import { randomBytes } from "node:crypto";
import type { DecisionCommitHook } from "../../core/action/commit-hook.ts";
import type { ActionEnvelope } from "../../core/action/envelope.ts";
import type { Evaluation } from "../../core/action/evaluation.ts";
import { uuidV7 } from "../../core/action/id.ts";
import { SigningKey } from "../../core/action/signing-key.ts";
import { GatewayClock } from "../../core/observe/gateway-clock.ts";
import { type IssuedTicket, orderOf, type TicketRequest, type TicketRule } from "../../core/ticket/ticket-issuer.ts";
import { Tickets } from "../../core/ticket/tickets.ts";
import { reviewer } from "./approval-world.ts";
import { LedgerWorld, makeEvaluation, newAction } from "./ledger-world.ts";
import { pendingOf, seenBy } from "./road-world.ts";

const agent = newAction().principal.id;

/** Tickets on a real ledger, whose writes a test may let fail; time is the test's. */
export class TicketDeskWorld {
  readonly evidence: LedgerWorld;
  readonly #signers = new Map<string, SigningKey>();
  /** Asked before and after each write: false before loses it, false after keeps it and calls it failed. */
  holdsStore: () => boolean = () => true;
  elapsedMs = 0;
  #tickets: Tickets | null = null;

  private constructor(evidence: LedgerWorld) {
    this.evidence = evidence;
  }

  static async create(rule: Partial<TicketRule> = {}): Promise<TicketDeskWorld> {
    const world = new TicketDeskWorld(await LedgerWorld.create());
    await world.open(rule);
    return world;
  }

  get tickets(): Tickets {
    if (this.#tickets === null) throw new Error("the world has no tickets open");
    return this.#tickets;
  }

  async open(rule: Partial<TicketRule> = {}): Promise<void> {
    const ledger = await this.evidence.open({ holdsStore: () => this.holdsStore() });
    const elapsedMs = (): number => this.elapsedMs;
    const time = new GatewayClock({ wallMs: this.evidence.clock.now, elapsedMs, uptimeMs: elapsedMs });
    this.#tickets = await Tickets.open({
      store: this.evidence.store,
      ledger,
      keys: {
        create: async () => {
          const key = SigningKey.fromSeed(randomBytes(32));
          this.#signers.set(key.id, key);
          return key;
        },
        find: async (id) => this.#signers.get(id),
      },
      rule: { defaultTtlSeconds: 300, maxTtlSeconds: 3_600, maxLive: 1_000, allowSelfIssue: false, ...rule },
      clock: time.latest,
      sweepClock: time.earliest,
      random: randomBytes,
      newId: () => uuidV7(this.evidence.clock.nowMs, randomBytes(10)),
      isPrincipal: (_tenant, principal) => principal === agent,
      onEvent: () => undefined,
      onWarning: (message, fields) => this.evidence.warnings.push({ message, fields }),
    });
  }

  async close(): Promise<void> {
    await this.#tickets?.close();
    await this.evidence.close();
  }

  async remove(): Promise<void> {
    await this.close();
    await this.evidence.remove();
  }

  /** As if the folder of the private keys were lost. */
  forgetSigners(): void {
    this.#signers.clear();
  }

  /** Lets `ms` pass, by every measure. */
  pass(ms: number): void {
    this.elapsedMs += ms;
    this.evidence.clock.nowMs += ms;
  }

  issue(over: Partial<TicketRequest> = {}): Promise<IssuedTicket> {
    const { issuer } = this.tickets;
    const asked: TicketRequest = {
      principal: agent,
      tools: ["*"],
      targets: ["*"],
      capabilities: ["write"],
      max_uses: 1,
      ...over,
    };
    return issuer.issue(reviewer("rita"), orderOf(asked, issuer.times));
  }

  /** An action that presents a token, as the road enters it. */
  present(token: string, label = "work"): ActionEnvelope {
    const action = newAction({}, label);
    return {
      ...action,
      ticket: this.tickets.verifier.present(token, { tenant: action.tenant, id: action.principal.id }),
    };
  }

  /**
   * Takes an action to its decision as the road does, once: a rule that asks for a ticket is lifted where it is valid.
   * `guard` is what the decision passes instead of the ticket's own check.
   */
  async decide(attempted: ActionEnvelope, guard?: () => undefined): Promise<boolean> {
    const visit = this.tickets.verifier.begin(attempted);
    const action = seenBy(attempted, visit);
    const isLifted = action.ticket?.standing === "valid";
    const evaluation = isLifted ? liftedEvaluation(action) : makeEvaluation(action, "block");
    const commitHook: DecisionCommitHook = {
      check: guard ?? ((_, dispatched) => visit.check?.(action, dispatched)),
      operations: (dispatched) => visit.operations?.(dispatched) ?? [],
    };
    try {
      await visit.applyVerdict?.(pendingOf(action, evaluation));
      // Policy takes its time: others are judged meanwhile.
      await new Promise(setImmediate);
      await this.evidence.ledger.actions.recordDecision(action, evaluation, undefined, [commitHook]);
      return isLifted;
    } finally {
      visit.finish?.();
    }
  }
}

function liftedEvaluation(action: ActionEnvelope): Evaluation {
  const evaluation = makeEvaluation(action);
  const [verdict] = evaluation.verdicts;
  const id = action.ticket?.id ?? "";
  const lifted = {
    rule: "baseline.ticket",
    decision: "allow",
    message: "",
    severity: "info",
    risk: 0,
    mode: "shadow",
    ticket: id,
  } as const;
  return verdict === undefined
    ? evaluation
    : { ...evaluation, verdicts: [{ ...verdict, findings: [...verdict.findings, lifted] }] };
}
