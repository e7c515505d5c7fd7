import { expect } from "chai";
import { GatewayError } from "../../../../core/action/error.ts";
import { VerifyingKey } from "../../../../core/action/signing-key.ts";
import { evidenceRules } from "../../../../core/compose/evidence-rules.ts";
import { parseRedactions } from "../../../../core/evidence/bundle/build.ts";
import { readBundle } from "../../../../core/evidence/bundle/bundle-line.ts";
import { SessionExport } from "../../../../core/evidence/bundle/session-export.ts";
import { type BundleReport, verifyBundle } from "../../../../core/evidence/bundle/verify.ts";
import { KeyFolder } from "../../../../core/evidence/key/key-folder.ts";
import type { EventRecord, EvidenceRecord } from "../../../../core/evidence/record/record.ts";
import { LedgerWorld, makeEvaluation, newAction, rejection } from "../../../support/ledger-world.ts";

describe("SessionExport", () => {
  let world: LedgerWorld;
  let exporter: SessionExport;

  beforeEach(async () => {
    world = await LedgerWorld.create();
    const ledger = await world.open();
    const keys = new KeyFolder(world.keysPath, () => new Uint8Array(32));
    exporter = new SessionExport({ store: world.store, keys, ledger, clock: world.clock.now });
  });
  afterEach(() => world.remove());

  const session = newAction().session.id;
  const request = { session, by: "principal-v1-auditor", disclose: true, redact: [] };

  async function genesisKey(): Promise<VerifyingKey> {
    const [genesis] = (await world.recordsOf()) as [EvidenceRecord & { detail: { public_key: string } }];
    return VerifyingKey.parse(genesis.detail.public_key) as VerifyingKey;
  }

  async function verify(bundle: Buffer): Promise<BundleReport> {
    return verifyBundle(bundle, { keys: [await genesisKey()], rules: evidenceRules, nowMs: world.clock.nowMs });
  }

  it("makes a bundle that verifies, of this session among others", async () => {
    await world.ledger.recordEvent("acme", "configuration", { event: "started", policies: [] });
    await world.act();
    await world.act({}, "another");
    const blocked = newAction();
    await world.ledger.actions.recordDecision(blocked, makeEvaluation(blocked, "block"));
    const bundle = await exporter.bundle("acme", request);
    const report = await verify(bundle);
    expect(report).to.include({ verdict: "self-attested", first_bad: null, records: 5 });
    expect(String(bundle)).to.not.include(newAction({}, "another").session.id);
    expect(String(bundle)).to.include("/srv/notes/today.md");
  });

  it("holds the kills that bear on the session, and no other", async () => {
    const { principal } = await world.act();
    const told = [
      { scope: "session", session },
      { scope: "principal", principal: principal.id },
      { scope: "tenant" },
      { scope: "gateway" },
    ];
    const foreign = [
      { scope: "session", session: newAction({}, "another").session.id },
      { scope: "principal", principal: "principal-v1-another" },
    ];
    for (const stop of [...told, ...foreign]) {
      for (const event of ["killed", "released"]) await world.ledger.recordEvent("acme", "session", { event, ...stop });
    }
    const bundle = await exporter.bundle("acme", request);
    const events = readBundle(bundle).entries.flatMap(({ record }) =>
      record.kind === "session" ? [record.detail] : [],
    );
    const expected = told.flatMap((stop) => ["killed", "released"].map((event) => ({ event, ...stop })));
    expect(events).to.deep.equal(expected);
    expect(await verify(bundle)).to.include({ verdict: "self-attested", first_bad: null });
  });

  it("puts on record who exported what, before it does", async () => {
    await world.act();
    await exporter.bundle("acme", request);
    expect((await world.recordsOf()).at(-1)).to.deep.include({
      kind: "admin",
      detail: { action: "evidence.export", principal: "principal-v1-auditor", session },
    });
  });

  /** How many fields each list shows as a commitment alone. */
  function withheldIn(bundle: Buffer): number[] {
    const lists = readBundle(bundle).entries.map(({ fields }) => fields);
    return lists
      .filter(({ length }) => length > 0)
      .map((fields) => fields.filter((field) => /^[0-9a-f]{64}$/.test(field)).length);
  }

  it("signs with the last key after a rotation", async () => {
    await world.act();
    await world.ledger.rotateKey("acme");
    await world.act();
    const bundle = await exporter.bundle("acme", request);
    const { key_id: keyId } = readBundle(bundle).seal;
    const rotation = (await world.recordsOf()).find(({ kind }) => kind === "key") as EventRecord;
    expect(keyId).to.equal(rotation.detail.new_key_id);
    expect((await verify(bundle)).verdict).to.equal("self-attested");
  });

  it("withholds what it is asked to, says so, and still verifies", async () => {
    await world.act();
    const redact = parseRedactions(["1.arguments.content", "2.output.ok"]);
    const bundle = await exporter.bundle("acme", { ...request, redact });
    expect(withheldIn(bundle)).to.have.members([1, 1]);
    expect(bundle.includes("hello")).to.equal(false);
    expect((await verify(bundle)).verdict).to.equal("self-attested");
  });

  it("shows no value to who may not see any, and still verifies", async () => {
    await world.act();
    const bundle = await exporter.bundle("acme", { ...request, disclose: false });
    expect(withheldIn(bundle)).to.have.members([4, 1]);
    expect(bundle.includes("hello")).to.equal(false);
    expect((await verify(bundle)).verdict).to.equal("self-attested");
  });

  it("still verifies after a subject's fields were erased", async () => {
    await world.act();
    const erasure = { of: { session }, fields: ["arguments.*"], reason: "asked for", by: "dpo" };
    await world.ledger.erase("acme", erasure, async () => undefined);
    const bundle = await exporter.bundle("acme", request);
    expect(bundle.includes("/srv/notes/today.md")).to.equal(false);
    expect(await verify(bundle)).to.include({ verdict: "self-attested", first_bad: null });
  });

  it("tells a bundle of a running action incomplete", async () => {
    const action = newAction();
    await world.ledger.actions.recordDecision(action, makeEvaluation(action));
    const report = await verify(await exporter.bundle("acme", request));
    expect([report.verdict, report.first_bad?.reason]).to.deep.equal(["incomplete", "open_outcome"]);
  });

  const refused: readonly (readonly [string, string, object, string])[] = [
    ["a session nobody has", "acme", { session: "session-v1-none" }, "not found: no such session"],
    ["a session of another tenant", "globex", {}, "not found: no such session"],
    [
      "a redaction of nothing",
      "acme",
      { redact: parseRedactions(["1.arguments.secret"]) },
      "invalid params: no field `1.arguments.secret` to redact",
    ],
  ];
  for (const [what, tenant, changed, text] of refused) {
    it(`refuses ${what}`, async () => {
      await world.act();
      await world.act({ tenant: "globex" });
      const error = await rejection(exporter.bundle(tenant, { ...request, ...changed }));
      expect(error).to.be.instanceOf(GatewayError).with.property("message", text);
    });
  }

  it("leaves no trace of an export that it refuses for want of a session", async () => {
    await world.act();
    const before = (await world.recordsOf()).length;
    await rejection(exporter.bundle("acme", { ...request, session: "session-v1-none" }));
    expect((await world.recordsOf()).length).to.equal(before);
  });
});

describe("parseRedactions(texts)", () => {
  it("takes a field's name as it is, dots included", () => {
    expect(parseRedactions(["12.output.a.b", "3.arguments."])).to.deep.equal([
      { seq: 12, member: "output", field: "a.b" },
      { seq: 3, member: "arguments", field: "" },
    ]);
  });

  for (const text of ["", "1.arguments", "x.arguments.a", "1.client.a", "-1.output.a"]) {
    it(`refuses \`${text}\``, () => {
      expect(() => parseRedactions([text])).to.throw(
        GatewayError,
        `expected \`<seq>.<arguments|output|facts>.<field>\`, got \`${text}\``,
      );
    });
  }

  it("refuses more than 1,000", () => {
    expect(() => parseRedactions(Array(1_001).fill("1.output.a"))).to.throw(
      GatewayError,
      "expected at most 1000 fields",
    );
  });
});
