import { randomBytes } from "node:crypto";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { SigningKey } from "../../../../core/action/signing-key.ts";
import { KeyFolder } from "../../../../core/evidence/key/key-folder.ts";
import { checkpointAtKey, installationKey } from "../../../../core/evidence/record/key-space.ts";
import { parseNote } from "../../../../core/evidence/tree/checkpoint.ts";
import {
  signTenantIndex,
  type TenantIndexEntry,
  tenantIndexRoot,
} from "../../../../core/evidence/witness/tenant-index.ts";
import type { Witness } from "../../../../core/evidence/witness/witness.ts";
import { WitnessFeed } from "../../../../core/evidence/witness/witness-feed.ts";
import { FileWitness } from "../../../../core/evidence/witness/witness-file.ts";
import { Heartbeat, WitnessSchedule } from "../../../../core/evidence/witness/witness-publisher.ts";
import { LedgerWorld, rejection } from "../../../support/ledger-world.ts";
import { removeTenant } from "../../../support/remove-tenant.ts";

let world: LedgerWorld;

/** In each suite, because a hook outside of any runs for the tests of every file. */
function inOwnWorld(): void {
  beforeEach(async () => {
    world = await LedgerWorld.create();
    await world.open();
  });
  afterEach(() => world.remove());
  afterEach(() => rm(notes(), { recursive: true, force: true }));
}

/** Other storage: beside the data folder, so that it is not copied with it. */
function notes(): string {
  return `${world.dir}-notes`;
}

function feed(witness: Witness = new FileWitness("vault", notes())): WitnessFeed {
  const keys = new KeyFolder(world.keysPath, randomBytes);
  return new WitnessFeed(witness, {
    store: world.store,
    ledger: world.ledger,
    keys,
    clock: world.clock.now,
    random: randomBytes,
  });
}

async function events(count: number, tenant = "acme"): Promise<void> {
  for (let each = 0; each < count; each++) await world.ledger.recordEvent(tenant, "admin", {});
}

function statusOf(tenant = "acme"): { readonly chain: string; readonly state: string; readonly reason?: string } {
  const status = world.ledger.status().find((each) => each.tenant === tenant);
  if (status === undefined) throw new Error("expected a chain");
  return status;
}

/** Copies the closed data folder aside; puts it back over whatever came of it. */
async function keepCopy(): Promise<() => Promise<void>> {
  await world.close();
  const copy = `${world.dir}-copy`;
  await cp(world.dir, copy, { recursive: true });
  await world.open();
  return async () => {
    await world.close();
    await rm(world.dir, { recursive: true });
    await cp(copy, world.dir, { recursive: true });
    await rm(copy, { recursive: true });
    await world.open();
  };
}

describe("WitnessFeed", () => {
  inOwnWorld();

  it("tells the witness every chain that grew, once, and keeps what it told", async () => {
    await events(2);
    await events(1, "globex");
    const told = feed();
    await told.push();
    await told.push();
    await events(1);
    await told.push();
    const file = await readFile(join(notes(), `${statusOf().chain}.notes`), "utf8");
    expect(file.match(/^\d+$/gm)).to.deep.equal(["3", "4"]);
    expect(await world.store.get(checkpointAtKey("acme", 3))).to.be.a("string");
    expect(parseNote((await world.store.get(checkpointAtKey("acme", 4))) ?? "")).to.not.equal(undefined);
    expect(await world.ledger.verify("acme")).to.include({ ok: true });
    expect((await readdir(notes())).filter((name) => !name.startsWith("meta-"))).to.have.length(2);
  });

  it("finds nothing wrong after a start, a rotation and more records", async () => {
    await events(2);
    await feed().push();
    await world.ledger.rotateKey("acme");
    await events(300);
    await world.close();
    await world.open();
    await feed().push();
    expect(statusOf().state).to.equal("ready");
    await events(1);
  });

  describe("when the whole data folder is an older copy, marks and keys included [S64]", () => {
    it("refuses the tenant: behind its witness", async () => {
      await events(2);
      const restore = await keepCopy();
      await events(5);
      await feed().push();
      await restore();
      expect(await world.ledger.verify("acme"), "without its witness, nothing is wrong").to.include({ ok: true });
      await feed().compare();
      expect(statusOf().reason).to.equal(
        "chain of tenant `acme` is behind its witness `vault`: expected 8 records, got 3",
      );
      expect(await rejection(world.ledger.recordEvent("acme", "admin", {}))).to.include({
        code: "EVIDENCE_UNAVAILABLE",
      });
    });

    it("refuses the tenant when the copy has grown past the witness: forked", async () => {
      await events(2);
      const restore = await keepCopy();
      await events(2);
      await feed().push();
      await restore();
      await events(9);
      const before = await readFile(join(notes(), `${statusOf().chain}.notes`), "utf8");
      await feed().push();
      expect(statusOf().reason).to.equal(
        "chain of tenant `acme` is forked from its witness `vault` at or before record 4",
      );
      expect(await readFile(join(notes(), `${statusOf().chain}.notes`), "utf8"), "told nothing more").to.equal(before);
    });

    it("refuses others that are behind, and no tenant that is not", async () => {
      await events(2);
      await events(2, "globex");
      const restore = await keepCopy();
      await events(1, "globex");
      await feed().push();
      await restore();
      await feed().compare();
      expect(statusOf("globex").state).to.equal("refused");
      expect(statusOf("acme").state).to.equal("ready");
    });
  });

  describe("when a whole tenant is removed", () => {
    async function remove(tenant: string): Promise<void> {
      await world.close();
      await removeTenant(world.dir, tenant);
      await world.open();
    }

    it("refuses that tenant: gone, though nothing in the folder names it but the list that was told", async () => {
      await events(1);
      await events(4, "globex");
      await feed().push();
      await remove("globex");
      expect(world.ledger.status().map(({ tenant }) => tenant)).to.deep.equal(["acme"]);
      await feed().compare();
      expect(statusOf("globex").reason).to.equal(
        "chain of tenant `globex` is gone: witness `vault` has seen 5 records of it",
      );
      expect(statusOf("acme").state).to.equal("ready");
      expect(await rejection(world.ledger.recordEvent("globex", "admin", {}))).to.include({
        code: "EVIDENCE_UNAVAILABLE",
      });
    });

    it("lets no new chain begin when the list was changed too, and old ones go on", async () => {
      await events(1);
      await events(4, "globex");
      await feed().push();
      const told = JSON.parse((await world.store.get("meta-vault")) ?? "");
      const confirmed = told.confirmed.filter((entry: TenantIndexEntry) => entry.tenant !== "globex");
      await world.store.put("meta-vault", JSON.stringify({ ...told, confirmed }));
      await remove("globex");
      await feed().compare();
      expect(await rejection(world.ledger.recordEvent("globex", "admin", {}))).to.include({
        code: "EVIDENCE_UNAVAILABLE",
        detail: "witness `vault` has seen a later or another list of chains than this data folder knows of",
      });
      await events(1);
    });
  });

  it("accepts a list that was sent and never answered", async () => {
    await events(1);
    await feed().push();
    await events(1, "globex");
    const down = new FileWitness("vault", notes());
    const lossy: Witness = {
      name: "vault",
      latest: (log) => down.latest(log),
      append: async (log, note, time) => {
        await down.append(log, note, time);
        if (log.startsWith("meta-")) throw new Error("the answer was lost");
      },
    };
    expect((await rejection(feed(lossy).push())).message).to.equal("the answer was lost");
    await feed().push();
    await events(1, "initech");
    expect(world.ledger.status().every(({ state }) => state === "ready")).to.equal(true);
  });

  it("rejects, and tells nothing, where the witness holds something else in a chain's log", async () => {
    await events(1);
    const other = signTenantIndex("other", [], SigningKey.fromSeed(randomBytes(32)));
    await new FileWitness("vault", notes()).append(statusOf().chain, other, "2026-05-01T10:00:00.000Z");
    const { chain } = statusOf();
    expect((await rejection(feed().push())).message).to.equal(`the witness holds no checkpoint in log \`${chain}\``);
    expect(statusOf().state).to.equal("ready");
  });

  it("rejects where the installation's key is gone, and goes on with chains", async () => {
    await events(1);
    await feed().push();
    const { key_id: id } = JSON.parse((await world.store.get(installationKey)) ?? "");
    await rm(join(world.keysPath, `${id}.pem`));
    expect((await rejection(feed().push())).message).to.equal(
      `the installation's key \`${id}\` is not in the key folder`,
    );
    await events(1);
  });
});

describe("metaRoot(entries)", () => {
  inOwnWorld();

  const entry = (chain: string, size: number): TenantIndexEntry => ({
    tenant: "t",
    chain,
    size,
    root: "ab".repeat(32),
    salt: "s",
  });

  it("does not depend on the order, and does on every member but the tenant's name", () => {
    const entries = [entry("a", 1), entry("b", 2), entry("c", 3)];
    const root = tenantIndexRoot(entries);
    expect(tenantIndexRoot(entries.toReversed())).to.deep.equal(root);
    expect(tenantIndexRoot(entries.map((each) => ({ ...each, tenant: "u" })))).to.deep.equal(root);
    for (const changed of [{ chain: "d" }, { size: 9 }, { root: "cd".repeat(32) }, { salt: "t" }]) {
      expect(tenantIndexRoot(entries.with(1, { ...entry("b", 2), ...changed }))).to.not.deep.equal(root);
    }
    expect(tenantIndexRoot(entries.slice(1))).to.not.deep.equal(root);
  });
});

describe("WitnessSchedule", () => {
  inOwnWorld();

  it("pushes at its interval and once more at the end, and says what failed without ending", async () => {
    await events(1);
    const heard: unknown[] = [];
    await mkdir(notes());
    await writeFile(join(notes(), "blocked"), "");
    const schedule = await WitnessSchedule.start({
      feeds: [
        { feed: feed(), intervalMs: 20 },
        { feed: feed(new FileWitness("down", join(notes(), "blocked"))), intervalMs: 20 },
      ],
      onPush: (witness, error) => heard.push([witness, error instanceof Error ? "failed" : "told"]),
    });
    expect(heard, "at the start").to.deep.equal([["down", "failed"]]);
    while (heard.length < 6) await new Promise((resolve) => setTimeout(resolve, 5));
    await events(2);
    await schedule.stop();
    const file = await readFile(join(notes(), `${statusOf().chain}.notes`), "utf8");
    expect(file.match(/^\d+$/gm)?.at(-1)).to.equal("4");
    expect(heard).to.deep.include(["vault", "told"]).and.to.not.deep.include(["down", "told"]);
    const { length } = heard;
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(heard.length, "nothing after the end").to.equal(length);
  });
});

describe("Heartbeat", () => {
  inOwnWorld();

  it("records one in each idle chain, and none in a chain that speaks", async () => {
    await events(1);
    await events(1, "globex");
    const failures: unknown[] = [];
    const heartbeat = new Heartbeat({
      ledger: world.ledger,
      intervalMs: 1_000, // far longer than an append takes
      onFailure: (tenant, error) => failures.push([tenant, error]),
    });
    const kinds = async (tenant: string): Promise<string[]> => (await world.recordsOf(tenant)).map(({ kind }) => kind);
    while (!(await kinds("acme")).includes("heartbeat")) {
      await events(1, "globex");
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await heartbeat.stop();
    expect(await kinds("globex")).to.not.include("heartbeat");
    expect(failures).to.deep.equal([]);
    expect(await world.ledger.verify("acme")).to.include({ ok: true });
  });

  it("says where a chain takes none", async () => {
    await events(1);
    const failed = new Promise<unknown>((resolve) => {
      const heartbeat = new Heartbeat({
        ledger: { status: () => world.ledger.status(), recordEvent: () => Promise.reject(new Error("no")) },
        intervalMs: 10,
        onFailure: (tenant) => void heartbeat.stop().then(() => resolve(tenant)),
      });
    });
    expect(await failed).to.equal("acme");
  });
});
