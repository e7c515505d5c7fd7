import { randomBytes } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { ActionEnvelope } from "../../../../core/action/envelope.ts";
import { WrappingKey } from "../../../../core/evidence/key/wrapping-key.ts";
import { pieceKeys } from "../../../../core/evidence/private/entry-piece.ts";
import {
  fieldsDigest,
  type PrivateField,
  type PrivateMember,
} from "../../../../core/evidence/private/private-field.ts";
import { partRange, privateRanges, recordKey } from "../../../../core/evidence/record/key-space.ts";
import type { ActionRecord, EventRecord } from "../../../../core/evidence/record/record.ts";
import type { Compact, Erased, ErasureRequest } from "../../../../core/evidence/retention/erasure.ts";
import { compactRange } from "../../../../core/store/rewrite.ts";
import { filesWith } from "../../../support/disk-search.ts";
import { layFormerEntry } from "../../../support/former-entry.ts";
import { LedgerWorld, makeEvaluation, newAction, rejection } from "../../../support/ledger-world.ts";

const annasCall = { patient: "Anna Schmidt", dose: 5 };

describe("Ledger.erase(tenant, request, compact)", () => {
  let world: LedgerWorld;
  let anna: ActionEnvelope;
  const compact: Compact = (range) => compactRange(world.store, range);

  beforeEach(async () => {
    world = await LedgerWorld.create();
    await world.open();
    anna = await world.act({ arguments: annasCall }, "anna"); // records 1 and 2
    await world.act({ arguments: annasCall }, "other"); // records 3 and 4
  });

  afterEach(() => world.remove());

  function erase(over: Partial<ErasureRequest> = {}): Promise<Erased> {
    const request = { of: { seq: 1 }, fields: ["arguments.patient"], reason: "asked by letter", by: "dpo", ...over };
    return world.ledger.erase("acme", request, compact);
  }

  async function fieldsOf(seq: number, member: PrivateMember = "arguments"): Promise<readonly PrivateField[]> {
    return (await world.ledger.disclosure((await world.recordsOf())[seq] as ActionRecord))[member] ?? [];
  }

  async function valuesOf(seq: number): Promise<readonly unknown[]> {
    return (await fieldsOf(seq)).map(({ value }) => value).filter((value) => value !== undefined);
  }

  it("leaves the field's commitment alone, and every record, proof and checkpoint as good as before", async () => {
    const before = await world.texts();
    expect(await erase()).to.deep.equal({ seqs: [1], fields: 1 });
    const fields = await fieldsOf(1);
    const record = (await world.recordsOf())[1] as ActionRecord;
    expect(fieldsDigest(fields.map(({ commitment }) => commitment))).to.equal(record.action.arguments_digest);
    expect(fields.filter(({ salt }) => salt === undefined).map((field) => Object.keys(field))).to.deep.equal([
      ["commitment"],
    ]);
    expect(fields.find(({ name }) => name === "dose")?.value).to.equal(5);
    expect((await world.texts()).slice(0, before.length)).to.deep.equal(before);
    expect(await world.ledger.verify("acme")).to.include({ ok: true, records: before.length + 1 });
  });

  it("says what was erased, why and for whom", async () => {
    await erase();
    const record = (await world.recordsOf()).at(-1) as EventRecord;
    expect([record.kind, record.detail]).to.deep.equal([
      "redaction",
      { event: "erased", seqs: [1], fields: ["arguments.patient"], reason: "asked by letter", by: "dpo" },
    ]);
  });

  it("takes the entry off the disk", async () => {
    await expectGone(["disclosure"]);
  });

  it("takes an entry that an earlier version wrote, and its key, off the disk", async () => {
    await layFormerEntry(world, (await world.recordsOf())[1] as ActionRecord);
    expect(await valuesOf(1)).to.have.members(Object.values(annasCall));
    await expectGone(["disclosure", "data-key"]);
    expect(await world.store.get(recordKey("acme", 1, "data-key"))).to.equal(undefined);
  });

  it("takes the pieces of large fields off the disk, and keeps the rest of them", async () => {
    await world.act({ arguments: { scan: randomBytes(400_000).toString("hex"), dose: 5 } });
    await world.act({ arguments: { scan: randomBytes(400_000).toString("hex"), dose: 6 } });
    const [kept, seq] = [5, 7];
    const [keptPlace = "", place = ""] = await world.store.getMany(
      [kept, seq].map((each) => recordKey("acme", each, "pieces")),
    );
    // What lies whole in a log, and in a table.
    const pieces = (await world.store.getMany([...pieceKeys("acme", place)])).map((piece) =>
      piece?.slice(4_000, 4_400),
    );
    expect(pieces).to.have.length(4);
    for (const piece of pieces) expect(await filesWith(world.dir, piece ?? "")).to.have.length.above(0);
    expect(await erase({ of: { seq }, fields: ["arguments.scan"] })).to.deep.equal({ seqs: [seq], fields: 1 });
    for (const piece of pieces) expect(await filesWith(world.dir, piece ?? "")).to.deep.equal([]);
    expect(await valuesOf(seq)).to.deep.equal([6]);
    expect(await world.store.get(recordKey("acme", seq, "pieces"))).to.equal(undefined);
    expect(await world.store.keys(partRange("acme", "piece")).all()).to.deep.equal(pieceKeys("acme", keptPlace));
    expect(await valuesOf(kept)).to.have.length(2);
    expect(await world.ledger.verify("acme")).to.include({ ok: true });
  });

  async function expectGone(parts: readonly ("disclosure" | "data-key")[]): Promise<void> {
    const old = await Promise.all(parts.map((part) => world.store.get(recordKey("acme", 1, part))));
    for (const text of old) expect(await filesWith(world.dir, text ?? "")).to.have.length(2);
    await erase();
    for (const text of old) expect(await filesWith(world.dir, text ?? "")).to.deep.equal([]);
    await world.close();
    await world.open();
    for (const text of old) expect(await filesWith(world.dir, text ?? "")).to.deep.equal([]);
    expect(await valuesOf(1)).to.deep.equal([5]);
    expect(await world.ledger.verify("acme")).to.include({ ok: true });
  }

  it("reaches every record of a session, and no other", async () => {
    const erased = await erase({ of: { session: anna.session.id }, fields: ["arguments.*", "output.*"] });
    expect(erased).to.deep.equal({ seqs: [1, 2], fields: 3 });
    expect(await valuesOf(1)).to.deep.equal([]);
    expect((await fieldsOf(2, "output")).map((field) => Object.keys(field))).to.deep.equal([["commitment"]]);
    expect(await valuesOf(3)).to.have.members(Object.values(annasCall));
  });

  describe("of a record with facts", () => {
    const url = { scheme: "https", host: "a.example", zone: "name", port: 443, userinfo: false, odd: false } as const;
    const facts = { hosts: ["a.example"], paths: [], more: false, effect: "network", url: [url] } as const;

    /** Erases these fields of a new record, and returns the names of its arguments and facts that are left. */
    async function leftAfter(...fields: readonly string[]): Promise<readonly (readonly unknown[])[]> {
      const action = newAction({ arguments: annasCall, facts });
      const { seq } = await world.ledger.actions.recordDecision(action, makeEvaluation(action, "block"));
      await erase({ of: { seq }, fields });
      const left = await Promise.all([fieldsOf(seq), fieldsOf(seq, "facts")]);
      const record = (await world.recordsOf())[seq] as ActionRecord;
      const digests = left.map((each) => fieldsDigest(each.map(({ commitment }) => commitment)));
      expect(digests).to.deep.equal([record.action.arguments_digest, record.action.facts?.digest]);
      expect(await world.ledger.verify("acme")).to.include({ ok: true });
      return left.map((each) => each.flatMap(({ name }) => name ?? []).sort());
    }

    it("takes all facts with one argument, because they repeat it", async () => {
      expect(await leftAfter("arguments.patient")).to.deep.equal([["dose"], []]);
    });

    it("takes the facts that are meant, and leaves the arguments", async () => {
      expect(await leftAfter("facts.u*")).to.deep.equal([
        ["dose", "patient"],
        ["hosts", "more", "paths"],
      ]);
      expect(await leftAfter("facts.*")).to.deep.equal([["dose", "patient"], []]);
    });

    it("leaves both where neither is meant", async () => {
      expect(await leftAfter("output.*", "arguments.none")).to.deep.equal([
        ["dose", "patient"],
        ["hosts", "more", "paths", "url"],
      ]);
    });
  });

  it("finishes what an earlier attempt began: erases nothing twice, and clears the disk again", async () => {
    const old = (await world.store.get(recordKey("acme", 1, "disclosure"))) ?? "";
    let ranges = 0;
    const broken: Compact = (range) =>
      ++ranges > privateRanges("acme", 1, 1).length ? Promise.reject(new Error("disk")) : compact(range);
    const whole = { of: { seq: 1 }, fields: ["*"], reason: "r", by: "b" };
    expect((await rejection(world.ledger.erase("acme", whole, broken))).message).to.equal("disk");
    expect(await filesWith(world.dir, old)).to.have.length(1);
    const records = await world.texts();
    expect(await erase()).to.deep.equal({ seqs: [], fields: 0 });
    expect(await world.texts()).to.deep.equal(records);
    expect(await filesWith(world.dir, old)).to.deep.equal([]);
  });

  it("brings nothing back when two erase from one record at once", async () => {
    await Promise.all([erase(), erase({ fields: ["arguments.dose"] })]);
    expect(await valuesOf(1)).to.deep.equal([]);
  });

  it("goes on while actions are recorded", async () => {
    await Promise.all([erase(), ...Array.from({ length: 50 }, () => world.act())]);
    expect(await valuesOf(1)).to.deep.equal([5]);
    expect(await world.ledger.verify("acme")).to.include({ ok: true, records: 106 });
  });

  it("tells of at most 256 records at once", async () => {
    for (let count = 0; count < 129; count++) await world.act({}, "anna");
    await erase({ of: { session: anna.session.id }, fields: ["*"] });
    const told = (await world.recordsOf()).filter(({ kind }) => kind === "redaction") as EventRecord[];
    expect(told.map(({ detail }) => (detail.seqs as number[]).length)).to.deep.equal([256, 4]);
    expect(await world.ledger.verify("acme")).to.include({ ok: true });
  });

  it("erases salts of values that were never stored only where all fields of the member are meant", async () => {
    await world.ledger.close();
    await world.open({ fieldPolicy: { storeValues: false, storeLabels: true, redactFields: [] } });
    const action = newAction({ arguments: annasCall });
    const { seq } = await world.ledger.actions.recordDecision(action, makeEvaluation(action, "block"));
    expect(await erase({ of: { seq }, fields: ["arguments.patient", "arguments.p*"] })).to.include({ fields: 0 });
    expect(await erase({ of: { seq }, fields: ["arguments.*"] })).to.include({ fields: 2 });
  });

  for (const [what, request, tenant, detail] of [
    ["a tenant without evidence", {}, "nobody", "the tenant has no evidence"],
    ["a session the tenant does not have", { of: { session: "s" } }, "acme", "the tenant has no such session"],
    ["a record the tenant does not have", { of: { seq: 99 } }, "acme", "the tenant has no record 99"],
  ] as const) {
    it(`refuses ${what}`, async () => {
      const whole = { of: { seq: 1 }, fields: ["*"], reason: "r", by: "b", ...request };
      expect(await rejection(world.ledger.erase(tenant, whole, compact))).to.include({ code: "NOT_FOUND", detail });
      expect(world.ledger.status().map((each) => each.tenant)).to.deep.equal(["acme"]);
    });
  }

  it("refuses a damaged entry, and erases nothing", async () => {
    await world.store.put(
      recordKey("acme", 1, "disclosure"),
      (await world.store.get(recordKey("acme", 3, "disclosure"))) ?? "",
    );
    expect(await rejection(erase())).to.include({
      code: "EVIDENCE_UNAVAILABLE",
      detail: "the private fields of record 1 of tenant `acme` are damaged",
    });
    expect((await world.recordsOf()).some(({ kind }) => kind === "redaction")).to.equal(false);
  });
});

describe("Ledger.disclosure(record)", () => {
  let world: LedgerWorld;
  let decision: ActionRecord;
  let outcome: ActionRecord;

  beforeEach(async () => {
    world = await LedgerWorld.create();
    await world.open();
    await world.act({ arguments: annasCall });
    const records = (await world.recordsOf()) as readonly ActionRecord[];
    decision = records[1] as ActionRecord;
    outcome = records[2] as ActionRecord;
  });

  afterEach(() => world.remove());

  it("shows a decision's arguments, an outcome's answer, and nothing of an unknown outcome", async () => {
    expect(Object.keys(await world.ledger.disclosure(decision))).to.deep.equal(["arguments"]);
    expect(Object.keys(await world.ledger.disclosure(outcome))).to.deep.equal(["output"]);
    const lost = newAction();
    await world.ledger.actions.recordDecision(lost, makeEvaluation(lost));
    await world.ledger.actions.recordOutcome(lost, { status: "unknown", reason: "timeout" });
    expect(await world.ledger.disclosure((await world.recordsOf()).at(-1) as ActionRecord)).to.deep.equal({});
  });

  for (const [what, damage] of [
    ["is gone", (at: number) => [recordKey("acme", at, "disclosure")]],
    ["of an earlier version has lost its key", (at: number) => [recordKey("acme", at, "data-key")]],
    ["of an earlier version has lost all but its key", (at: number) => [recordKey("acme", at, "disclosure")]],
  ] as const) {
    it(`says that an entry ${what}: it was not erased`, async () => {
      if (what !== "is gone") await layFormerEntry(world, decision);
      for (const key of damage(1)) await world.store.del(key);
      expect(await rejection(world.ledger.disclosure(decision))).to.include({
        code: "EVIDENCE_UNAVAILABLE",
        detail: "the private fields of record 1 of tenant `acme` are damaged",
      });
      expect(await world.ledger.disclosure(outcome)).to.have.property("output");
    });
  }

  it("says that an entry is another's, though it opens", async () => {
    const forged = { ...decision, action: { ...decision.action, arguments_digest: fieldsDigest([]) } };
    expect(await rejection(world.ledger.disclosure(forged))).to.include({ code: "EVIDENCE_UNAVAILABLE" });
  });
});

describe("a start", () => {
  let world: LedgerWorld;

  beforeEach(async () => {
    world = await LedgerWorld.create();
    await world.open();
    await world.act();
    await world.act({ tenant: "other" });
  });

  afterEach(() => world.remove());

  it("refuses a tenant whose wrapping key does not open its private entries; others go on", async () => {
    const [genesis] = await world.recordsOf();
    const chain = String(genesis?.chain);
    await world.close();
    await writeFile(join(world.keysPath, `${chain}.wrap`), WrappingKey.generate(randomBytes).toText(chain));
    await world.open();
    expect(await rejection(world.act())).to.include({
      code: "EVIDENCE_UNAVAILABLE",
      detail: "chain of tenant `acme` has a wrapping key that does not open its private entries",
    });
    await world.act({ tenant: "other" });
  });

  it("does not refuse a tenant whose newest private entry is damaged, or of an earlier version", async () => {
    const records = await world.recordsOf();
    await layFormerEntry(world, records[1] as ActionRecord);
    await world.store.put(recordKey("acme", 2, "disclosure"), "damaged");
    await world.close();
    await world.open();
    await world.act();
  });

  it("refuses a tenant whose wrapping key is gone; others go on", async () => {
    const [genesis] = await world.recordsOf();
    await world.close();
    await rm(join(world.keysPath, `${genesis?.chain}.wrap`));
    await world.open();
    expect(await rejection(world.act())).to.include({
      code: "EVIDENCE_UNAVAILABLE",
      detail: "chain of tenant `acme` has no good wrapping key in the key folder",
    });
    await world.act({ tenant: "other" });
  });
});
