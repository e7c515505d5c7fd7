import { randomBytes } from "node:crypto";
import { expect } from "chai";
import type { AuthorizedAction } from "../../../core/action/authorized-action.ts";
import type { ActionEnvelope } from "../../../core/action/envelope.ts";
import { GatewayError } from "../../../core/action/error.ts";
import { uuidV7 } from "../../../core/action/id.ts";
import type { Participant } from "../../../core/action/participant.ts";
import type { Finding, Policy } from "../../../core/action/policy.ts";
import { KillSwitch } from "../../../core/kill/kill-switch.ts";
import { PolicyChain } from "../../../core/policy/chain.ts";
import { judgeNotification, type Road, runAction } from "../../../core/road/run.ts";
import { SessionCache } from "../../../core/session/session-cache.ts";
import { SessionWatch } from "../../../core/session/session-watch.ts";
import { ValueWatch } from "../../../core/session/value-watch.ts";
import { ApprovalWorld } from "../../support/approval-world.ts";
import { newAction, rejection } from "../../support/ledger-world.ts";
import { roadOf } from "../../support/road-world.ts";

const newId = (): string => uuidV7(Date.now(), randomBytes(10));
const finding: Finding = { rule: "p.r", decision: "allow", message: "m", severity: "low", risk: 0, mode: "enforce" };
const stranger = "a stranger writes";

/** Allows everything, and taints with `asked` where the arguments hold that word, with `told` where the answer does. */
const policy: Policy = {
  ref: { kind: "external", name: "one", version: "1", digest: "", signer: null },
  mode: "enforce",
  evaluate: ({ arguments: args, phase, output }) => {
    const taints = [
      ...(phase === "input" && JSON.stringify(args).includes("asked") ? ["asked"] : []),
      ...(phase === "output" && JSON.stringify(output).includes("told") ? ["told"] : []),
    ];
    return { decision: "allow", findings: [{ ...finding, taints }], risk: 0 };
  },
};

describe("a taint on its way to the disk", () => {
  let world: ApprovalWorld;
  let watch: SessionWatch;
  /** Settles when events may be recorded. */
  let gate: Promise<void>;
  /** Settles when the taint is about to be recorded. */
  let reached: Promise<void>;
  let onReached: () => void;
  let open: () => void;
  let fail: (error: Error) => void;
  let done: string[];

  beforeEach(async () => {
    world = await ApprovalWorld.create();
    watch = watchOf(world);
    done = [];
    shut();
  });

  afterEach(async () => {
    open();
    await world.remove();
  });

  function shut(): void {
    gate = new Promise((resolve, reject) => {
      [open, fail] = [resolve, reject];
    });
    gate.catch(() => undefined);
    reached = new Promise((resolve) => {
      onReached = resolve;
    });
  }

  function watchOf({ ledger: { ledger, store } }: ApprovalWorld): SessionWatch {
    const clock = Date.now;
    const killSwitch = new KillSwitch({
      store,
      log: ledger,
      clock,
      tenants: () => ["acme"],
      onKilled: () => undefined,
      onReleased: () => undefined,
      onKill: () => undefined,
      findStop: () => undefined,
      onRelease: () => ({ operations: () => [], end: () => undefined }),
    });
    const limit = { killAt: 0, windowMs: 1, mode: "enforce" } as const;
    const [cache, groups] = [1, 2].map(
      () => new SessionCache({ store, limit, capacity: 100, observer: { watchedSessions: () => undefined } }),
    ) as [SessionCache, SessionCache];
    return new SessionWatch({
      cache,
      groups,
      log: {
        recordEvent: async (...event) => {
          onReached();
          await gate;
          return ledger.recordEvent(...event);
        },
      },
      clock,
      limit,
      killSwitch,
      reviews: { count: () => undefined },
      values: new ValueWatch({ isOn: false, keyOf: () => "key", isExpected: () => false }),
      observer: { wouldKill: () => undefined, tainted: () => undefined },
    });
  }

  function roadWith(sessions: readonly Participant[] = [watch]): Road {
    const chain = new PolicyChain({
      policies: [policy],
      defaultDecision: "block",
      deadlineMs: 1_000,
      newId,
      elapsedMs: () => performance.now(),
    });
    return roadOf(world, chain, newId, sessions);
  }

  /** Takes an action along the road and notes how far it came. */
  function travel(action: ActionEnvelope, said: string, sessions?: readonly Participant[]): Promise<unknown> {
    return runAction(roadWith(sessions), action, async (_: AuthorizedAction) => {
      done.push("dispatched");
      return { status: "success", output: { said }, makeReply: () => void done.push("replied") };
    });
  }

  const taintsIn = (sessions: SessionWatch): readonly string[] =>
    sessions.describe(newAction()).session_state?.taints.map(({ name }) => name) ?? [];

  for (const [what, action, said, before, name] of [
    ["a request is sent", newAction({ arguments: { text: "asked" } }), "fine", [], "asked"],
    ["an answer is given", newAction(), "told", ["dispatched"], "told"],
    ["an answer of strangers is given", newAction({ untrusted: true }), "fine", ["dispatched"], "untrusted"],
  ] as const) {
    it(`is durable before ${what}`, async () => {
      const over = travel(action, said);
      await reached;
      expect(done).to.deep.equal(before);
      open();
      await over;
      expect([done, taintsIn(watchOf(world))]).to.deep.equal([["dispatched", "replied"], [name]]);
    });

    it(`lets nothing happen where it cannot be recorded before ${what}, which the watch alone prevents`, async () => {
      const over = travel(action, said);
      over.catch(() => undefined);
      await reached;
      fail(new GatewayError("EVIDENCE_UNAVAILABLE"));
      expect(await rejection(over)).to.include({ code: "EVIDENCE_UNAVAILABLE" });
      expect(done).to.deep.equal(before);
      done.length = 0;
      await travel({ ...action, id: newId() }, said, []);
      expect(done).to.deep.equal(["dispatched", "replied"]);
    });
  }

  it("is durable before anyone is told what is said beside an answer", async () => {
    const left = judgeNotification(roadWith(), newAction({ untrusted: true }), { message: stranger });
    left.then(() => done.push("told"));
    await reached;
    expect(done).to.deep.equal([]);
    open();
    expect(await left).to.deep.equal({ message: stranger });
    expect(taintsIn(watchOf(world))).to.deep.equal(["untrusted"]);
  });

  it("costs an action nothing that brings in nothing new", async () => {
    open();
    await travel(newAction({ untrusted: true }), "told");
    shut();
    await travel(newAction({ untrusted: true }), "told");
    expect(done).to.deep.equal(["dispatched", "replied", "dispatched", "replied"]);
  });
});
