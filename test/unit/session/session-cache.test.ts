import { expect } from "chai";
import type { RiskLimit } from "../../../core/session/risk-meter.ts";
import { SessionCache } from "../../../core/session/session-cache.ts";
import { headKey, type SessionEntry, ToolTable } from "../../../core/session/session-entry.ts";
import { LedgerWorld, newAction } from "../../support/ledger-world.ts";

const limit: RiskLimit = { killAt: 80, windowMs: 1_800_000, mode: "enforce" };
const observer = { watchedSessions: () => undefined };

describe("SessionCache", () => {
  let world: LedgerWorld;
  let cache: SessionCache;

  beforeEach(async () => {
    world = await LedgerWorld.create();
    cache = new SessionCache({ store: await world.openStore(), limit, capacity: 3, observer });
  });

  afterEach(() => world.remove());

  it("folds the session that was silent longest, and has it back from the store", async () => {
    const first = cache.open("acme", "s0", "p");
    first.risk.add(12, 1_000);
    await world.store.batch([cache.put("acme", "s0", first)]);
    for (const session of ["s1", "s2", "s3"]) cache.open("acme", session, "p");
    expect(cache.size).to.equal(3);
    expect(cache.peek(headKey("acme", "s0"))).to.equal(undefined);
    const again = cache.open("acme", "s0", "p");
    expect(again).to.not.equal(first);
    expect(again.risk.counted).to.deep.equal([12, 1_000]);
  });

  it("keeps in memory what is in use, beyond its capacity", () => {
    const used = ["s0", "s1", "s2", "s3", "s4"].map((session) => pinned(cache.open("acme", session, "p")));
    expect(cache.size).to.equal(5);
    expect(cache.open("acme", "s0", "p")).to.equal(used[0]);
    for (const entry of used) entry.pins--;
    cache.open("acme", "s5", "p");
    expect(cache.size).to.equal(3);
  });

  it("folds one that is used last", () => {
    for (const session of ["s0", "s1", "s2", "s0", "s3"]) cache.open("acme", session, "p");
    expect(["s0", "s1", "s2", "s3"].filter((session) => cache.peek(headKey("acme", session)))).to.deep.equal([
      "s0",
      "s2",
      "s3",
    ]);
  });

  it("folds sessions early where their histories are large", async () => {
    const large = new SessionCache({ store: world.store, limit, capacity: 20, observer });
    for (let session = 0; session < 20; session++) {
      const entry = large.open("acme", `s${session}`, "p");
      for (let n = 0; n < 32; n++) remember(entry);
      await world.store.batch([large.put("acme", `s${session}`, entry)]);
    }
    expect(large.size).to.be.within(2, 10);
  });

  it("knows sessions of a name in two tenants apart", () => {
    expect(cache.open("acme", "s", "p")).to.not.equal(cache.open("other", "s", "p"));
    expect(cache.open("a/b", "s", "p")).to.not.equal(cache.open("a", "b/s", "p"));
  });

  it("finds no session that nothing is known of, and keeps none", () => {
    expect(cache.find("acme", "s")).to.equal(undefined);
    expect(cache.size).to.equal(0);
  });

  it("throws SESSION_DAMAGED for a session whose head is damaged, until that is gone", async () => {
    await world.store.put(headKey("acme", "s"), "{}");
    expect(() => cache.open("acme", "s", "p"))
      .to.throw()
      .that.includes({ code: "SESSION_DAMAGED" });
    await world.store.del(headKey("acme", "s"));
    expect(cache.open("acme", "s", "p").risk.counted).to.deep.equal([0, 0]);
  });

  it("throws EVIDENCE_UNAVAILABLE where the store cannot be read, but for what is in memory", async () => {
    const known = cache.open("acme", "known", "p");
    await world.store.close();
    expect(() => cache.open("acme", "s", "p"))
      .to.throw()
      .that.includes({ code: "EVIDENCE_UNAVAILABLE" });
    expect(cache.open("acme", "known", "p")).to.equal(known);
  });
});

function pinned(entry: SessionEntry): SessionEntry {
  entry.pins++;
  return entry;
}

const table = new ToolTable();

function remember(entry: SessionEntry): void {
  const long = Array.from({ length: 4 }, (_, n) => `/${n}${"x".repeat(200)}`);
  const action = newAction({ facts: { hosts: long, paths: long, more: false, effect: "read" } });
  entry.remember(action, table.find(action), "allow", true, 1);
}
