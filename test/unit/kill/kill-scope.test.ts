import { expect } from "chai";
import { type ActionEnvelope, withOutput } from "../../../core/action/envelope.ts";
import { GatewayError } from "../../../core/action/error.ts";
import { principalId, sessionScope } from "../../../core/action/principal.ts";
import type { ActionRecord, EvidenceRecord } from "../../../core/evidence/record/record.ts";
import type { KillOrder, KillTarget } from "../../../core/kill/kill.ts";
import { makeEvaluation, newAction } from "../../support/ledger-world.ts";
import { SessionWorld } from "../../support/session-world.ts";

/** Somebody's action in a session of that label. */
function actionOf(key: string, label: string, tenant = "acme"): ActionEnvelope {
  const id = principalId(tenant, `sha256:${key}`);
  const session = sessionScope("http", tenant, id, label);
  return newAction({ tenant, principal: { id, role: "operator", keyId: key }, session });
}

interface Row {
  readonly target: KillTarget;
  readonly covered: readonly ActionEnvelope[];
  /** As near to it as an action can be. */
  readonly near: readonly ActionEnvelope[];
  readonly says: RegExp;
}

const own = actionOf("ada", "work");
const rows: readonly Row[] = [
  {
    target: { scope: "session", subject: own.session.id },
    covered: [own],
    near: [actionOf("ada", "play"), actionOf("bob", "work"), actionOf("ada", "work", "other")],
    says: /^session `session-v1-[0-9a-f]{64}` is stopped until an operator or admin of its tenant releases it$/,
  },
  {
    target: { scope: "principal", subject: own.principal.id },
    covered: [own, actionOf("ada", "play")],
    near: [actionOf("bob", "work"), actionOf("ada", "work", "other")],
    says: /^principal `principal-v1-[0-9a-f]{64}` is stopped until an operator or admin of its tenant releases it$/,
  },
  {
    target: { scope: "tenant", subject: null },
    covered: [own, actionOf("ada", "play"), actionOf("bob", "work")],
    near: [actionOf("ada", "work", "other")],
    says: /^tenant `acme` is stopped until an operator or admin of it releases it$/,
  },
  {
    target: { scope: "gateway", subject: null },
    covered: [own, actionOf("ada", "play"), actionOf("bob", "work"), actionOf("ada", "work", "other")],
    near: [],
    says: /^the whole gateway is stopped until an admin of the tenant that runs it releases it$/,
  },
];

function orderOf(target: KillTarget): KillOrder {
  return { ...target, reason: "operator", by: "principal", note: null };
}

for (const { target, covered, near, says } of rows) {
  describe(`a kill of scope ${target.scope}`, () => {
    let world: SessionWorld;

    beforeEach(async () => {
      world = await SessionWorld.create();
      await world.evidence.act({ tenant: "other" });
      await world.killSwitch.includeNewTenants();
    });

    afterEach(() => world.remove());

    it("blocks all that it covers, in every phase, says who releases it, and touches nothing beside it", async () => {
      for (const action of [...covered, ...near])
        expect(world.killSwitch.evaluate(action).decision).to.equal("abstain");
      const recorded = world.killSwitch.kill("acme", orderOf(target));
      const phases = covered.flatMap((action) => [
        { ...action, phase: "list" } as ActionEnvelope,
        action,
        withOutput(action, { ok: true }),
      ]);
      for (const action of phases) {
        const { decision, findings } = world.killSwitch.evaluate(action);
        expect([decision, findings[0]?.rule]).to.deep.equal(["block", `${target.scope}.killed`]);
        expect(findings[0]?.message).to.match(says);
        expect(() => world.killSwitch.check(action))
          .to.throw(GatewayError)
          .with.property("code", "SESSION_KILLED");
      }
      for (const action of near) {
        expect(world.killSwitch.evaluate(action).decision).to.equal("abstain");
        world.killSwitch.check(action);
      }
      await recorded;
    });

    it("is in force after a restart, and not after its release and the next", async () => {
      await world.killSwitch.kill("acme", orderOf(target));
      await world.restart();
      for (const action of covered) expect(() => world.killSwitch.check(action)).to.throw(GatewayError);
      for (const action of near) world.killSwitch.check(action);
      await world.killSwitch.release("acme", target, "principal", "well");
      for (const action of covered) world.killSwitch.check(action);
      await world.restart();
      for (const action of covered) world.killSwitch.check(action);
    });

    it("lets no decision stand dispatched behind it, however many race with it [S57]", async () => {
      const { dispatched, behind, refused } = await race((action) => world.killSwitch.check(action));
      expect(dispatched).to.be.above(0).and.below(99);
      expect(behind).to.equal(0);
      expect(refused).to.deep.equal(Array<string>(99 - dispatched).fill("SESSION_KILLED"));
    });

    it("does, once nobody asks in the turn in which a decision gets its place", async () => {
      const { behind, refused } = await race(() => undefined);
      expect(behind).to.be.above(0);
      expect(refused).to.deep.equal([]);
    });

    /** Decides about 99 actions that are covered while the kill comes. What stands dispatched, and behind the kill? */
    async function race(check: (action: ActionEnvelope) => undefined): Promise<Raced> {
      const actions = Array.from({ length: 100 }, (_, index) => againOf(covered[index % covered.length] ?? own));
      const decided = actions.map(async (action, index) => {
        for (let turn = 0; turn < index % 10; turn++) await new Promise(setImmediate);
        if (index === 55) return world.killSwitch.kill("acme", orderOf(target));
        await world.ledger.actions.recordDecision(action, makeEvaluation(action), undefined, [
          { check: () => check(action) },
        ]);
      });
      const settled = await Promise.allSettled(decided);
      const refused = settled.flatMap((each) =>
        each.status === "rejected" ? [(each.reason as GatewayError).code] : [],
      );
      const ids = new Set(actions.map(({ id }) => id));
      const raced = { dispatched: 0, behind: 0, refused };
      for (const tenant of ["acme", "other"]) {
        const records = await world.evidence.recordsOf(tenant);
        const killedAt = records.findIndex(({ kind }) => kind === "session");
        const dispatched = records.filter(isDispatched).filter(({ action }) => ids.has(action.id));
        raced.dispatched += dispatched.length;
        if (killedAt !== -1) raced.behind += dispatched.filter(({ seq }) => seq > killedAt).length;
      }
      return raced;
    }
  });
}

describe("kills of several scopes", () => {
  let world: SessionWorld;

  beforeEach(async () => {
    world = await SessionWorld.create();
  });

  afterEach(() => world.remove());

  it("are told by the widest, and each is released by itself", async () => {
    for (const { target } of rows) await world.killSwitch.kill("acme", orderOf(target));
    for (const { target, says } of rows.toReversed()) {
      expect(world.killSwitch.evaluate(own).findings[0]?.message).to.match(says);
      await world.killSwitch.release("acme", target, "principal", "well");
    }
    expect(world.killSwitch.evaluate(own).decision).to.equal("abstain");
  });

  it("are listed together, page by page, or one scope alone", async () => {
    for (const { target } of rows) await world.killSwitch.kill("acme", orderOf(target));
    const found: KillTarget[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page = await world.killSwitch.list("acme", { limit: 1, cursor });
      found.push(...page.items.map(({ scope, subject }) => ({ scope, subject }) as KillTarget));
      cursor = page.next;
    }
    expect(found).to.have.deep.members(rows.map(({ target }) => target));
    const { items } = await world.killSwitch.list("acme", { limit: 10, scope: "principal" });
    expect(items.map(({ subject }) => subject)).to.deep.equal([own.principal.id]);
  });

  it("are on record by what they name", async () => {
    for (const { target } of rows) await world.killSwitch.kill("acme", orderOf(target));
    const told = (await world.events()).map(({ event, scope, session, principal }) => [
      event,
      scope,
      session,
      principal,
    ]);
    expect(told).to.deep.equal([
      ["killed", "session", own.session.id, undefined],
      ["killed", "principal", undefined, own.principal.id],
      ["killed", "tenant", undefined, undefined],
      ["killed", "gateway", undefined, undefined],
    ]);
  });

  it("refuse a tenant at the start where one of its events names nothing that is known", async () => {
    await world.ledger.recordEvent("acme", "session", { event: "killed", scope: "planet" });
    await world.restart();
    expect(world.ledger.status()[0]).to.include({ tenant: "acme", state: "refused" });
  });
});

interface Raced {
  readonly dispatched: number;
  readonly behind: number;
  readonly refused: readonly string[];
}

/** The same attempt, once more. */
function againOf({ tenant, principal, session }: ActionEnvelope): ActionEnvelope {
  return newAction({ tenant, principal, session });
}

function isDispatched(record: EvidenceRecord): record is ActionRecord {
  return "effect" in record && record.effect === "dispatched";
}
