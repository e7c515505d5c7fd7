import { randomBytes } from "node:crypto";
import { cp, link, mkdir, mkdtemp, open, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { KeyFolder } from "../../core/evidence/key/key-folder.ts";
import { WitnessFeed } from "../../core/evidence/witness/witness-feed.ts";
import { FileWitness } from "../../core/evidence/witness/witness-file.ts";
import { type LocalServer, serve } from "../e2e/egress/network.ts";
import { BackupWorld } from "../support/backup-world.ts";
import { runCommand } from "../support/command-host.ts";
import { LedgerWorld } from "../support/ledger-world.ts";
import { otherDisk } from "../support/other-disk.ts";
import type { Finished } from "../unit/cli/run.ts";

/** Names that leave the folder, were any of them to become a path. */
const leaving = ["../../../outside/x", "/tmp/outside-of-restore", "..\\..\\outside", "a/../../outside", "./keys/x.key"];

describe("an attack by a backup, or around one", () => {
  let world: BackupWorld;
  let target: string;
  let outside: string;
  let witness: LocalServer | undefined;

  beforeEach(async () => {
    world = await BackupWorld.create();
    target = join(world.root, "target");
    outside = join(world.root, "outside");
    await mkdir(outside);
    await writeFile(join(outside, "precious"), "kept");
    await world.ledger.act();
  });
  afterEach(async () => {
    await witness?.close();
    witness = undefined;
    await world.remove();
  });

  function restore(file: string, ...args: string[]): Promise<Finished> {
    return runCommand(["restore", file, "--data", target, "--by", "ops", ...args]);
  }

  async function bringKeys(): Promise<void> {
    await cp(world.ledger.keysPath, join(target, "keys"), { recursive: true });
  }

  async function expectOutsideKept(): Promise<void> {
    expect(await readdir(outside)).to.deep.equal(["precious"]);
    expect(await readFile(join(outside, "precious"), "utf8")).to.equal("kept");
  }

  it("by names in it that lead elsewhere: tenants, and keys of the store, never become paths [S70]", async () => {
    for (const [at, tenant] of leaving.entries()) {
      await world.ledger.act({ tenant });
      await world.ledger.store.put(`acme/${at}/${tenant}`, "x");
    }
    const file = await world.make();
    await bringKeys();
    const before = (await readdir(world.root)).sort();
    const { stdout, stderr } = await restore(file);
    expect(stdout, stderr).to.match(/6 tenants/);
    expect((await readdir(world.root)).sort()).to.deep.equal(before);
    expect((await readdir(target)).sort()).to.deep.equal(["high-water", "keys", "state"]);
    expect((await readdir(join(target, "keys"))).sort()).to.deep.equal((await readdir(world.ledger.keysPath)).sort());
    await expectOutsideKept();
  });

  it("by links where a restore writes, moves or cleans up: none is followed [S70]", async () => {
    const file = await world.make();
    await bringKeys();
    await writeFile(join(world.root, "marks"), randomBytes(8_192));
    await mkdir(join(world.root, "database"));
    await writeFile(join(world.root, "database", "CURRENT"), "precious");
    await symlink(outside, join(target, ".restore-planted"));
    await symlink(join(world.root, "marks"), join(target, "high-water"));
    await symlink(join(world.root, "database"), join(target, "state"));
    const marks = await readFile(join(world.root, "marks"));
    const { code, stderr } = await restore(file, "--replace", "--accept-rollback", "tried");
    expect(code, stderr).to.equal(0);
    expect((await readFile(join(world.root, "marks"))).equals(marks)).to.equal(true);
    expect(await readdir(join(world.root, "database"))).to.deep.equal(["CURRENT"]);
    expect((await runCommand(["evidence", "verify", "--data", target])).code).to.equal(10);
    await expectOutsideKept();
  });

  it("by what is no file, has another name too, or never ends: refused, and nothing is written [S70]", async () => {
    const file = await world.make();
    await bringKeys();
    const vast = join(world.root, "vast");
    const handle = await open(vast, "w");
    await handle.truncate(2 ** 40);
    await handle.close();
    const joined = join(world.root, "joined");
    await link(file, joined);
    const cut = await readFile(file);
    await writeFile(joined, cut.subarray(0, cut.length - 10));
    for (const each of ["/dev/zero", "/dev/stdin", "/dev/full", target, vast, joined, file, `${file}/../${file}`]) {
      const { code, stderr } = await restore(each, "--replace", "--accept-rollback", "tried");
      expect([code, stderr], each)
        .to.have.property("1")
        .that.matches(/^gateway: backup refused: /);
      expect(code).to.equal(1);
    }
    expect(await readdir(target)).to.deep.equal(["keys"]);
  });

  it("by lines in it twice, as another copy of an entry or of a mark: the seal does not fit [S70]", async () => {
    const file = await world.make();
    await bringKeys();
    const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
    for (const at of [0, 1, 2, lines.length - 2, lines.length - 1]) {
      await writeFile(file, `${lines.toSpliced(at, 0, lines[at] as string).join("\n")}\n`);
      expect((await restore(file)).stderr).to.match(/^gateway: backup refused: /);
    }
    expect(await readdir(target)).to.deep.equal(["keys"]);
  });

  describe("by a witness that takes its time, until a gateway runs on the folder", () => {
    /** So that a witness is asked, and its answer decides. */
    beforeEach(async () => {
      const { ledger, store, clock, keysPath } = world.ledger;
      const keys = new KeyFolder(keysPath, randomBytes);
      const feed = new WitnessFeed(new FileWitness("w", join(world.root, "notes")), {
        store,
        ledger,
        keys,
        clock: clock.now,
        random: randomBytes,
      });
      await feed.push();
    });

    /** Starts what `meanwhile` starts while the restore waits for its witness. */
    async function openWitness(meanwhile: () => Promise<unknown>): Promise<string> {
      let begun: Promise<unknown> | undefined;
      witness = await serve(async (_, response) => {
        begun ??= meanwhile();
        await begun;
        response.writeHead(404).end();
      });
      return witness.url;
    }

    it("what it would record is not lost: it does not start on a state that is being replaced [S69, S70]", async () => {
      const file = await world.make();
      await world.ledger.close();
      target = world.dataDir;
      const started: string[] = [];
      const url = await openWitness(async () => {
        await world.ledger.open().then(
          () => started.push("started"),
          (error: Error) => started.push(error.message),
        );
        await world.ledger.close();
      });
      const { code } = await restore(file, "--replace", "--witness", url, "--accept-rollback", "tried");
      expect(started).to.have.length(1);
      expect(started[0]).to.match(/another process holds .*state/);
      expect(code).to.equal(0);
      await world.ledger.open();
      await world.ledger.act();
      expect((await world.ledger.ledger.verify("acme")).ok).to.equal(true);
    });

    it("its marks stay its own: the restore is refused where one began on an empty folder [S69, S70]", async () => {
      const file = await world.make();
      await bringKeys();
      const begun = LedgerWorld.at(target);
      const url = await openWitness(async () => {
        await begun.open();
        await begun.act();
      });
      const { code, stderr } = await restore(file, "--witness", url, "--accept-rollback", "tried");
      expect([code, stderr]).to.have.property("0", 1);
      expect(stderr).to.match(/a gateway was started on .* meanwhile/);
      await begun.act();
      await begun.close();
      await begun.open();
      expect(begun.ledger.status().map(({ state }) => state)).to.deep.equal(["ready"]);
      await begun.close();
    });
  });

  it("where `state` is a link to another disk, on which a gateway runs: it is found there [S69, S70]", async () => {
    const file = await world.make();
    await world.ledger.close();
    target = world.dataDir;
    const elsewhere = await mkdtemp(join(otherDisk, "state-"));
    try {
      await cp(join(target, "state"), join(elsewhere, "state"), { recursive: true });
      await rename(join(target, "state"), join(world.root, "before"));
      await symlink(join(elsewhere, "state"), join(target, "state"));
      await world.ledger.open();
      const { code, stderr } = await restore(file, "--replace", "--accept-rollback", "tried");
      expect(code).to.equal(1);
      expect(stderr).to.match(/a gateway runs on/);
      await world.ledger.act();
      expect((await world.ledger.ledger.verify("acme")).ok).to.equal(true);
      await world.ledger.close();
    } finally {
      await rm(elsewhere, { recursive: true });
    }
  });
});
