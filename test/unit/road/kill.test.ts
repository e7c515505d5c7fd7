import { expect } from "chai";
import type { Policy } from "../../../core/action/policy.ts";
import { FactReader } from "../../../core/fact/fact-reader.ts";
import type { KillTarget } from "../../../core/kill/kill.ts";
import { killParticipant } from "../../../core/kill/kill-switch.ts";
import { PolicyChain } from "../../../core/policy/chain.ts";
import { type Road, type RunResult, runAction } from "../../../core/road/run.ts";
import { newAction, rejection } from "../../support/ledger-world.ts";
import { SessionWorld } from "../../support/session-world.ts";

const action = newAction();
const targets: readonly KillTarget[] = [
  { scope: "session", subject: action.session.id },
  { scope: "principal", subject: action.principal.id },
  { scope: "tenant", subject: null },
  { scope: "gateway", subject: null },
];

for (const target of targets) {
  describe(`an action on the road whose ${target.scope} is stopped`, () => {
    let world: SessionWorld;
    let dispatched: number;

    beforeEach(async () => {
      world = await SessionWorld.create();
      dispatched = 0;
    });

    afterEach(() => world.remove());

    const kill = (): Promise<void> =>
      world.killSwitch.kill("acme", { ...target, reason: "operator", by: "principal", note: null });

    /** Lets everything pass; `onAsked` is called with each action of phase `input` once the kill switch has answered. */
    function openPolicy(onAsked: () => void): Policy {
      const ref = { kind: "pack", name: "open", version: "1.0.0", digest: "sha256:00", signer: null } as const;
      const evaluate: Policy["evaluate"] = ({ phase }) => {
        if (phase === "input") onAsked();
        const finding = {
          rule: "open.all",
          decision: "allow",
          message: "",
          severity: "info",
          risk: 0,
          mode: "enforce",
        };
        return { decision: "allow", findings: [finding as never], risk: 0 };
      };
      return { ref, mode: "enforce", readsOutput: () => false, evaluate };
    }

    function run(guards: Guards, onAsked: () => void = () => undefined): Promise<RunResult<string>> {
      const chain = new PolicyChain({
        policies: [...(guards.inChain ? [world.killSwitch] : []), openPolicy(onAsked)],
        defaultDecision: "block",
        deadlineMs: 1_000,
        newId: () => "id",
        elapsedMs: () => 0,
      });
      // The kill participant without its policy is its check in the turn of the commit alone.
      const road: Road = {
        facts: new FactReader(),
        participants: guards.inTurn ? [killParticipant(world.killSwitch), world.watch] : [world.watch],
        policies: chain,
        log: world.ledger.actions,
        subscribers: [],
        newId: () => "id",
      };
      return runAction(road, newAction(), () => {
        dispatched++;
        return Promise.resolve({ status: "success", output: {}, makeReply: () => "done" });
      });
    }

    it("is blocked, not dispatched, and that is on record", async () => {
      await kill();
      const result = await run({ inChain: true, inTurn: true });
      expect(result).to.have.nested.property("evaluation.determining[0].rule", `${target.scope}.killed`);
      expect([result.kind, dispatched]).to.deep.equal(["refused", 0]);
      expect((await world.evidence.recordsOf()).at(-1)).to.include({ kind: "decision", effect: "not_dispatched" });
    });

    it("is blocked where the kill comes after the switch has spoken", async () => {
      const result = await run({ inChain: true, inTurn: true }, () => killOnce());
      expect([result.kind, dispatched]).to.deep.equal(["refused", 0]);
      expect(result).to.have.nested.property("evaluation.determining[0].rule", `${target.scope}.killed`);
    });

    it("is refused in the turn of its decision alone, where the chain has no switch", async () => {
      await kill();
      expect(await rejection(run({ inChain: false, inTurn: true }))).to.include({ code: "SESSION_KILLED" });
      expect(dispatched).to.equal(0);
    });

    it("passes where the kill comes after the switch has spoken and nobody asks in the turn of its decision", async () => {
      const result = await run({ inChain: true, inTurn: false }, () => killOnce());
      expect(dispatched).to.equal(1);
      // What comes back is judged: the answer of what is stopped is withheld.
      expect(result.kind).to.equal("withheld");
    });

    it("passes where neither is there", async () => {
      await kill();
      expect(await run({ inChain: false, inTurn: false })).to.include({ kind: "answered", reply: "done" });
      expect(dispatched).to.equal(1);
    });

    function killOnce(): void {
      if (world.killed.length === 0) void kill();
    }
  });
}

interface Guards {
  /** The switch is a policy of the chain. */
  readonly inChain: boolean;
  /** The switch is asked in the turn in which the decision gets its place. */
  readonly inTurn: boolean;
}
