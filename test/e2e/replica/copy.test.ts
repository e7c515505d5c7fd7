import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Level } from "level";
import { type LeaseClaim, ReplicaDatabase } from "../../../core/replica/database.ts";
import { bytesOf, catchUp } from "../../../core/replica/local-copy.ts";
import { ReplicatedStore } from "../../../core/replica/replicated-store.ts";
import { openFolder, openStore, type Store } from "../../../core/store/open.ts";
import { PostgresServer } from "../../support/postgresql.ts";

const listedBatches = 10;

describe("the copy of a replica", () => {
  let postgres: PostgresServer;
  let folder: string;
  let database: ReplicaDatabase;
  let claim: LeaseClaim;
  let owner: Store;

  before(async () => {
    postgres = await PostgresServer.start();
    folder = await mkdtemp(join(tmpdir(), "copy-"));
    database = await ReplicaDatabase.open({ url: await postgres.createDatabase("gateway"), timeoutMs: 10_000 });
    claim = (await database.claim("here:1", 600_000)) as LeaseClaim;
    owner = await openOwner("owner");
  });

  after(async () => {
    await owner.close();
    await database.close();
    await postgres.stop();
    await rm(folder, { recursive: true });
  });

  it("has what the owner wrote, replaced, deleted and cleared", async () => {
    await owner.batch([
      { type: "put", key: "a/1", value: "one" },
      { type: "put", key: "a/2", value: "two" },
      { type: "put", key: "a/3", value: JSON.stringify({ seq: 3, kind: "decision", text: "three".repeat(100) }) },
    ]);
    const chained = owner.batch();
    chained.put("b/1", "first").put("b/1", "last").del("a/1");
    await chained.write();
    await owner.put("c/1", "x");
    await owner.clear({ gte: "c/", lt: "c0" });
    await expectSame("copy");
  });

  it("has the whole of many entries, page by page", async () => {
    for (let at = 0; at < 5; at++) {
      const some = Array.from({ length: 1_000 }, (_, index) => `m/${at}/${index}`);
      await owner.batch(some.map((key) => ({ type: "put", key, value: key.repeat(3) })));
    }
    await expectSame("many");
  });

  it("is read anew where it is behind deletions that are no longer listed", async () => {
    await owner.put("gone", "soon");
    await expectSame("behind");
    await owner.del("gone");
    for (let at = 0; at < 3 * listedBatches; at++) await owner.put("counter", String(at));
    await eventually(async () => (await database.readLease()).horizon > 0);
    const { stdout } = await postgres.sql("SELECT count(*) FROM gateway_entry WHERE key = 'gone'", "gateway");
    expect(stdout.trim()).to.equal("0");
    await expectSame("behind");
  });

  it("is opened by no gateway as a store of its own", async () => {
    const message = await openStore({ dir: join(folder, "copy"), enabled: true }).then(() => "", String);
    expect(message).to.contain("is a replica's copy of a database");
  });

  it("refuses another database, and one that is older than itself", async () => {
    const other = await ReplicaDatabase.open({ url: await postgres.createDatabase("other"), timeoutMs: 10_000 });
    expect(await faultOf("copy", other)).to.contain("the copy of another database");
    await postgres.sql("UPDATE gateway_lease SET batch = 1", "gateway");
    expect(await faultOf("many", database)).to.contain("the database is older than the data folder");
    await other.close();
  });

  async function openOwner(name: string): Promise<Store> {
    const parts = { database, claim, isHeld: () => true, listedBatches };
    const create = (path: string, settings: object): Store => new ReplicatedStore(path, settings, parts);
    return openStore({ dir: join(folder, name), enabled: true, create });
  }

  /** Brings a copy up to date and compares it with the owner's store. */
  async function expectSame(name: string): Promise<void> {
    const copy = await openCopy(name);
    try {
      await catchUp(bytesOf(copy), database, null);
      expect(await entriesOf(copy)).to.deep.equal(await entriesOf(owner));
    } finally {
      await copy.close();
    }
  }

  async function faultOf(name: string, from: ReplicaDatabase): Promise<string> {
    const copy = await openCopy(name);
    return catchUp(bytesOf(copy), from, null)
      .then(() => "", String)
      .finally(() => copy.close());
  }

  function openCopy(name: string): Promise<Store> {
    return openFolder(join(folder, name), (path, settings) => new Level<string, string>(path, settings));
  }
});

/** Without how far each of them is. */
async function entriesOf(store: Store): Promise<readonly [string, string][]> {
  const entries = await store.iterator().all();
  return entries.filter(([key]) => key !== "replica-position");
}

async function eventually(check: () => Promise<boolean>): Promise<void> {
  for (let left = 200; !(await check()); left--) {
    if (left === 0) throw new Error("expected it to happen");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
