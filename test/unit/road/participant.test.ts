import { randomBytes } from "node:crypto";
import { expect } from "chai";
import type { ActionEnvelope } from "../../../core/action/envelope.ts";
import { uuidV7 } from "../../../core/action/id.ts";
import type { Participant } from "../../../core/action/participant.ts";
import type { Finding, Policy } from "../../../core/action/policy.ts";
import { SigningKey } from "../../../core/action/signing-key.ts";
import { Approvals } from "../../../core/approval/approvals.ts";
import { approvalParticipant } from "../../../core/approval/participant.ts";
import { FactReader } from "../../../core/fact/fact-reader.ts";
import { killParticipant } from "../../../core/kill/kill-switch.ts";
import { manifestParticipant, openManifestControl } from "../../../core/manifest/manifest-control.ts";
import { PolicyChain } from "../../../core/policy/chain.ts";
import { type RunResult, runAction } from "../../../core/road/run.ts";
import { orderOf, type TicketRequest } from "../../../core/ticket/ticket-issuer.ts";
import { Tickets } from "../../../core/ticket/tickets.ts";
import { reviewer } from "../../support/approval-world.ts";
import { newAction } from "../../support/ledger-world.ts";
import { SessionWorld } from "../../support/session-world.ts";

const inOneHour = (): string => new Date(Date.now() + 3_600_000).toISOString();
type Name = Participant["name"];
const names: readonly Name[] = ["approval", "kill", "session", "ticket", "manifest"];
const newId = (): string => uuidV7(Date.now(), randomBytes(10));
const base = { severity: "low", risk: 0, mode: "enforce", message: "m" } as const;

/**
 * Permits everything but: actions of a tainted session, `review` without an approval, and `paid` without a valid ticket.
 * What `stranger` answers taints the session.
 */
const policy: Policy = {
  ref: { kind: "pack", name: "rules", version: "1.0.0", digest: "sha256:00", signer: null },
  mode: "enforce",
  evaluate: ({ tool, phase, ticket, session_state: state }) => {
    const finding = (
      rule: string,
      decision: Finding["decision"],
      more: object = {},
    ): ReturnType<Policy["evaluate"]> => ({
      decision,
      findings: [{ ...base, rule, decision, ...more } as Finding],
      risk: 0,
    });
    if (phase === "output") return finding("rules.all", "allow", tool === "stranger" ? { taints: ["untrusted"] } : {});
    if (tool === "send" && (state?.taints.length ?? 0) > 0) return finding("rules.tainted", "block");
    if (tool === "held") return finding("rules.held", "review");
    if (tool === "paid" && ticket?.standing !== "valid") return finding("rules.ticket", "block");
    return finding("rules.all", "allow", tool === "paid" ? { ticket: ticket?.id } : {});
  },
};

/** Every participant on one real ledger, any of which may be missing from the road. */
class Lane {
  readonly dispatched: string[] = [];
  readonly #world: SessionWorld;
  readonly #approvals: Approvals;
  readonly #tickets: Tickets;
  readonly #participants: readonly Participant[];

  private constructor(
    world: SessionWorld,
    approvals: Approvals,
    tickets: Tickets,
    participants: readonly Participant[],
  ) {
    this.#world = world;
    this.#approvals = approvals;
    this.#tickets = tickets;
    this.#participants = participants;
  }

  static async open(missing: Name | null): Promise<Lane> {
    const world = await SessionWorld.create();
    const { ledger, evidence } = world;
    const { store } = evidence;
    const clock = Date.now;
    const shared = { store, ledger, clock, newId, onWarning: () => undefined, elapsedMs: () => performance.now() };
    const approvals = await Approvals.open({
      ...shared,
      journal: ledger.approvals,
      limits: { reviewMs: 60_000, useMs: 60_000, keySharePercent: 100, maxLive: 10, maxHeldBytes: 1_000_000 },
      rule: { allowSelfReview: false, allowBreakGlass: false },
      gatewayTime: () => performance.now(),
      tenants: ["acme"],
      onChange: () => undefined,
    });
    const key = SigningKey.fromSeed(randomBytes(32));
    const tickets = await Tickets.open({
      ...shared,
      sweepClock: clock,
      keys: { create: async () => key, find: async (id) => (id === key.id ? key : undefined) },
      rule: { defaultTtlSeconds: 300, maxTtlSeconds: 3_600, maxLive: 10, allowSelfIssue: false },
      random: randomBytes,
      isPrincipal: () => true,
      onEvent: () => undefined,
    });
    const drift = { mode: "enforce", decision: "block" } as const;
    const plans = await openManifestControl({
      ...shared,
      drift,
      requireTask: false,
      taskSigners: [],
      hasActed: () => false,
    });
    const plan = { task: "nightly", principal: newAction().principal.id, max_actions: 1_000, expires_at: inOneHour() };
    const expected = { expected_tools: ["files/planned"], expected_resources: ["*"], write_domains: ["*"] };
    await plans.manifests.declare("acme", { ...plan, ...expected }, reviewer("rita").id);
    const all: readonly Participant[] = [
      approvalParticipant(approvals.queue),
      killParticipant(world.killSwitch),
      world.watch,
      tickets.verifier,
      manifestParticipant(plans.driftPolicy),
    ];
    return new Lane(
      world,
      approvals,
      tickets,
      all.filter(({ name }) => name !== missing),
    );
  }

  async run(tool: string, changed: Partial<ActionEnvelope> = {}): Promise<RunResult<string>> {
    const chain = new PolicyChain({
      policies: [...this.#participants.flatMap((each) => each.policy ?? []), policy],
      defaultDecision: "block",
      deadlineMs: 1_000,
      newId,
      elapsedMs: () => 0,
    });
    const road = {
      facts: new FactReader(),
      participants: this.#participants,
      policies: chain,
      log: this.#world.ledger.actions,
      subscribers: [],
      newId,
    };
    return runAction(road, newAction({ ...changed, id: newId(), tool }), async () => {
      this.dispatched.push(tool);
      return { status: "success", output: {}, makeReply: () => "done" };
    });
  }

  /** Each protection, tried once: whether it held. */
  readonly protections: Readonly<Record<Name, () => Promise<boolean>>> = {
    approval: async () => {
      const held = await this.run("held");
      const review = held.kind === "refused" ? held.review : null;
      if (review?.kind !== "held") return false;
      await this.#approvals.review.approve(review.approval.id, reviewer("rita"), { scope: "exact" });
      const both = await Promise.all([this.run("held"), this.run("held")]);
      return both.filter(({ kind }) => kind === "answered").length === 1 && this.count("held") === 1;
    },
    session: async () => {
      await this.run("stranger");
      return (await this.run("send")).kind === "refused" && this.count("send") === 0;
    },
    ticket: async () => {
      const { id, role, keyId } = newAction().principal;
      const asked: TicketRequest = {
        principal: id,
        tools: ["*"],
        targets: ["*"],
        capabilities: ["write"],
        max_uses: 1,
      };
      const { issuer, verifier } = this.#tickets;
      const { token } = await issuer.issue(reviewer("rita"), orderOf(asked, issuer.times));
      const ticket = verifier.present(token, { tenant: "acme", id });
      const principal = { id, role, keyId };
      for (let use = 0; use < 2; use++) await this.run("paid", { ticket, principal, capability: "write" });
      return this.count("paid") === 1;
    },
    manifest: async () => {
      const result = await this.run("unplanned", { task: "nightly" });
      return result.kind === "refused" && this.count("unplanned") === 0;
    },
    kill: async () => {
      const session = newAction({}, "stopped").session;
      const target = { scope: "session", subject: session.id } as const;
      await this.#world.killSwitch.kill("acme", { ...target, reason: "operator", by: "principal", note: null });
      const result = await this.run("anything", { session });
      return result.kind === "refused" && this.count("anything") === 0;
    },
  };

  count(tool: string): number {
    return this.dispatched.filter((each) => each === tool).length;
  }

  async close(): Promise<void> {
    await this.#tickets.close();
    await this.#approvals.close();
    await this.#world.remove();
  }
}

describe("runAction(road, action, dispatch)", () => {
  for (const missing of [null, ...names]) {
    it(`keeps ${missing === null ? "every protection" : `every protection but that of ${missing}, which is not on the road`}`, async () => {
      const lane = await Lane.open(missing);
      try {
        const held: Partial<Record<Name, boolean>> = {};
        for (const name of ["approval", "ticket", "manifest", "session", "kill"] as const) {
          held[name] = await lane.protections[name]();
        }
        const expected = Object.fromEntries(names.map((name) => [name, name !== missing]));
        expect(held).to.deep.equal(expected);
      } finally {
        await lane.close();
      }
    });
  }
});
