import { expect } from "chai";
import fc from "fast-check";
import { withOutput } from "../../../core/action/envelope.ts";
import { makeEvaluation, newAction, newAgentAction } from "../../support/ledger-world.ts";
import { pendingOf } from "../../support/road-world.ts";
import { findIn, SessionWorld } from "../../support/session-world.ts";

const labels = ["a", "b", "c", "d", "e", "f", "g"] as const;
type Label = (typeof labels)[number];

/** What a session is to have come to, counted beside it. */
interface Tally {
  actions: number;
  risk: number;
  readonly taints: Set<string>;
}

type Step =
  | { readonly kind: "act"; readonly label: Label; readonly points: number; readonly allowed: boolean }
  | { readonly kind: "learn"; readonly label: Label; readonly word: string }
  | { readonly kind: "reset"; readonly label: Label }
  | { readonly kind: "wait" };

const label = fc.constantFrom(...labels);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("act" as const),
      label,
      points: fc.integer({ min: 0, max: 5 }),
      allowed: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("learn" as const), label, word: fc.constantFrom("one", "two", "three") }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("reset" as const), label }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("wait" as const) }) },
);

describe("SessionWatch with room for two sessions", () => {
  let world: SessionWorld;
  let run = 0;

  before(async () => {
    world = await SessionWorld.create({ maxActive: 2 });
  });

  after(() => world.remove());

  it("knows of every session what it did and met, in memory and after a restart, however they interleave", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const prefix = `${++run}-`;
        const tallies = new Map(labels.map((each) => [each, { actions: 0, risk: 0, taints: new Set<string>() }]));
        await play(steps, prefix, tallies);
        expectAll(prefix, tallies);
        await world.restart();
        expectAll(prefix, tallies);
      }),
      { numRuns: 40 },
    );
  });

  /** Begins each step without waiting for those before it, but where it says so. */
  async function play(steps: readonly Step[], prefix: string, tallies: ReadonlyMap<Label, Tally>): Promise<void> {
    const begun: Promise<unknown>[] = [];
    for (const each of steps) {
      // A session is reset while nothing of it is under way, so that what is left of it is known.
      const isAlone = each.kind !== "act" && each.kind !== "learn";
      if (isAlone) await Promise.all(begun.splice(0));
      if (each.kind !== "wait") begun.push(take(each, `${prefix}${each.label}`, tallies.get(each.label) as Tally));
      if (isAlone) await Promise.all(begun.splice(0));
    }
    await Promise.all(begun);
  }

  async function take(each: Exclude<Step, { kind: "wait" }>, name: string, tally: Tally): Promise<void> {
    const action = newAgentAction(name);
    if (each.kind === "act") {
      tally.risk += each.points;
      if (each.allowed) tally.actions++;
      const decision = each.allowed ? "allow" : "block";
      await world.decide(action, findIn(action, { decision, session_risk: each.points }));
    } else if (each.kind === "learn") {
      tally.taints.add(each.word);
      const output = withOutput(action, "text");
      await world.watch.recordTaints(output, { ...findIn(output, { taints: [each.word] }), phase: "output" });
    } else if (tally.actions + tally.risk + tally.taints.size > 0) {
      Object.assign(tally, { risk: 0, taints: new Set() });
      await world.watch.reset(action.tenant, action.session.id, "principal", "seen");
    }
  }

  function expectAll(prefix: string, tallies: ReadonlyMap<Label, Tally>): void {
    for (const [each, { actions, risk, taints }] of tallies) {
      const state = world.watch.describe(newAgentAction(`${prefix}${each}`)).session_state;
      expect(state, each).to.include({ actions, risk });
      expect(new Set(state?.taints.map(({ name }) => name)), each).to.deep.equal(taints);
    }
  }

  it("has no more sessions in memory than are in use, and two", async () => {
    const actions = labels.map((each) => newAction({}, `bound-${each}`));
    const visits = actions.map((action) => ({ action, visit: world.watch.begin(action) }));
    expect(world.observed.watched).to.equal(labels.length);
    for (const { action, visit } of visits) {
      visit.applyVerdict(pendingOf(action, makeEvaluation(action)));
      visit.finish();
    }
    world.watch.begin(newAction({}, "one-more")).finish();
    expect(world.observed.watched).to.equal(2);
  });
});
