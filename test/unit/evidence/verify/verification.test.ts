import { expect } from "chai";
import { canonicalJson, sha256Hex } from "../../../../core/action/canonical-json.ts";
import type { Json } from "../../../../core/action/json.ts";
import { openKey, recordKey, sessionKey } from "../../../../core/evidence/record/key-space.ts";
import type { Reason } from "../../../../core/evidence/record/reason.ts";
import type { ActionRecord, EvidenceRecord } from "../../../../core/evidence/record/record.ts";
import { LedgerWorld, makeEvaluation, newAction, rejection } from "../../../support/ledger-world.ts";

/** What an attacker with the whole disk, the high-water file included, makes of a chain of eight records. */
type Tamper = (chain: Forgery) => void;

/** A chain as texts; `rewrite` changes a record, `relink` repairs every link after it. */
class Forgery {
  texts: string[];

  constructor(texts: readonly string[]) {
    this.texts = [...texts];
  }

  rewrite(seq: number, change: (record: Record<string, Json>) => void): void {
    const record = JSON.parse(this.texts[seq] as string) as Record<string, Json>;
    change(record);
    this.texts[seq] = canonicalJson(record);
  }

  /** Repairs `seq`, the links, and each session's index and links. */
  relink(): void {
    const ends = new Map<string, { index: number; hash: string }>();
    let prev = "0".repeat(64);
    this.texts.forEach((_, seq) => {
      this.rewrite(seq, (record) => {
        Object.assign(record, { seq, prev_hash: prev });
        const session = record.session as { id: string } | undefined;
        if (session === undefined) return;
        const end = ends.get(session.id) ?? { index: -1, hash: "0".repeat(64) };
        record.session = { ...session, index: end.index + 1, prev_hash: end.hash } as unknown as Json;
      });
      prev = sha256Hex(this.texts[seq] as string);
      const session = (JSON.parse(this.texts[seq] as string) as Partial<ActionRecord>).session;
      if (session !== undefined) ends.set(session.id, { index: session.index, hash: prev });
    });
  }
}

// Records: 0 genesis, 1 decision, 2 outcome, 3 decision (blocked), 4 admin event, 5 decision, 6 outcome, 7 decision (open).
const table: readonly (readonly [string, number, Reason, string, Tamper])[] = [
  [
    "a flipped letter",
    5,
    "bad_prev_hash",
    "`prev_hash` is not the digest of the record before",
    (c) => replace(c, 4, "stop", "stap"),
  ],
  [
    "a flipped letter in the last record",
    7,
    "forked",
    "the record differs from the high-water mark",
    (c) => replace(c, 7, "write_file", "write_fyle"),
  ],
  ["white space", 4, "not_canonical", "expected canonical JSON (RFC 8785)", (c) => replace(c, 4, ":", ": ")],
  ["nonsense", 2, "malformed", "expected JSON, got other bytes", (c) => c.texts.splice(2, 1, "nonsense")],
  [
    "two records swapped",
    3,
    "seq_gap",
    "expected `seq` 3, got 4",
    (c) => c.texts.splice(3, 2, ...c.texts.slice(3, 5).reverse()),
  ],
  ["a record twice", 5, "seq_gap", "expected `seq` 5, got 4", (c) => c.texts.splice(4, 0, c.texts[4] as string)],
  ["a record removed", 4, "seq_gap", "expected `seq` 4, got 5", (c) => c.texts.splice(4, 1)],
  [
    "the tail cut",
    6,
    "behind_witness",
    "the chain ends before its high-water mark, record 7",
    (c) => c.texts.splice(6),
  ],
  [
    "everything removed",
    0,
    "behind_witness",
    "the chain ends before its high-water mark, record 7",
    (c) => c.texts.splice(0),
  ],
  [
    "the genesis removed, all relinked",
    0,
    "bad_schema",
    "expected a genesis record first, and only first",
    relinked((c) => c.texts.splice(0, 1)),
  ],
  [
    "another tenant's record, relinked",
    4,
    "foreign_tenant",
    "expected tenant `acme`, got another",
    relinked((c) => set(c, 4, "tenant", "other")),
  ],
  [
    "a record without tenant",
    4,
    "bad_schema",
    "expected `tenant` to be a string",
    relinked((c) => c.rewrite(4, (r) => delete r.tenant)),
  ],
  [
    "another chain's record, relinked",
    4,
    "foreign_chain",
    "expected the same chain, got another",
    relinked((c) => set(c, 4, "chain", "other")),
  ],
  [
    "another genesis in the middle",
    4,
    "bad_schema",
    "expected a genesis record first, and only first",
    relinked((c) => set(c, 4, "kind", "genesis")),
  ],
  [
    "an unknown schema",
    4,
    "bad_schema",
    "expected schema `evidence-record-v1`",
    relinked((c) => set(c, 4, "schema", "x")),
  ],
  [
    "an earlier writer epoch",
    4,
    "stale_epoch",
    "expected writer epoch 1 or later, got an earlier one",
    relinked((c) => set(c, 4, "writer", { epoch: 0, id: "x" })),
  ],
  [
    "an outcome of a blocked decision",
    4,
    "outcome_without_decision",
    "expected an outcome to follow a dispatched decision of its action",
    relinked((c) => c.texts.splice(4, 0, outcomeOf(c, 3))),
  ],
  [
    "an outcome twice",
    3,
    "outcome_without_decision",
    "expected an outcome to follow a dispatched decision of its action",
    relinked((c) => c.texts.splice(3, 0, c.texts[2] as string)),
  ],
  [
    "a dispatched decision twice",
    2,
    "second_decision",
    "expected one dispatched decision an action, got a second",
    relinked((c) => c.texts.splice(2, 0, c.texts[1] as string)),
  ],
  [
    "a blocked action dispatched",
    3,
    "dispatch_without_allow",
    "expected only an action that was allowed or approved to be dispatched",
    relinked((c) => set(c, 3, "effect", "dispatched")),
  ],
  [
    "a held action dispatched without an approval",
    3,
    "dispatch_without_allow",
    "expected only an action that was allowed or approved to be dispatched",
    relinked((c) => approve(c, 3, undefined)),
  ],
  [
    "an approval nobody gave",
    3,
    "approval_mismatch",
    "the approval was not given for this action, or no longer stood",
    relinked((c) => approve(c, 3, "apr_1")),
  ],
  [
    "an approval used twice",
    4,
    "approval_consumed_twice",
    "expected an approval to be used once, got a second use",
    relinked((c) => {
      for (const seq of [1, 3]) approve(c, seq, "apr_1");
      c.texts.splice(1, 0, approvalEventOf(c, 4, 1));
    }),
  ],
  ["a gap in a session", 2, "session_gap", "expected session index 1, got 2", (c) => session(c, 2, { index: 2 })],
  [
    "a session's link changed",
    2,
    "bad_session_link",
    "the session's `prev_hash` is not the digest of its record before",
    (c) => session(c, 2, { prev_hash: "0".repeat(64) }),
  ],
  [
    "a second beginning of a session",
    1,
    "bad_session_link",
    "the session's index does not lead to this record",
    (c) => session(c, 5, { index: 0, prev_hash: "0".repeat(64) }),
  ],
  [
    "another history, relinked whole",
    7,
    "forked",
    "the record differs from the high-water mark",
    relinked((c) => set(c, 4, "detail", { act: "start" })),
  ],
];

describe("Ledger.verify(tenant) [S64, R2.3-3]", () => {
  let world: LedgerWorld;

  beforeEach(async () => {
    world = await LedgerWorld.create();
    await world.open();
    await world.act();
    const blocked = newAction();
    await world.ledger.actions.recordDecision(blocked, makeEvaluation(blocked, "block"));
    await world.ledger.recordEvent("acme", "admin", { act: "stop" });
    await world.act();
    const open = newAction();
    await world.ledger.actions.recordDecision(open, makeEvaluation(open));
  });

  afterEach(() => world.remove());

  it("passes the untouched chain, and names its head", async () => {
    const texts = await world.texts();
    expect(await world.ledger.verify("acme")).to.deep.equal({
      ok: true,
      tenant: "acme",
      records: 8,
      head: { seq: 7, hash: sha256Hex(texts[7] as string) },
    });
  });

  it("passes a tenant that has no evidence", async () => {
    expect(await world.ledger.verify("nobody")).to.deep.equal({ ok: true, tenant: "nobody", records: 0, head: null });
  });

  for (const [what, seq, reason, detail, tamper] of table) {
    it(`finds ${what} and names record ${seq}`, async () => {
      const forgery = new Forgery(await world.texts());
      tamper(forgery);
      await install(forgery.texts);
      const report = await world.ledger.verify("acme");
      expect(report).to.deep.equal({
        ok: false,
        tenant: "acme",
        records: seq,
        head: null,
        firstBad: { seq, reason, detail },
      });
    });
  }

  const { session, principal } = newAction();
  const stops: readonly (readonly [what: string, scope: string, named: Record<string, string>, isCovered: boolean])[] =
    [
      ["its session", "session", { session: session.id }, true],
      ["its principal", "principal", { principal: principal.id }, true],
      ["its tenant", "tenant", {}, true],
      ["the whole gateway", "gateway", {}, true],
      ["another session", "session", { session: `${session.id}0` }, false],
      ["another principal", "principal", { principal: `${principal.id}0` }, false],
    ];
  for (const [what, scope, named, isCovered] of stops) {
    it(`${isCovered ? "finds" : "passes"} an action that was dispatched while ${what} was stopped`, async () => {
      await world.ledger.recordEvent("acme", "session", { event: "killed", scope, ...named });
      const blocked = newAction();
      await world.ledger.actions.recordDecision(blocked, makeEvaluation(blocked, "block"));
      expect(await world.ledger.verify("acme")).to.include({ ok: true, records: 10 });
      await world.act();
      const detail = "expected nothing that is stopped to be dispatched";
      const firstBad = isCovered ? { seq: 10, reason: "allow_after_kill", detail } : undefined;
      expect((await world.ledger.verify("acme")).firstBad).to.deep.equal(firstBad);
    });
  }

  it("passes an action that was dispatched once all that was stopped was released", async () => {
    for (const event of ["killed", "released"]) {
      for (const [, scope, named] of stops) {
        await world.ledger.recordEvent("acme", "session", { event, scope, ...named });
      }
    }
    await world.act();
    expect(await world.ledger.verify("acme")).to.include({ ok: true });
  });

  it("finds a record moved to another key", async () => {
    await world.store.batch([
      { type: "put", key: recordKey("acme", 9), value: (await world.texts())[7] as string },
      { type: "del", key: recordKey("acme", 7) },
    ]);
    expect((await world.ledger.verify("acme")).firstBad).to.deep.equal({
      seq: 7,
      reason: "seq_gap",
      detail: "expected record 7, got a gap",
    });
  });

  it("finds an open decision that the next start would not settle", async () => {
    const open = (await world.recordsOf())[7] as ActionRecord;
    await world.store.del(openKey("acme", open.action.id));
    expect((await world.ledger.verify("acme")).firstBad).to.deep.equal({
      seq: 7,
      reason: "open_outcome",
      detail: "the decision has no outcome and is not listed as open",
    });
  });

  it("finds a session whose index leads elsewhere", async () => {
    const first = (await world.recordsOf())[1] as ActionRecord;
    await world.store.put(sessionKey("acme", first.session.id, 0), "5");
    expect((await world.ledger.verify("acme")).firstBad).to.deep.equal({
      seq: 1,
      reason: "bad_session_link",
      detail: "the session's index does not lead to this record",
    });
  });

  it("refuses the tenant from then on, and only that one", async () => {
    await world.store.del(recordKey("acme", 3));
    await world.ledger.verify("acme");
    expect(await rejection(world.act())).to.include({
      code: "EVIDENCE_UNAVAILABLE",
      detail: "chain of tenant `acme` is broken at record 3: expected record 3, got a gap",
    });
    await world.act({ tenant: "other" });
  });

  it("goes on while actions are recorded, and tells its progress", async () => {
    const heard: number[] = [];
    const [report] = await Promise.all([
      world.ledger.verify("acme", { onProgress: (checked) => heard.push(checked) }),
      ...Array.from({ length: 50 }, () => world.act()),
    ]);
    expect(report).to.include({ ok: true });
    expect(heard.at(-1)).to.equal(report.records);
    expect(await world.ledger.verify("acme")).to.include({ ok: true, records: 108 });
  });

  it("says EVIDENCE_UNAVAILABLE, not broken, when the store is closed meanwhile", async () => {
    await world.store.close();
    expect(await rejection(world.ledger.verify("acme"))).to.include({ code: "EVIDENCE_UNAVAILABLE" });
    expect(world.ledger.status()).to.have.nested.property("[0].state", "ready");
  });

  /** The forger is thorough: the session index follows the forged records. */
  async function install(texts: readonly string[]): Promise<void> {
    await world.store.clear({ gte: recordKey("acme", 0), lt: recordKey("acme", 99) });
    for (const [seq, text] of texts.entries()) {
      await world.store.put(recordKey("acme", seq), text);
      const session = sessionOf(text);
      if (session !== undefined) await world.store.put(sessionKey("acme", session.id, session.index), String(seq));
    }
  }
});

function sessionOf(text: string): { id: string; index: number } | undefined {
  return text.startsWith("{") ? (JSON.parse(text) as Partial<ActionRecord>).session : undefined;
}

function replace(chain: Forgery, seq: number, from: string, to: string): void {
  chain.texts[seq] = (chain.texts[seq] as string).replace(from, to);
}

function set(chain: Forgery, seq: number, member: keyof EvidenceRecord | "effect" | "detail", value: Json): void {
  chain.rewrite(seq, (record) => {
    record[member] = value;
  });
}

function session(chain: Forgery, seq: number, change: { index?: number; prev_hash?: string }): void {
  chain.rewrite(seq, (record) => {
    record.session = { ...(record.session as object), ...change } as Json;
  });
}

function relinked(tamper: Tamper): Tamper {
  return (chain) => {
    tamper(chain);
    chain.relink();
  };
}

/** Makes a decision one that was held, and dispatched on the approval `id`. */
function approve(chain: Forgery, seq: number, id: string | undefined): void {
  chain.rewrite(seq, (record) => {
    const { fingerprint } = record.action as { fingerprint: string };
    record.effect = "dispatched";
    record.evaluation = { ...(record.evaluation as object), decision: "review" } as Json;
    if (id !== undefined) record.approval = { fingerprint, id, reviewer: "principal-v1-2", state: "consumed" };
  });
}

/** The event, in the frame of another record, that gives `apr_1` for the action of the decision `seq`. */
function approvalEventOf(chain: Forgery, frame: number, seq: number): string {
  const decision = JSON.parse(chain.texts[seq] as string) as ActionRecord;
  const record = JSON.parse(chain.texts[frame] as string) as Record<string, Json>;
  const { action, session } = decision;
  const detail = { event: "approved", fingerprint: action.fingerprint, id: "apr_1", session: session.id };
  return canonicalJson({ ...record, kind: "approval", detail });
}

function outcomeOf(chain: Forgery, seq: number): string {
  const record = JSON.parse(chain.texts[seq] as string) as Record<string, Json>;
  return canonicalJson({ ...record, kind: "outcome", effect: "success" });
}
