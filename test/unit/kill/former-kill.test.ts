import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { killKey, killOfEvent, targetOfEvent } from "../../../core/kill/kill.ts";
import { moveFormerKills } from "../../../core/kill/kill-restore.ts";
import { SessionWorld } from "../../support/session-world.ts";

const time = "2025-03-01T10:00:00.000Z";

describe("kills of a time when only sessions could be stopped", () => {
  let world: SessionWorld;

  beforeEach(async () => {
    world = await SessionWorld.create();
  });

  afterEach(() => world.remove());

  /** Entries as they were written then. */
  async function putFormer(tenant: string, ...sessions: readonly string[]): Promise<void> {
    for (const session of sessions) {
      const kill = { session, reason: "review_flood", by: null, note: null, killed_at: time };
      await world.evidence.store.put(`${tenant}/kill/${encodeURIComponent(session)}`, JSON.stringify(kill));
    }
  }

  it("are in force after a start, whatever the chain says, and released as others are", async () => {
    await putFormer("acme", "session-v1-a");
    const target = { scope: "session", subject: "session-v1-a" } as const;
    expect(world.killSwitch.isKilled("acme", target), "before they are moved").to.equal(false);
    await world.restart();
    expect(world.killSwitch.isKilled("acme", target)).to.equal(true);
    const { items } = await world.killSwitch.list("acme", { limit: 2 });
    expect(items).to.deep.equal([{ ...target, reason: "review_flood", by: null, note: null, killed_at: time }]);
    expect(await world.events(), "their event is on record already").to.deep.equal([]);
    await world.killSwitch.release("acme", target, "principal", "seen to");
    await world.restart();
    expect(world.killSwitch.isKilled("acme", target)).to.equal(false);
  });

  it("are moved however many they are, and none of another tenant or of what lies beside them", async () => {
    const sessions = Array.from({ length: 2_001 }, (_, at) => `session-v1-${String(at).padStart(4, "0")}`);
    await putFormer("acme", ...sessions);
    await putFormer("other", "session-v1-b");
    const { store } = world.evidence;
    const beside = killKey("acme", { scope: "session", subject: "session-v1-beside" });
    await store.put(beside, "{}");
    await moveFormerKills(store, "acme");
    const keys = await store.keys({ gte: "acme/kill/", lt: "acme/kill0" }).all();
    const expected = sessions.map((subject) => killKey("acme", { scope: "session", subject }));
    expect(keys).to.deep.equal([...expected, beside]);
    expect(await store.keys({ gte: "other/kill/", lt: "other/kill0" }).all()).to.deep.equal([
      "other/kill/session-v1-b",
    ]);
  });

  it("are told by events without a scope, and an event that names nothing known tells nobody what is stopped", () => {
    const told = killOfEvent({ event: "killed", session: "session-v1-a", reason: "operator", by: "p" }, time);
    expect(told).to.include({ scope: "session", subject: "session-v1-a", killed_at: time });
    for (const detail of [{}, { scope: null, session: "session-v1-a" }, { scope: "all", session: "session-v1-a" }]) {
      expect(() => targetOfEvent(detail)).to.throw(GatewayError, "to name what was stopped");
    }
  });
});
