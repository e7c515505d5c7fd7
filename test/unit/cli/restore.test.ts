import { randomBytes } from "node:crypto";
import { appendFile, cp, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { KeyFolder } from "../../../core/evidence/key/key-folder.ts";
import type { EventRecord } from "../../../core/evidence/record/record.ts";
import { WitnessFeed } from "../../../core/evidence/witness/witness-feed.ts";
import { FileWitness } from "../../../core/evidence/witness/witness-file.ts";
import { familyPrefixes, rangeOf } from "../../../core/store/key-range.ts";
import { BackupWorld } from "../../support/backup-world.ts";
import { runCommand } from "../../support/command-host.ts";
import { LedgerWorld } from "../../support/ledger-world.ts";
import type { Finished } from "./run.ts";

describe("gateway restore", () => {
  let world: BackupWorld;
  let target: string;
  let witness: string;

  beforeEach(async () => {
    world = await BackupWorld.create();
    target = join(world.root, "target");
    witness = join(world.root, "witness");
    await world.ledger.act();
  });
  afterEach(() => world.remove());

  /** The keys of the gateway are put where it is restored; then nothing else is there. */
  async function bringKeys(): Promise<void> {
    await cp(world.ledger.keysPath, join(target, "keys"), { recursive: true });
  }

  function restore(file: string, ...args: string[]): Promise<Finished> {
    return runCommand(["restore", file, "--data", target, "--by", "ops", ...args]);
  }

  /** Tells the witness where the ledger stands. */
  async function tell(): Promise<void> {
    const { ledger, store, clock } = world.ledger;
    const keys = new KeyFolder(world.ledger.keysPath, randomBytes);
    await new WitnessFeed(new FileWitness("w", witness), {
      store,
      ledger,
      keys,
      clock: clock.now,
      random: randomBytes,
    }).push();
  }

  async function expectRefusal(found: Promise<Finished>, said: string | RegExp): Promise<void> {
    const { code, stdout, stderr } = await found;
    expect([code, stdout]).to.deep.equal([1, ""]);
    if (typeof said === "string") expect(stderr).to.equal(`gateway: ${said}\n`);
    else expect(stderr).to.match(said);
  }

  async function expectUntouched(): Promise<void> {
    expect(await readdir(target)).to.deep.equal(["keys"]);
    expect((await readdir(join(target, "keys"))).sort()).to.deep.equal((await readdir(world.ledger.keysPath)).sort());
  }

  it("brings the chains back, puts that on record, and they verify and go on [S70]", async () => {
    await world.ledger.act({ tenant: "other" });
    const file = await world.make();
    await bringKeys();
    const { code, stdout } = await restore(file);
    expect([code, stdout])
      .to.match(/restored as of .*, 2 tenants, 0 approvals ended\n$/)
      .and.have.property("0", 0);
    expect((await readdir(target)).sort()).to.deep.equal(["high-water", "keys", "state"]);
    expect(await runCommand(["evidence", "verify", "--data", target])).to.deep.equal({
      code: 10,
      stdout: "acme: self-attested, 5 records\nother: self-attested, 4 records\n",
      stderr: "",
    });
    const restored = LedgerWorld.at(target);
    await restored.open();
    const last = (await restored.recordsOf()).at(-1) as EventRecord;
    expect([last.kind, last.detail.action, last.detail.by, last.detail.rollback]).to.deep.equal([
      "admin",
      "restore",
      "ops",
      null,
    ]);
    await restored.act();
    expect((await restored.ledger.verify("acme")).ok).to.equal(true);
    await restored.close();
  });

  it("brings back a backup of a store of an earlier format, whose records lay elsewhere", async () => {
    const { store } = world.ledger;
    const texts = await world.ledger.texts();
    for (const [family, prefix] of Object.entries(familyPrefixes)) {
      for (const [key, value] of await store.iterator({ ...rangeOf(prefix) }).all()) {
        const [, tenant, seq] = key.split("/");
        await store.batch([
          { type: "put", key: `${tenant}/${family}/${seq}`, value },
          { type: "del", key },
        ]);
      }
    }
    await store.put("format", "2");
    const file = await world.make();
    await bringKeys();
    expect(await restore(file)).to.have.property("code", 0);
    const restored = LedgerWorld.at(target);
    await restored.open();
    expect((await restored.texts()).slice(0, texts.length)).to.deep.equal(texts);
    await restored.act();
    expect((await restored.ledger.verify("acme")).ok).to.equal(true);
    await restored.close();
  });

  describe("refuses, and writes nothing", () => {
    it("a backup that was changed, or cut [S70]", async () => {
      const file = await world.make();
      await bringKeys();
      const whole = await readFile(file);
      const at = whole.indexOf("{record}/acme/") + 100;
      const changed = Buffer.from(whole);
      changed[at] = (changed[at] ?? 0) ^ 1;
      await writeFile(file, changed);
      await expectRefusal(restore(file), /^gateway: backup refused: its seal does not fit/);
      await writeFile(file, whole.subarray(0, whole.length - 300));
      await expectRefusal(restore(file), /the file was cut\n$/);
      await expectUntouched();
    });

    it("a backup of another gateway [S70]", async () => {
      const file = await world.make();
      await mkdir(join(target, "keys"), { recursive: true });
      await expectRefusal(restore(file), /sealed by key `[0-9a-f]{16}`, which is not in `.*keys`; put the keys/);
      expect(await readdir(target)).to.deep.equal(["keys"]);
      expect(await readdir(join(target, "keys"))).to.deep.equal([]);
    });

    it("a backup whose chain has lost its wrapping key [S70]", async () => {
      const file = await world.make();
      await bringKeys();
      for (const name of await readdir(join(target, "keys"))) {
        if (name.endsWith(".wrap")) await rm(join(target, "keys", name));
      }
      await expectRefusal(restore(file), /chain of tenant `acme` has no good wrapping key in the key folder\n$/);
      expect(await readdir(target)).to.deep.equal(["keys"]);
    });

    it("a sealed backup of a chain that was not sound, whatever is accepted [S70]", async () => {
      const [key] = (await world.ledger.store.keys({ gte: "{record}/acme/", limit: 1 }).all()) as [string];
      await world.ledger.store.put(key, ((await world.ledger.store.get(key)) ?? "").replace("genesis", "Genesis"));
      const file = await world.make();
      await bringKeys();
      await expectRefusal(
        restore(file, "--accept-rollback", "no matter"),
        /^gateway: backup refused: chain of tenant `acme`: /,
      );
      await expectUntouched();
    });

    it("to restore where something is [S70]", async () => {
      const file = await world.make();
      await world.ledger.close();
      target = world.dataDir;
      await expectRefusal(
        restore(file),
        `backup refused: \`${target}\` is not empty; choose another folder, or replace its state with --replace`,
      );
      expect((await readdir(target)).sort()).to.deep.equal(["high-water", "keys", "state"]);
    });

    it("to restore where a gateway runs, whatever is to be replaced [S69, S70]", async () => {
      const file = await world.make();
      target = world.dataDir;
      await expectRefusal(restore(file, "--replace", "--accept-rollback", "no matter"), /a gateway runs on/);
      expect((await readdir(target)).sort()).to.deep.equal(["high-water", "keys", "state"]);
    });
  });

  describe("of what is older than its witness has seen", () => {
    let file: string;

    beforeEach(async () => {
      await tell();
      file = await world.make();
      await bringKeys();
    });

    it("is not refused where the witness has seen no more than the backup holds", async () => {
      await tell();
      expect((await restore(file, "--witness", witness)).code).to.equal(0);
      const verified = await runCommand(["evidence", "verify", "--data", target, "--witness", witness]);
      expect([verified.code, verified.stdout]).to.deep.equal([0, "acme: witnessed, 5 records\n"]);
    });

    it("refuses, and writes nothing [S70]", async () => {
      await world.ledger.act();
      await tell();
      await expectRefusal(
        restore(file, "--witness", witness),
        `backup refused: chain of tenant \`acme\`: witness \`${witness}\` has seen 6 records; ` +
          `witness \`${witness}\` has seen a later or another list of chains than this data folder knows of; ` +
          "`--accept-rollback <reason>` restores it anyway",
      );
      await expectUntouched();
    });

    it("refuses where nobody names the witness [S70]", async () => {
      await expectRefusal(
        restore(file),
        /chain of tenant `acme` has a witness; name it with --witness; `--accept-rollback/,
      );
      const other = join(world.root, "empty");
      await expectRefusal(restore(file, "--witness", other), /expected the folder or URL of a witness's notes, got `/);
      await mkdir(other);
      await expectRefusal(restore(file, "--witness", other), /has a witness; name it with --witness/);
      await expectUntouched();
    });

    it("refuses a witness that has seen another history, whatever is accepted [S70]", async () => {
      const notes = join(witness, (await readdir(witness)).find((name) => !name.startsWith("meta-")) ?? "");
      const text = await readFile(notes, "utf8");
      await appendFile(notes, text.replace(/^[A-Za-z0-9+/]{43}=$/m, `${"A".repeat(43)}=`));
      await expectRefusal(
        restore(file, "--witness", witness, "--accept-rollback", "no matter"),
        /^gateway: backup refused: chain of tenant `acme`: witness `.*` has seen other records before/,
      );
      await expectUntouched();
    });

    it("restores where that is accepted, with the reason on record; the witness decides when it may serve", async () => {
      await world.ledger.act();
      await tell();
      const { code, stderr } = await restore(file, "--witness", witness, "--accept-rollback", "the disk is gone");
      expect(code).to.equal(0);
      expect(stderr).to.match(/^gateway: accepted: chain of tenant `acme`: witness `.*` has seen 6 records\n/);
      const restored = LedgerWorld.at(target);
      await restored.open();
      expect(((await restored.recordsOf()).at(-1) as EventRecord).detail.rollback).to.equal("the disk is gone");
      await restored.close();
      expect((await runCommand(["evidence", "verify", "--data", target, "--witness", witness])).code).to.equal(30);
      await rename(witness, `${witness}-until-the-restore`);
      await mkdir(witness);
      expect((await runCommand(["evidence", "verify", "--data", target, "--witness", witness])).code).to.equal(10);
    });
  });

  describe("with --replace", () => {
    beforeEach(() => {
      target = world.dataDir;
    });

    it("refuses to lose what was recorded since, which the state that is there still says [S70]", async () => {
      const file = await world.make();
      await world.ledger.act();
      await world.ledger.close();
      await expectRefusal(
        restore(file, "--replace"),
        "backup refused: chain of tenant `acme`: the replaced state has 6 records, the backup 4; `--accept-rollback <reason>` restores it anyway",
      );
      expect((await readdir(target)).sort()).to.deep.equal(["high-water", "keys", "state"]);
    });

    it("moves what was there aside", async () => {
      const file = await world.make();
      await world.ledger.close();
      const { code, stderr } = await restore(file, "--replace");
      const aside = /the replaced state is in (\S+)\n/.exec(stderr)?.[1] ?? "";
      expect([code, (await readdir(aside)).sort()]).to.deep.equal([0, ["high-water", "state"]]);
      expect((await runCommand(["evidence", "verify", "--data", target])).stdout).to.equal(
        "acme: self-attested, 5 records\n",
      );
    });

    it("restores over a store that cannot be opened, once that is accepted", async () => {
      const file = await world.make();
      await world.ledger.close();
      await rm(join(target, "state"), { recursive: true });
      await writeFile(join(target, "high-water"), randomBytes(8_192));
      await expectRefusal(restore(file, "--replace"), /the marks of the replaced state cannot be read/);
      expect((await restore(file, "--replace", "--accept-rollback", "the disk broke")).code).to.equal(0);
      expect((await runCommand(["evidence", "verify", "--data", target])).code).to.equal(10);
    });
  });
});

describe("gateway backup verify", () => {
  let world: BackupWorld;
  let file: string;

  before(async () => {
    world = await BackupWorld.create();
    await world.ledger.act();
    file = await world.make();
  });
  after(() => world.remove());

  it("prints who sealed it, and the verdict over each chain", async () => {
    const { code, stdout } = await runCommand(["backup", "verify", file]);
    expect(code).to.equal(10);
    expect(stdout).to.match(
      /^backup-\S+: of \S+, \d+ lines, sealed by key [A-Za-z0-9+/]{43}=\nacme: self-attested, 4 records\n$/,
    );
  });

  it("refuses a key that was not given [S70]", async () => {
    const { stdout } = await runCommand(["backup", "verify", file, "--json"]);
    const told = JSON.parse(stdout) as { public_key: string; exit: number; key_id: string };
    expect((await runCommand(["backup", "verify", file, "--key", told.public_key])).code).to.equal(told.exit);
    const other = await runCommand(["backup", "verify", file, "--key", `${"A".repeat(43)}=`]);
    expect([other.code, other.stderr]).to.deep.equal([
      1,
      `gateway: backup refused: it is sealed by key \`${told.key_id}\`, which is not a given one\n`,
    ]);
  });
});
