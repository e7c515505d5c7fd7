import { expect } from "chai";
import { SessionOverview } from "../../../../core/admin/console/page.ts";
import type { SessionDirectory } from "../../../../core/session/session-directory.ts";
import { newAction, rejection } from "../../../support/ledger-world.ts";
import { findIn, SessionWorld } from "../../../support/session-world.ts";

const tookMs = 100;

describe("SessionOverview", () => {
  let world: SessionWorld;
  let overview: SessionOverview;
  let nowMs: number;
  let looks: string[];

  beforeEach(async () => {
    world = await SessionWorld.create({ risk: { killAt: 80, windowMs: 80_000 } });
    nowMs = 0;
    looks = [];
    const list: SessionDirectory["list"] = async (tenant, ...page) => {
      looks.push(tenant);
      const found = await world.control.sessionDirectory.list(tenant, ...page);
      nowMs += tookMs;
      return found;
    };
    overview = new SessionOverview({ list }, () => nowMs);
  });

  afterEach(() => world.remove());

  async function act(label: string, points: number): Promise<void> {
    // Sessions of one principal would count together.
    const action = newAction({ principal: { id: `principal-v1-${label}`, role: "operator", keyId: label } }, label);
    await world.decide(action, findIn(action, { decision: "allow", session_risk: points }));
  }

  it("tells the sessions of a tenant with the highest risk, the highest first, and no more than fit a page", async () => {
    for (let points = 0; points < 25; points++) await act(`s-${points}`, points);
    const risks = (await overview.read("acme")).map((each) => (each.state === "damaged" ? null : each.risk));
    expect(risks).to.deep.equal(Array.from({ length: 20 }, (_, at) => 24 - at));
    expect(await overview.read("other")).to.deep.equal([]);
  });

  it("looks once for all who ask meanwhile, and again after nine times as long as that took", async () => {
    const [one, other] = await Promise.all([overview.read("acme"), overview.read("acme")]);
    expect([other === one, looks]).to.deep.equal([true, ["acme"]]);
    await act("new", 40);
    nowMs = tookMs + 9 * tookMs - 1;
    expect(await overview.read("acme")).to.equal(one);
    nowMs++;
    expect((await overview.read("acme")).length).to.equal(one.length + 1);
    expect(looks).to.deep.equal(["acme", "acme"]);
  });

  it("looks again where it failed, and for another tenant at once", async () => {
    await act("one", 1);
    const { store } = world.evidence;
    await store.close();
    await rejection(overview.read("acme"));
    await store.open();
    expect(await overview.read("other")).to.deep.equal([]);
    nowMs += 10 * tookMs;
    expect((await overview.read("acme")).length).to.equal(1);
  });
});
