import { expect } from "chai";
import { type EntryWrite, ReplicaDatabase } from "../../../core/replica/database.ts";
import { Agent } from "../../support/agent.ts";
import { PostgresServer } from "../../support/postgresql.ts";
import { eventually, ReplicaSite, type Sent, SteadyCalls, sayOutage } from "../../support/replica-site.ts";
import { roundsOf } from "../../support/rounds.ts";
import { siteKey } from "../../support/site.ts";

const leaseMs = roundsOf(2_000, 10_000);

describe("an owner whose process stood still past its lease", () => {
  let site: ReplicaSite;

  before(async () => {
    site = await ReplicaSite.start(leaseMs);
  });

  after(() => site.stop());

  for (let round = 1; round <= roundsOf(1, 30); round++) {
    it(`dispatches and writes nothing once another took over, and forwards (${round}) [S86]`, async () => {
      const { group } = site;
      const old = group.owner();
      const { process: stopped } = group.member(old);
      const next = (old + 1) % 3;
      const before = new SteadyCalls(site, site.url(old), `before-${round}`, 6);
      await before.answered(12);
      const kept = new Agent(site.url(next), siteKey, `kept-${round}`);
      expect((await kept.call("echo")).status).to.equal(200);

      stopped.kill("SIGSTOP");
      const stoppedMs = performance.now();
      const asked: Promise<Sent>[] = [];
      try {
        // Through the next owner, on a connection that it forwards to the one that stands still.
        const unanswered = kept.call("echo").catch(({ code }: { readonly code: string }) => code);
        // The system accepts these for it: it reads them when it goes on, with the lease of before.
        for (let turn = 0; turn < 8; turn++) asked.push(site.call(site.url(old), `meanwhile-${round}-${turn}`));
        const served = await site.serves(site.url(next), `served-${round}`);
        expect(group.owner(), "the next owner").to.not.equal(old);
        sayOutage("stood still", stoppedMs, served.at(-1), leaseMs);
        await site.expectSettled(served, next);
        expect(await unanswered, "the end of what was forwarded").to.be.oneOf(["UND_ERR_SOCKET", "ECONNRESET"]);
        await kept.hangUp();
      } finally {
        stopped.kill("SIGCONT");
      }
      await eventually("the old owner to say so", () => saysLost(group.member(old).stderr()));
      const meanwhile = await Promise.all(asked);
      const sent = [...(await before.end()), ...meanwhile, ...(await site.serves(site.url(old), `forwarded-${round}`))];
      expect(stopped.exitCode).to.equal(null);
      expect(sent.at(-1)?.end).to.equal("answered");

      const records = await site.expectSettled(sent, old);
      for (const { mark, end } of meanwhile)
        expect(end, mark).to.be.oneOf(["answered", "none", "EVIDENCE_UNAVAILABLE"]);
      // One writer, then the other: the old one wrote nothing after the first record of the next.
      const writers = [...records].sort((one, other) => one.seq - other.seq).map(({ writer }) => writer.epoch);
      expect(writers).to.deep.equal([...writers].sort((one, other) => one - other));
      expect(new Set(writers).size).to.equal(2);
      await site.expectOneChain();
      await site.expectVerified(sent.at(-1)?.mark ?? "", old);
      // Its log begins anew: the next round waits for what it says.
      await group.member(old).stop();
      await group.start(old);
    });
  }
});

function saysLost(log: string): boolean {
  return log.includes('"replica_lease_lost"');
}

describe("what is written under an epoch that has passed", () => {
  let postgres: PostgresServer;
  let first: ReplicaDatabase;
  let second: ReplicaDatabase;
  let url: string;

  before(async () => {
    postgres = await PostgresServer.start();
    url = await postgres.createDatabase("fenced");
    first = await ReplicaDatabase.open({ url, timeoutMs: 10_000 });
    second = await ReplicaDatabase.open({ url, timeoutMs: 10_000 });
  });

  after(async () => {
    await first?.close();
    await second?.close();
    await postgres.stop();
  });

  const entry = (value: string): EntryWrite => ({ key: Buffer.from("key"), value: Buffer.from(value) });
  const mark = (seq: number) => ({ tenant: "acme", chain: "chain", seq, head: "head" });

  async function content(): Promise<string> {
    const tables = ["gateway_entry", "gateway_mark", "gateway_key"].map(
      (name) => `(SELECT json_agg(t) FROM ${name} t)`,
    );
    const lease = "(SELECT json_build_array(epoch, address, until, batch, horizon) FROM gateway_lease)";
    const { code, stdout, stderr } = await postgres.psql([
      ...["--dbname=fenced", "--tuples-only", "--no-align"],
      ...["--command", `SELECT json_build_array(${[...tables, lease].join(", ")})`],
    ]);
    expect(code, stderr).to.equal(0);
    return stdout;
  }

  it("changes nothing in the database, whatever it is [S86]", async () => {
    const old = await first.claim("127.0.0.1:1", 60_000);
    if (old === undefined) throw new Error("expected the lease");
    expect(await second.claim("127.0.0.1:2", 60_000), "while another holds it").to.equal(undefined);
    expect(await first.commit(old, 0, [entry("one")])).to.equal(1);
    await first.raiseMarks(old, [mark(1)]);
    await first.addKey(old, "one.pem", "sealed");
    await first.release(old);
    const now = await second.claim("127.0.0.1:2", 60_000);
    if (now === undefined) throw new Error("expected the lease");
    expect(now.epoch).to.equal(old.epoch + 1);
    await second.commit(now, 1, [entry("two"), { key: Buffer.from("gone"), value: null }]);

    const before = await content();
    const writes: readonly (() => Promise<unknown>)[] = [
      () => first.commit(old, 2, [entry("three")]),
      () => first.commit(old, 2, [{ key: Buffer.from("key"), value: null }]),
      () => first.raiseMarks(old, [mark(2)]),
      () => first.addKey(old, "two.pem", "sealed"),
      () => first.readChanges(0, old, async () => undefined),
    ];
    for (const [index, write] of writes.entries()) {
      const error = await write().then(
        () => null,
        (cause: unknown) => cause,
      );
      expect(error, `write ${index}`).to.include({ code: "EVIDENCE_UNAVAILABLE" });
    }
    expect(await first.renew(old, 60_000)).to.equal(false);
    await first.release(old);
    await first.forgetDeleted(old, 2);
    expect(await content()).to.equal(before);

    // The same writes under the epoch of now, so that it is the epoch that decided.
    expect(await second.commit(now, 2, [entry("three")])).to.equal(3);
    // One that arrives when its sender has given it up, and gone on.
    const late = await second.commit(now, 2, [entry("late")]).catch(({ code }: { readonly code: string }) => code);
    expect(late).to.equal("EVIDENCE_UNAVAILABLE");
    await second.raiseMarks(now, [mark(2)]);
    await second.addKey(now, "two.pem", "sealed");
    await second.forgetDeleted(now, 2);
    expect(await second.renew(now, 60_000)).to.equal(true);
    const after = JSON.parse(await content()) as readonly (readonly object[])[];
    expect(after[0]).to.have.length(1);
    expect(after[1]).to.deep.equal([mark(2)]);
    expect(after[2]).to.have.length(2);
    await second.release(now);
  });

  it("is the same while two claim and write at once: each batch is of whoever owned it [S86]", async () => {
    const { batch: begun } = await first.readLease();
    const committed: { readonly epoch: number; readonly batch: number }[] = [];
    const contend = async (database: ReplicaDatabase, name: string): Promise<void> => {
      for (let claims = 0; claims < roundsOf(5, 100); ) {
        const claim = await database.claim(`127.0.0.1:${name}`, 30);
        if (claim === undefined) continue;
        claims++;
        const { epoch } = claim;
        let { batch: last } = await database.readLease();
        for (let write = 0; write < 20; write++) {
          const batch = await database.commit(claim, last, [entry(`${epoch}`)]).catch((error: { code?: string }) => {
            expect(error.code).to.equal("EVIDENCE_UNAVAILABLE");
          });
          if (batch === undefined) break;
          last = batch;
          committed.push({ epoch, batch });
        }
      }
    };
    await Promise.all([contend(first, "1"), contend(second, "2")]);
    committed.sort((one, other) => one.batch - other.batch);
    expect(committed.map(({ batch }) => batch)).to.deep.equal(committed.map((_, index) => begun + 1 + index));
    const epochs = committed.map(({ epoch }) => epoch);
    expect(epochs).to.deep.equal([...epochs].sort((one, other) => one - other));
    expect(new Set(epochs).size).to.be.above(1);
  });
});
