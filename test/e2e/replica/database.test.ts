import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { ReplicaDatabase } from "../../../core/replica/database.ts";
import { rejection } from "../../support/ledger-world.ts";
import { PostgresServer } from "../../support/postgresql.ts";
import { PostgresProxy } from "../../support/postgresql-proxy.ts";
import { eventually, ReplicaSite, type Sent, sayOutage } from "../../support/replica-site.ts";
import { roundsOf } from "../../support/rounds.ts";

const leaseMs = roundsOf(2_000, 10_000);

describe("the database of two replicas", () => {
  let site: ReplicaSite;

  before(async () => {
    site = await ReplicaSite.start(leaseMs, 2);
  });

  after(() => site.stop());

  /** Calls at the owner while the database cannot be written, until some were refused. None of them is dispatched. */
  async function refusedMeanwhile(prefix: string): Promise<readonly Sent[]> {
    const { group } = site;
    const sent: Sent[] = [];
    await eventually("calls that are refused", async () => {
      sent.push(
        ...(await Promise.all(
          [1, 2, 3].map((turn) => site.call(site.url(group.owner()), `${prefix}-${sent.length}-${turn}`)),
        )),
      );
      return sent.filter(({ end }) => end === "EVIDENCE_UNAVAILABLE").length >= 6;
    });
    const reached = await site.reached();
    for (const { mark, end } of sent) {
      expect(end, mark).to.be.oneOf(["EVIDENCE_UNAVAILABLE", "none"]);
      expect(reached, mark).to.not.include(mark);
    }
    return sent;
  }

  /** Both serve, and what was sent before is settled. Returns what was answered. */
  async function expectRecovered(sent: readonly Sent[]): Promise<readonly Sent[]> {
    const again = await site.serves(site.url(0), `again-${performance.now()}`);
    const other = await site.serves(site.url(1), `other-${performance.now()}`);
    await site.expectSettled([...sent, ...again, ...other]);
    await site.expectOneChain();
    await site.expectVerified(other.at(-1)?.mark ?? "");
    for (const { process } of site.group.members) expect(process.exitCode).to.equal(null);
    return [...again, ...other].filter(({ end }) => end === "answered");
  }

  for (const how of ["fast", "immediate", "kill -9"] as const) {
    for (let round = 1; round <= roundsOf(1, 30); round++) {
      it(`stops (${how}): calls are refused and not dispatched, and served again once it is back (${round}) [S87]`, async () => {
        const { postgres } = site.group;
        const prefix = `${how.replace(" ", "")}-${round}`;
        // In flight when it stops: the upstream answers once nothing can be recorded.
        const inFlight = Promise.all([1, 2, 3].map((turn) => site.call(site.url(0), `in-flight-${prefix}-${turn}`)));
        await postgres.halt(how);
        const refused = await refusedMeanwhile(`stopped-${prefix}`);
        await postgres.resume();
        const resumedMs = performance.now();
        const [first] = await expectRecovered([...refused, ...(await inFlight)]);
        sayOutage("the database was back", resumedMs, first, leaseMs);
      });
    }
  }

  it("stops while the upstream acts: the call is recorded as unknown, and its agent is not told otherwise [S87]", async () => {
    const { postgres } = site.group;
    const calling = site.call(site.url(0), "acting", { wait_ms: 3_000 });
    await eventually("the call to be dispatched", async () => (await site.reached()).includes("acting"));
    await postgres.halt("immediate");
    const { end } = await calling;
    expect(end).to.not.equal("answered");
    await postgres.resume();
    // Also by the replica that owned the store, where the other one owns it now.
    for (const index of [0, 1]) await site.serves(site.url(index));
    let effects: readonly string[] = [];
    // Others are served while what was left open is recorded.
    await eventually("the outcome", async () => {
      const records = await site.reader(0).recordsOf((label) => label === "acting");
      effects = records.map(({ effect }) => effect);
      return effects.length > 1;
    });
    expect(effects).to.deep.equal(["dispatched", "unknown"]);
    expect((await site.reached()).filter((mark) => mark === "acting")).to.have.length(1);
    await site.expectOneChain();
  });

  it("is made read-only: calls are refused and not dispatched, and served again once it is not [S87]", async () => {
    const { postgres } = site.group;
    const set = async (isReadOnly: "on" | "off"): Promise<void> => {
      for (const statement of [
        `ALTER DATABASE gateway SET default_transaction_read_only = ${isReadOnly}`,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'gateway'",
      ]) {
        const { code, stderr } = await postgres.sql(statement);
        expect(code, stderr).to.equal(0);
      }
    };
    await set("on");
    const refused = await refusedMeanwhile("read-only");
    await set("off");
    await expectRecovered(refused);
  });

  it("is locked by another session: calls wait no longer than they may, and are served again [S87]", async () => {
    const { postgres } = site.group;
    const lockedS = leaseMs / 1_000 + 4; // longer than a statement may wait: the length of the lease
    const locked = postgres.psql(
      ["--dbname=gateway"],
      `BEGIN; LOCK gateway_lease; SELECT pg_sleep(${lockedS}); ROLLBACK;`,
    );
    await eventually("the lock", async () => {
      const { stdout } = await postgres.psql([
        ...["--dbname=gateway", "--tuples-only", "--no-align", "--command"],
        "SELECT count(*) FROM pg_locks WHERE relation = 'gateway_lease'::regclass AND mode = 'AccessExclusiveLock' AND granted",
      ]);
      return stdout.trim() === "1";
    });
    const sent = await Promise.all([1, 2, 3].map((turn) => site.call(site.url(site.group.owner()), `locked-${turn}`)));
    expect((await locked).code).to.equal(0);
    for (const { mark, end } of sent)
      if (end !== "answered") expect(end, mark).to.be.oneOf(["EVIDENCE_UNAVAILABLE", "none"]);
    expect(sent.some(({ end }) => end === "EVIDENCE_UNAVAILABLE")).to.equal(true);
    await expectRecovered(sent);
  });
});

describe("a database that is set to answer before it has written", () => {
  let site: ReplicaSite;

  before(async () => {
    site = await ReplicaSite.create(leaseMs);
    await set("synchronous_commit", "off");
    // It would write by itself what it had answered, five times a second.
    await set("wal_writer_delay", "10000");
  });

  after(() => site.stop());

  async function set(name: string, value: string): Promise<void> {
    for (const statement of [`ALTER SYSTEM SET ${name} = ${value}`, "SELECT pg_reload_conf()"]) {
      const { code, stderr } = await site.group.postgres.sql(statement);
      expect(code, stderr).to.equal(0);
    }
  }

  it("writes the gateway's batches first: a kill of it loses nothing that was acknowledged [S87]", async () => {
    await site.group.start(0);
    const sent = [...(await site.serves())];
    for (let turn = 0; turn < 5; turn++) sent.push(await site.call(site.url(0), `answered-${turn}`));
    await site.group.postgres.halt("kill -9");
    await site.group.postgres.resume();
    sent.push(...(await site.serves()));
    await site.expectSettled(sent);
    await site.expectOneChain();
    expect(sent.at(-1)?.end).to.equal("answered");
    // A copy of its own, made of what the database kept.
    await site.group.start(1);
    await site.expectSettled(sent, 1);
  });

  it("is refused by name where it never makes sure that its system has written [S87]", async () => {
    await set("fsync", "off");
    const refused = await rejection(site.group.start(2));
    expect(refused.message).to.include("expected a database with `fsync = on`, got `off`");
  });
});

describe("a connection that ends between two statements of one transaction", () => {
  it("rejects what was read with it, and nothing else [S87]", async () => {
    const postgres = await PostgresServer.start();
    const database = await ReplicaDatabase.open({ url: await postgres.createDatabase("ended"), timeoutMs: 10_000 });
    const ended = await database
      .readChanges(0, null, async () => {
        const others = "pid <> pg_backend_pid() AND datname = 'ended'";
        const { code } = await postgres.sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${others}`);
        expect(code).to.equal(0);
        await sleep(200);
      })
      .catch(({ code }: { readonly code: string }) => code);
    expect(ended).to.equal("EVIDENCE_UNAVAILABLE");
    expect(await database.readLease()).to.include({ epoch: 0 });
    await database.close();
    await postgres.stop();
  });
});

describe("a batch whose commit is not answered", () => {
  let site: ReplicaSite;
  let proxy: PostgresProxy;

  before(async () => {
    site = await ReplicaSite.create(leaseMs);
    proxy = await PostgresProxy.start(site.group.postgres.socket);
    for (const index of [0, 1]) await site.group.start(index, { databaseUrl: proxy.urlOf("gateway") });
    await site.serves();
  });

  after(async () => {
    proxy.stop();
    await site.stop();
  });

  for (const fault of ["drop the answer", "drop the batch", "hold the answer"] as const) {
    for (let round = 1; round <= roundsOf(1, 30); round++) {
      it(`is recorded or refused, never both, where the network does this: ${fault} (${round}) [S87]`, async () => {
        const met = proxy.met;
        proxy.next(fault);
        const prefix = `${fault.replaceAll(" ", "-")}-${round}`;
        const sent = await Promise.all([1, 2, 3, 4].map((turn) => site.call(site.url(0), `${prefix}-${turn}`)));
        await eventually("the fault", () => proxy.met > met);
        sent.push(...(await site.serves(site.url(0), `${prefix}-after`)));
        const records = await site.expectSettled(sent);
        const reached = await site.reached();
        for (const { mark, end } of sent) {
          if (end === "answered") continue;
          expect(end, mark).to.equal("EVIDENCE_UNAVAILABLE");
          // Where the upstream acted before, it is on record as unknown; where it did not, nothing says that it may have.
          const effects = records.filter(({ session }) => session.label === mark).map(({ effect }) => effect);
          if (reached.includes(mark)) expect(effects, mark).to.deep.equal(["dispatched", "unknown"]);
        }
        expect(
          sent.some(({ end }) => end !== "answered"),
          "a call that met it",
        ).to.equal(true);
        await site.expectOneChain();
      });
    }
  }
});
