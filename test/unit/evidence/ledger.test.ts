import { rm } from "node:fs/promises";
import { expect } from "chai";
import { sha256Hex } from "../../../core/action/canonical-json.ts";
import { withOutput } from "../../../core/action/envelope.ts";
import { GatewayError } from "../../../core/action/error.ts";
import { fingerprint } from "../../../core/action/fingerprint.ts";
import { fieldCommitment, fieldsDigest } from "../../../core/evidence/private/private-field.ts";
import { openKey, recordKey, sessionKey } from "../../../core/evidence/record/key-space.ts";
import type { ActionRecord } from "../../../core/evidence/record/record.ts";
import { LedgerWorld, makeEvaluation, newAction, rejection } from "../../support/ledger-world.ts";

const url = { scheme: "https", host: "a.example", zone: "name", port: 443, userinfo: false, odd: false } as const;
const places = { hosts: ["a.example"], paths: ["/srv/x"], more: false, effect: "network" } as const;

describe("Ledger", () => {
  let world: LedgerWorld;

  beforeEach(async () => {
    world = await LedgerWorld.create();
    await world.open();
  });

  afterEach(() => world.remove());

  describe("recordDecision(action, evaluation)", () => {
    it("writes genesis and decision, hash-chained, before it resolves", async () => {
      const action = newAction();
      const evaluation = makeEvaluation(action);
      const durable = await world.ledger.actions.recordDecision(action, evaluation);
      expect(durable).to.deep.equal({ actionId: action.id, evaluationId: evaluation.id, seq: 1 });
      const [genesis, decision] = await world.texts();
      const record = JSON.parse(decision ?? "") as ActionRecord;
      expect(JSON.parse(genesis ?? "")).to.include({
        kind: "genesis",
        seq: 0,
        prev_hash: "0".repeat(64),
        tenant: "acme",
      });
      expect(record).to.include({
        kind: "decision",
        effect: "dispatched",
        seq: 1,
        prev_hash: sha256Hex(genesis ?? ""),
      });
      expect(record.action).to.include({ id: action.id, tool: "write_file" });
      expect(record.evaluation).to.deep.include({ decision: "allow", rules: ["baseline.write"], risk: 20, errors: [] });
      expect(record.session).to.include({ id: action.session.id, index: 0, label: "work", prev_hash: "0".repeat(64) });
    });

    it("lets others have the thread between the steps of a large action, and of no other [S77]", async () => {
      const paused: string[] = [];
      await world.close();
      await world.open({ pause: async ({ principal }) => void paused.push(principal.id) });
      await world.act();
      expect(paused).to.deep.equal([]);
      const large = { page: "page of text. ".repeat(5_000) };
      const action = newAction({ arguments: large });
      await world.ledger.actions.recordDecision(action, makeEvaluation(action));
      expect(paused.length).to.be.at.least(5);
      expect(new Set(paused)).to.deep.equal(new Set([action.principal.id]));
      const afterDecision = paused.length;
      await world.ledger.actions.recordOutcome(action, { status: "success", output: large });
      expect(paused.length).to.be.at.least(afterDecision + 4);
      const [decision, outcome] = (await world.recordsOf()).slice(-2) as ActionRecord[];
      const kept = [decision, outcome].map((record) => world.ledger.disclosure(record as ActionRecord));
      const values = (await Promise.all(kept)).map(({ arguments: args, output }) => (args ?? output)?.[0]?.value);
      expect(values).to.deep.equal([large.page, large.page]);
    });

    it("commits to the facts of a large action in a step of their own", async () => {
      const paused: string[] = [];
      await world.close();
      await world.open({ pause: async ({ principal }) => void paused.push(principal.id) });
      const action = newAction({ arguments: { page: "a".repeat(70_000) }, facts: { ...places, url: [url] } });
      await world.ledger.actions.recordDecision(action, makeEvaluation(action, "block"));
      expect(paused.length).to.be.at.least(6);
      const record = (await world.recordsOf()).at(-1) as ActionRecord;
      const { facts: fields = [] } = await world.ledger.disclosure(record);
      expect(record.action.facts?.digest).to.equal(fieldsDigest(fields.map(({ commitment }) => commitment)));
      expect(fields.map(({ name }) => name).sort()).to.deep.equal(["hosts", "more", "paths", "url"]);
    });

    it("gives a large action its place after its pauses: a small one passes it, and the chain holds [S77]", async () => {
      const large = newAction({ arguments: { page: "page of text. ".repeat(5_000) } });
      const small = newAction();
      const { actions } = world.ledger;
      const [late, early] = await Promise.all([
        actions.recordDecision(large, makeEvaluation(large)),
        actions.recordDecision(small, makeEvaluation(small)),
      ]);
      expect(early.seq).to.be.below(late.seq);
      expect((await world.ledger.verify("acme")).ok).to.equal(true);
    });

    for (const decision of ["review", "block"] as const) {
      it(`records ${decision} as not dispatched and owes no outcome`, async () => {
        const action = newAction();
        await world.ledger.actions.recordDecision(action, makeEvaluation(action, decision));
        expect((await world.recordsOf())[1]).to.include({ effect: "not_dispatched" });
        const error = await rejection(world.ledger.actions.recordOutcome(action, { status: "success", output: null }));
        expect(error).to.be.instanceOf(TypeError);
        expect(error.message).to.equal("evidence: expected an open decision of this action, got none");
        expect(await world.texts()).to.have.length(2);
      });
    }

    it("commits to each argument by itself, and stores none that can be read", async () => {
      const action = newAction({ arguments: { password: "hunter2-canary", user: "ann" } });
      await world.ledger.actions.recordDecision(action, makeEvaluation(action));
      const record = (await world.recordsOf())[1] as ActionRecord;
      const { arguments: fields = [] } = await world.ledger.disclosure(record);
      const committed = fields.map(({ salt = "", name = "", value = null }) => fieldCommitment({ salt, name, value }));
      expect(fields.map(({ name, value }) => [name, value])).to.have.deep.members([
        ["password", "hunter2-canary"],
        ["user", "ann"],
      ]);
      expect(fields.map(({ commitment }) => commitment)).to.deep.equal(committed);
      expect(record.action.arguments_digest).to.equal(fieldsDigest(committed));
      expect(new Set([record.salt, ...fields.map(({ salt }) => salt)]).size).to.equal(3);
      expect(JSON.stringify(await world.store.iterator().all())).to.not.include("hunter2-canary");
    });

    it("commits to facts that a parser found, and adds no byte for those that a search of the arguments finds", async () => {
      for (const facts of [places, { ...places, url: [url] }]) {
        const action = newAction({ facts });
        await world.ledger.actions.recordDecision(action, makeEvaluation(action, "block"));
      }
      const [searched, parsed] = (await world.recordsOf()).slice(1) as ActionRecord[];
      expect(Object.keys(searched?.action ?? {})).to.not.include("facts");
      expect(Object.keys(await world.ledger.disclosure(searched as ActionRecord))).to.deep.equal(["arguments"]);
      const { facts: fields = [] } = await world.ledger.disclosure(parsed as ActionRecord);
      expect(Object.fromEntries(fields.map(({ name, value }) => [name, value]))).to.deep.equal({
        hosts: ["a.example"],
        paths: ["/srv/x"],
        more: false,
        url: [url],
      });
      expect(parsed?.action.facts).to.deep.equal({
        digest: fieldsDigest(fields.map(({ commitment }) => commitment)),
        effect: "network",
      });
    });

    it("shows which actions are the same to those who know one, and to nobody else what they are", async () => {
      const [one, same, other] = [newAction(), newAction(), newAction({ arguments: { path: "/x" } })];
      for (const action of [one, same, other])
        await world.ledger.actions.recordDecision(action, makeEvaluation(action));
      const elsewhere = newAction({ tenant: "globex" });
      await world.ledger.actions.recordDecision(elsewhere, makeEvaluation(elsewhere));
      const [first, second, third] = ((await world.recordsOf()).slice(1) as ActionRecord[]).map(fingerprintOf);
      const [foreign] = ((await world.recordsOf("globex")).slice(1) as ActionRecord[]).map(fingerprintOf);
      expect(first).to.match(/^sha256:[0-9a-f]{64}$/);
      expect(second).to.equal(first);
      expect(new Set([first, third, foreign, fingerprint(one), fingerprint(elsewhere)]).size).to.equal(5);
    });

    it("refuses the evaluation of another action", async () => {
      const error = await rejection(world.ledger.actions.recordDecision(newAction(), makeEvaluation(newAction())));
      expect(error).to.be.instanceOf(TypeError);
      expect(error.message).to.equal("evidence: the evaluation is of another action");
    });

    it("refuses a second dispatched decision while the first is open", async () => {
      const action = newAction();
      const both = await Promise.allSettled([
        world.ledger.actions.recordDecision(action, makeEvaluation(action)),
        world.ledger.actions.recordDecision(action, makeEvaluation(action)),
      ]);
      expect(both.map((each) => each.status)).to.deep.equal(["fulfilled", "rejected"]);
    });

    it("refuses a fraction in an evaluation and writes nothing", async () => {
      const action = newAction();
      const error = await rejection(
        world.ledger.actions.recordDecision(action, { ...makeEvaluation(action), risk: 12.5 }),
      );
      expect(error.message).to.equal("evidence: expected `risk` to be an integer, got 12.5");
      expect(await world.texts()).to.have.length(0);
    });
  });

  describe("recordOutcome(action, outcome, judged)", () => {
    it("links to the decision by action, fingerprint and session", async () => {
      const action = newAction();
      await world.ledger.actions.recordDecision(action, makeEvaluation(action));
      const answered = withOutput(action, { content: [] });
      await world.ledger.actions.recordOutcome(
        answered,
        { status: "error", output: { content: [] } },
        makeEvaluation(answered, "block"),
      );
      const texts = await world.texts();
      const [, decision, outcome] = (await world.recordsOf()) as ActionRecord[];
      expect(outcome).to.include({ kind: "outcome", effect: "error", prev_hash: sha256Hex(texts[1] ?? "") });
      expect(outcome?.session).to.include({ index: 1, prev_hash: sha256Hex(texts[1] ?? "") });
      expect(outcome?.evaluation?.decision).to.equal("block");
      expect(outcome?.action).to.include({
        id: action.id,
        phase: "output",
        fingerprint: decision?.action.fingerprint,
        arguments_digest: decision?.action.arguments_digest,
      });
      expect(outcome?.action.output_digest).to.match(/^sha256:[0-9a-f]{64}$/);
    });

    it("records why an outcome is unknown, in at most 1,024 characters", async () => {
      const action = newAction();
      await world.ledger.actions.recordDecision(action, makeEvaluation(action));
      await world.ledger.actions.recordOutcome(action, { status: "unknown", reason: "x".repeat(5_000) });
      const outcome = (await world.recordsOf())[2] as ActionRecord;
      expect(outcome.effect).to.equal("unknown");
      expect(outcome.reason).to.have.length(1_024);
      expect(outcome.action).to.not.have.property("output_digest");
    });

    it("takes one outcome a decision", async () => {
      const action = await world.act();
      const error = await rejection(world.ledger.actions.recordOutcome(action, { status: "success", output: null }));
      expect(error).to.be.instanceOf(TypeError);
      expect(await world.texts()).to.have.length(3);
    });
  });

  describe("recordEvent(tenant, kind, detail)", () => {
    it("appends to the tenant's chain", async () => {
      await world.ledger.recordEvent("acme", "admin", { act: "stop", "10": 1, "9": 2 });
      expect((await world.recordsOf())[1]).to.deep.include({ kind: "admin", detail: { act: "stop", "10": 1, "9": 2 } });
      expect((await world.ledger.verify("acme")).ok).to.equal(true);
    });

    it("refuses fractions, at any depth", async () => {
      const error = await rejection(world.ledger.recordEvent("acme", "admin", { list: [{ ratio: 0.5 }] }));
      expect(error).to.be.instanceOf(TypeError);
    });
  });

  describe("open(options)", () => {
    it("goes on where the chain ended, in a later epoch", async () => {
      await world.act();
      await world.close();
      await world.open();
      await world.act();
      const records = await world.recordsOf();
      expect(records.map((record) => record.seq)).to.deep.equal([0, 1, 2, 3, 4]);
      expect(records.map((record) => record.writer.epoch)).to.deep.equal([1, 1, 1, 2, 2]);
      expect(await world.ledger.verify("acme")).to.deep.include({ ok: true, records: 5 });
    });

    it("records each dispatched decision without outcome as unknown, once", async () => {
      const lost = newAction({ facts: { ...places, url: [url] } });
      await world.ledger.actions.recordDecision(lost, makeEvaluation(lost));
      await world.close();
      for (let start = 0; start < 3; start++) {
        await world.open();
        await world.close();
      }
      await world.open();
      const outcomes = (await world.recordsOf()).filter((record) => record.kind === "outcome") as ActionRecord[];
      expect(outcomes).to.have.length(1);
      expect(outcomes[0]).to.deep.include({
        effect: "unknown",
        reason: "process ended before the outcome was recorded",
      });
      expect(outcomes[0]?.action.id).to.equal(lost.id);
      const [, decided] = (await world.recordsOf()) as ActionRecord[];
      expect(outcomes[0]?.action).to.deep.equal(decided?.action);
      expect(outcomes[0]?.action.facts?.effect).to.equal("network");
      expect(await world.store.get(openKey("acme", lost.id))).to.equal(undefined);
      expect((await world.ledger.verify("acme")).ok).to.equal(true);
    });

    it("refuses a tenant whose chain is behind its mark, and says so; others go on", async () => {
      await world.act();
      await world.act({ tenant: "other" });
      await world.ledger.close();
      await world.store.del(recordKey("acme", 2));
      await world.open();
      const text = "chain of tenant `acme` is behind its high-water mark: expected record 2 or later, got 1";
      const error = await rejection(world.act());
      expect(error).to.be.instanceOf(GatewayError).and.include({ code: "EVIDENCE_UNAVAILABLE", detail: text });
      expect(await rejection(world.ledger.sessions("acme", { limit: 10 }))).to.include({ detail: text });
      const [genesis] = await world.recordsOf();
      expect(world.ledger.status()).to.deep.include({
        tenant: "acme",
        chain: genesis?.chain,
        seq: 2,
        head: world.ledger.status()[0]?.head,
        state: "refused",
        reason: text,
      });
      expect(world.warnings).to.deep.include({ message: "evidence_refused", fields: { tenant: "acme", reason: text } });
      await world.act({ tenant: "other" });
    });

    it("refuses a tenant whose newest record was replaced", async () => {
      await world.act();
      const [, , last] = await world.texts();
      await world.ledger.close();
      await world.store.put(recordKey("acme", 2), (last ?? "").replace('"success"', '"error"'));
      await world.open();
      expect(await rejection(world.act())).to.include({
        detail: "chain of tenant `acme` differs from its high-water mark at record 2",
      });
    });

    it("refuses a tenant whose mark was removed", async () => {
      await world.act();
      await world.ledger.close();
      await rm(world.highWaterPath);
      await world.open();
      expect(await rejection(world.act())).to.include({
        detail: "chain of tenant `acme` has no high-water mark; its last record is 2",
      });
    });

    it("refuses a tenant where another tenant's record stands past the mark", async () => {
      await world.act();
      await world.act({ tenant: "other" });
      const foreign = (await world.texts("other"))[2] ?? "";
      await world.ledger.close();
      await world.store.put(recordKey("acme", 3), foreign);
      await world.open();
      expect(await rejection(world.act())).to.include({
        detail: "chain of tenant `acme` is broken at record 3: expected tenant `acme`, got another",
      });
    });

    it("refuses an action whose session does not match its chain", async () => {
      const action = await world.act();
      await world.ledger.close();
      const key = sessionKey("acme", action.session.id);
      const summary = JSON.parse((await world.store.get(key)) ?? "") as { records: number };
      await world.store.put(key, JSON.stringify({ ...summary, records: 1 }));
      await world.open();
      expect(await rejection(world.act())).to.include({
        code: "EVIDENCE_UNAVAILABLE",
        detail: `session \`${action.session.id}\` does not match its chain; verify the chain`,
      });
    });

    it("refuses a tenant whose list of open decisions leads elsewhere; others go on", async () => {
      const [lost, other] = [newAction(), newAction({ tenant: "other" })];
      for (const action of [lost, other]) await world.ledger.actions.recordDecision(action, makeEvaluation(action));
      await world.ledger.close();
      await world.store.put(openKey("acme", lost.id), "0");
      await world.open();
      expect(await rejection(world.act())).to.include({
        detail: "chain of tenant `acme` has no open decision at record 0",
      });
      expect((await world.recordsOf("other")).at(-1)).to.include({ kind: "outcome", effect: "unknown" });
    });

    it("refuses a tenant whose open decision has no session to be settled in", async () => {
      const lost = newAction();
      await world.ledger.actions.recordDecision(lost, makeEvaluation(lost));
      await world.ledger.close();
      await world.store.put(sessionKey("acme", lost.session.id), "{}");
      await world.open();
      expect(await rejection(world.act())).to.include({
        detail: `session \`${lost.session.id}\` does not match its chain; verify the chain`,
      });
    });

    it("is exact about tenants whose names look alike", async () => {
      const names = ["a", "a/record", "a%2Frecord", "A", "ä", "a\u0308", "epoch", "format", "a0", "a-b", " "];
      for (const tenant of names) await world.act({ tenant });
      await world.close();
      await world.open();
      expect(world.ledger.status().map(({ tenant, seq, state }) => ({ tenant, seq, state }))).to.have.deep.members(
        names.map((tenant) => ({ tenant, seq: 2, state: "ready" })),
      );
      for (const tenant of names) expect(await world.ledger.verify(tenant)).to.deep.include({ ok: true, records: 3 });
    });

    for (const tenant of ["", "x".repeat(257), "\ud800"]) {
      it(`refuses the tenant ${JSON.stringify(tenant).slice(0, 12)} as a fault of ours`, async () => {
        const error = await rejection(world.ledger.recordEvent(tenant, "admin", {}));
        expect(error).to.be.instanceOf(TypeError);
        expect(error.message).to.equal("store: expected a tenant of 1 to 256 well-formed characters");
        expect(world.ledger.status()).to.deep.equal([]);
      });
    }
  });

  describe("close()", () => {
    it("lets what was taken reach the disk, then takes nothing", async () => {
      const actions = Array.from({ length: 50 }, () => newAction());
      const recorded = actions.map((action) => world.ledger.actions.recordDecision(action, makeEvaluation(action)));
      await new Promise((resolve) => setTimeout(resolve, 5));
      await world.ledger.close();
      await Promise.all(recorded);
      expect(await rejection(world.ledger.recordEvent("acme", "admin", {}))).to.include({
        code: "EVIDENCE_UNAVAILABLE",
        detail: "the ledger is closed",
      });
    });
  });

  describe("when more wait for the disk than the queue holds", () => {
    it("refuses the next with EVIDENCE_UNAVAILABLE, and takes more later", async () => {
      await world.close();
      await world.open({ queueLimit: 10 });
      await world.ledger.recordEvent("acme", "admin", {});
      const all = await Promise.allSettled(
        Array.from({ length: 11 }, () => world.ledger.recordEvent("acme", "admin", {})),
      );
      expect(all.filter((each) => each.status === "fulfilled")).to.have.length(10);
      const refused = all.find((each) => each.status === "rejected");
      expect(refused?.reason).to.include({
        code: "EVIDENCE_UNAVAILABLE",
        detail: "more than 10 records wait for the disk",
      });
      await world.ledger.recordEvent("acme", "admin", {});
    });

    it("bounds the actions that wait for their outcome, and never their outcomes", async () => {
      await world.close();
      await world.open({ queueLimit: 2 });
      const [first, second, third] = [newAction(), newAction(), newAction()];
      await world.ledger.actions.recordDecision(first, makeEvaluation(first));
      await world.ledger.actions.recordDecision(second, makeEvaluation(second));
      const error = await rejection(world.ledger.actions.recordDecision(third, makeEvaluation(third)));
      expect(error).to.include({ detail: "more than 2 actions wait for their outcome" });
      await Promise.all([
        world.ledger.recordEvent("acme", "admin", {}),
        world.ledger.recordEvent("acme", "admin", {}),
        world.ledger.actions.recordOutcome(first, { status: "success", output: null }),
        world.ledger.actions.recordOutcome(second, { status: "success", output: null }),
      ]);
    });
  });

  it("names the configuration in force in each record", async () => {
    await world.ledger.recordEvent("acme", "admin", {});
    world.ledger.updateConfigDigest("sha256:new");
    await world.ledger.recordEvent("acme", "admin", {});
    expect((await world.recordsOf()).map((record) => record.config_digest)).to.deep.equal([
      `sha256:${"0".repeat(64)}`,
      `sha256:${"0".repeat(64)}`,
      "sha256:new",
    ]);
  });
});

function fingerprintOf(record: ActionRecord): string {
  return record.action.fingerprint;
}
