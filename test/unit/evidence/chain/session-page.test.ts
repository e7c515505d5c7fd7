import { expect } from "chai";
import { recordKey, sessionKey } from "../../../../core/evidence/record/key-space.ts";
import type { ActionRecord } from "../../../../core/evidence/record/record.ts";
import { LedgerWorld, makeEvaluation, newAction, rejection } from "../../../support/ledger-world.ts";

describe("Ledger.sessions(tenant, page)", () => {
  let world: LedgerWorld;

  before(async () => {
    world = await LedgerWorld.create();
    await world.open();
    for (let index = 0; index < 7; index++) await world.act({}, `label-${index}`);
    const blocked = newAction({}, "label-0");
    await world.ledger.actions.recordDecision(blocked, makeEvaluation(blocked, "block"));
    await world.act({ tenant: "other" });
  });

  after(() => world.remove());

  it("lists the session that began last first, page by page, each once", async () => {
    const seen: string[] = [];
    let cursor: string | undefined;
    const sizes: number[] = [];
    do {
      const page = await world.ledger.sessions("acme", { limit: 3, ...(cursor === undefined ? {} : { cursor }) });
      seen.push(...page.items.map((session) => session.label ?? ""));
      sizes.push(page.items.length);
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
    expect(seen).to.deep.equal([6, 5, 4, 3, 2, 1, 0].map((index) => `label-${index}`));
    expect(sizes).to.deep.equal([3, 3, 1]);
  });

  it("sums each session up", async () => {
    const action = newAction({}, "label-0");
    const { items } = await world.ledger.sessions("acme", { limit: 7 });
    expect(items.at(-1)).to.deep.equal({
      id: action.session.id,
      transport: "http",
      label: "label-0",
      principal: action.principal.id,
      started_at: "2026-05-01T10:00:00.000Z",
      last_at: "2026-05-01T10:00:00.000Z",
      first_seq: 1,
      last_seq: 15,
      records: 3,
      allow: 1,
      review: 0,
      block: 1,
    });
  });

  it("shows a tenant its own", async () => {
    expect((await world.ledger.sessions("other", { limit: 100 })).items).to.have.length(1);
    expect(await world.ledger.sessions("nobody", { limit: 100 })).to.deep.equal({ items: [], next: null });
  });

  for (const limit of [0, -1, 1_001, 1.5, Number.NaN]) {
    it(`refuses the limit ${limit}`, async () => {
      expect(await rejection(world.ledger.sessions("acme", { limit }))).to.include({
        code: "INVALID_PARAMS",
        detail: `expected \`limit\` from 1 to 1000, got \`${limit}\``,
      });
    });
  }

  for (const cursor of ["", "x", "-1", "1e3", "9".repeat(16)]) {
    it(`refuses the cursor \`${cursor}\``, async () => {
      expect(await rejection(world.ledger.sessions("acme", { limit: 1, cursor }))).to.include({
        code: "INVALID_PARAMS",
        detail: "expected `cursor` to be the `next` of a page",
      });
    });
  }
});

describe("Ledger.records(tenant, session, page)", () => {
  let world: LedgerWorld;
  let session: string;

  beforeEach(async () => {
    world = await LedgerWorld.create();
    await world.open();
    for (let count = 0; count < 4; count++) {
      session = (await world.act({}, "mine")).session.id;
      await world.act({}, "another");
    }
  });

  afterEach(() => world.remove());

  it("gives the session's records in order, page by page", async () => {
    const first = await world.ledger.records("acme", session, { limit: 5 });
    const second = await world.ledger.records("acme", session, { limit: 5, cursor: first.next ?? "" });
    const all = [...first.items, ...second.items] as ActionRecord[];
    expect(all.map((record) => record.session.index)).to.deep.equal([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(all.every((record) => record.session.id === session)).to.equal(true);
    expect([first.next, second.next]).to.deep.equal(["5", null]);
    expect((await world.ledger.records("acme", session, { limit: 5, cursor: "8" })).items).to.deep.equal([]);
  });

  for (const [what, tenant, id] of [
    ["a session that is not there", "acme", "session-v1-none"],
    ["a name too long to be one", "acme", "x".repeat(257)],
    ["a name that is no text", "acme", "\ud800"],
  ] as const) {
    it(`answers NOT_FOUND for ${what}`, async () => {
      expect(await rejection(world.ledger.records(tenant, id, { limit: 1 }))).to.include({ code: "NOT_FOUND" });
    });
  }

  it("answers another tenant as for a session that is not there", async () => {
    const foreign = await rejection(world.ledger.records("other", session, { limit: 1 }));
    const unknown = await rejection(world.ledger.records("acme", "none", { limit: 1 }));
    expect(foreign.message).to.equal(unknown.message);
  });

  for (const [what, damage] of [
    ["an index entry is missing", () => world.store.del(sessionKey("acme", session, 3))],
    ["an index entry leads to another session", () => world.store.put(sessionKey("acme", session, 3), "3")],
    ["a record is missing", () => world.store.del(recordKey("acme", 5))],
    ["the summary is nonsense", () => world.store.put(sessionKey("acme", session), "{")],
    [
      "a record of another tenant stands in its place",
      async () => {
        const text = (await world.store.get(recordKey("acme", 5))) ?? "";
        await world.store.put(recordKey("acme", 5), text.replace('"tenant":"acme"', '"tenant":"else"'));
      },
    ],
  ] as const) {
    it(`says EVIDENCE_UNAVAILABLE, and shows no gap, when ${what}`, async () => {
      await damage();
      expect(await rejection(world.ledger.records("acme", session, { limit: 10 }))).to.include({
        code: "EVIDENCE_UNAVAILABLE",
        detail: "sessions of tenant `acme` do not match its chain; verify the chain",
      });
    });
  }

  for (const [what, limit] of [
    ["is on the page", 10],
    ["is the last of the page", 1],
  ] as const) {
    it(`says EVIDENCE_UNAVAILABLE when a record that the disk returns otherwise ${what}`, async () => {
      const { items } = await world.ledger.records("acme", session, { limit: 10 });
      for (const { seq, session: place } of items as readonly ActionRecord[]) {
        const key = recordKey("acme", seq);
        const text = (await world.store.get(key)) ?? "";
        await world.store.put(key, text.replace('"capability":"write"', '"capability":"writf"'));
        const page = { limit, cursor: limit === 1 ? String(place.index) : "0" };
        expect(await rejection(world.ledger.records("acme", session, page))).to.include({
          code: "EVIDENCE_UNAVAILABLE",
        });
        await world.store.put(key, text);
      }
      expect(await world.ledger.records("acme", session, { limit: 10 })).to.deep.include({ items });
    });
  }

  it("says EVIDENCE_UNAVAILABLE while the store is closed", async () => {
    await world.store.close();
    expect(await rejection(world.ledger.records("acme", session, { limit: 10 }))).to.include({
      code: "EVIDENCE_UNAVAILABLE",
      detail: "the store cannot be read; see the log",
    });
  });
});
