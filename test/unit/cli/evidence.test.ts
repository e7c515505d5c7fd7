import { randomBytes } from "node:crypto";
import { cp, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { SigningKey } from "../../../core/action/signing-key.ts";
import { KeyFolder } from "../../../core/evidence/key/key-folder.ts";
import { installationKey, publishedHeadsKey, recordKey } from "../../../core/evidence/record/key-space.ts";
import type { ChainVerdict, Flaw } from "../../../core/evidence/verify/folder-verdict.ts";
import type { TenantIndexEntry } from "../../../core/evidence/witness/tenant-index.ts";
import { WitnessFeed } from "../../../core/evidence/witness/witness-feed.ts";
import { FileWitness } from "../../../core/evidence/witness/witness-file.ts";
import { runCommand } from "../../support/command-host.ts";
import { flip } from "../../support/flip.ts";
import { LedgerWorld } from "../../support/ledger-world.ts";
import { removeTenant } from "../../support/remove-tenant.ts";

let world: LedgerWorld;
let notes: string;

/** In each suite, because a hook outside of any runs for the tests of every file. */
function inOwnWorld(): void {
  beforeEach(async () => {
    world = await LedgerWorld.create();
    notes = `${world.dir}-notes`;
    await world.open();
    await world.act();
    await world.ledger.recordEvent("globex", "admin", {});
  });
  afterEach(async () => {
    await world.remove();
    await rm(notes, { recursive: true, force: true });
  });
}

async function push(): Promise<void> {
  const { store, ledger } = world;
  const keys = new KeyFolder(world.keysPath, randomBytes);
  const parts = { store, ledger, keys, clock: Date.now, random: randomBytes };
  await new WitnessFeed(new FileWitness("vault", notes), parts).push();
}

interface Said {
  readonly exit: number;
  readonly chains: readonly ChainVerdict[];
  readonly list?: { readonly verdict: string; readonly first_bad: Flaw };
}

async function verify(...args: string[]): Promise<Said & { readonly code: number }> {
  const { code, stdout, stderr } = await runCommand(["evidence", "verify", "--data", world.dir, "--json", ...args]);
  expect(stderr).to.equal("");
  const said = JSON.parse(stdout) as Said;
  expect(said.exit).to.equal(code);
  return { ...said, code };
}

describe("gateway evidence verify --data", () => {
  inOwnWorld();

  it("says of each tenant how far it can be trusted, and ends with the worst [R4.3-4]", async () => {
    await push();
    await world.ledger.recordEvent("globex", "admin", {});
    await world.close();
    expect((await verify()).code, "no witness").to.equal(10);
    const { code, chains } = await verify("--witness", notes);
    expect(code).to.equal(0);
    expect(chains.map(({ tenant, verdict, records }) => ({ tenant, verdict, records }))).to.deep.equal([
      { tenant: "acme", verdict: "witnessed", records: 3 },
      { tenant: "globex", verdict: "witnessed", records: 3 },
    ]);
    expect((await verify("--tenant", "acme")).chains.map(({ tenant }) => tenant)).to.deep.equal(["acme"]);
  });

  it("tells a person, one line a tenant", async () => {
    await world.store.del(recordKey("acme", 1));
    await world.close();
    expect(await runCommand(["evidence", "verify", "--data", world.dir])).to.deep.equal({
      code: 40,
      stdout:
        "acme: invalid, 1 records, then seq_gap at record 1: expected record 1, got a gap\n" +
        "globex: self-attested, 2 records\n",
      stderr: "",
    });
  });

  it("finds a flipped bit in what no chain leads to, and says where it is", async () => {
    await world.store.put("acme/other", "x".repeat(10_000));
    await world.close();
    await world.openStore();
    await world.close();
    const state = join(world.dir, "state");
    const table = String((await readdir(state)).find((name) => name.endsWith(".ldb")));
    await flip({ path: join(state, table), at: 40, bit: 5 });
    expect(await runCommand(["evidence", "verify", "--data", world.dir])).to.deep.equal({
      code: 1,
      stdout: "",
      stderr: `gateway: state cannot be used: \`${state}\` is damaged (${table}, byte 0: the checksum of a block does not fit); restore the newest backup\n`,
    });
  });

  it("changes nothing, and leaves nothing behind", async () => {
    await world.close();
    const before = await readdir(world.dir, { recursive: true });
    await verify();
    expect(await readdir(world.dir, { recursive: true })).to.have.members(before);
  });

  it("leaves nothing behind where a witness has no folder", async () => {
    await world.close();
    const before = await readdir(world.dir, { recursive: true });
    const verify = ["evidence", "verify", "--data", world.dir, "--witness", notes];
    expect((await runCommand(verify)).stderr).to.contain(
      `expected the folder or URL of a witness's notes, got \`${notes}\``,
    );
    expect(await readdir(world.dir, { recursive: true })).to.have.members(before);
  });

  it("finds an older copy of everything by its witness alone: 30", async () => {
    await world.close();
    await cp(world.dir, `${world.dir}-copy`, { recursive: true });
    await world.open();
    await world.act();
    await push();
    await world.close();
    await rm(world.dir, { recursive: true });
    await cp(`${world.dir}-copy`, world.dir, { recursive: true });
    await rm(`${world.dir}-copy`, { recursive: true });
    expect((await verify()).code).to.equal(10);
    const { code, chains } = await verify("--witness", notes);
    expect(code).to.equal(30);
    expect(chains[0]).to.deep.include({
      verdict: "diverged",
      first_bad: { reason: "behind_witness", detail: `witness \`${notes}\` has seen 5 records` },
    });
    expect(chains[1]?.verdict).to.equal("witnessed");
  });

  describe("when a whole tenant is removed, keys and mark", () => {
    const gone = { reason: "behind_witness", detail: "" };

    beforeEach(async () => {
      await push();
      gone.detail = `the chain is gone: witness \`${notes}\` has seen 2 records of it`;
    });

    it("lists it all the same, by its witness alone: diverged", async () => {
      await world.close();
      await removeTenant(world.dir, "globex");
      expect(
        (await verify()).chains.map(({ tenant }) => tenant),
        "no witness",
      ).to.deep.equal(["acme"]);
      const { code, chains, list } = await verify("--witness", notes);
      expect([code, list]).to.deep.equal([30, undefined]);
      expect(chains.map(({ tenant, verdict }) => [tenant, verdict])).to.deep.equal([
        ["acme", "witnessed"],
        ["globex", "diverged"],
      ]);
      expect(chains[1]).to.deep.include({ records: 0, head: null, first_bad: gone });
      const one = await verify("--witness", notes, "--tenant", "globex");
      expect([one.code, one.chains[0]?.first_bad]).to.deep.equal([30, gone]);
      expect((await verify("--witness", notes, "--tenant", "acme")).code).to.equal(0);
    });

    it("says so of a chain begun anew in its place", async () => {
      await world.close();
      await removeTenant(world.dir, "globex");
      await world.open();
      await world.ledger.recordEvent("globex", "admin", {});
      await world.close();
      const { code, chains } = await verify("--witness", notes);
      expect([code, chains[1]?.first_bad]).to.deep.equal([30, gone]);
    });

    it("says that another list was seen where the folder's list was changed too", async () => {
      const told = JSON.parse((await world.store.get(publishedHeadsKey("vault"))) ?? "");
      const confirmed = told.confirmed.filter(({ tenant }: TenantIndexEntry) => tenant !== "globex");
      await world.store.put(publishedHeadsKey("vault"), JSON.stringify({ ...told, confirmed }));
      await world.close();
      await removeTenant(world.dir, "globex");
      const { code, list } = await verify("--witness", notes);
      expect([code, list?.verdict, list?.first_bad.reason]).to.deep.equal([30, "diverged", "forked"]);
      const { stdout } = await runCommand(["evidence", "verify", "--data", world.dir, "--witness", notes]);
      expect(stdout).to.equal(
        "acme: witnessed, 3 records\n" +
          `list of chains: diverged, forked: witness \`${notes}\` has seen a later or another list of chains than this data folder knows of\n`,
      );
    });

    for (const [what, text] of [
      ["is gone", undefined],
      ["is another", '{"id":"another","key_id":"0"}'],
      ["is no name", "{"],
    ] as const) {
      it(`says the same where the folder's name towards its witnesses ${what}`, async () => {
        if (text === undefined) await world.store.del(installationKey);
        else await world.store.put(installationKey, text);
        await world.close();
        await removeTenant(world.dir, "globex");
        expect((await verify("--witness", notes)).list?.first_bad.reason).to.equal("forked");
      });
    }
  });

  it("takes the first keys it is given, and no other", async () => {
    await world.close();
    const { stdout } = await runCommand(["evidence", "keys", "--data", world.dir, "--json"]);
    const keys = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).keys[0].public_key as string);
    expect((await verify("--key", keys[0] ?? "", "--key", keys[1] ?? "")).code).to.equal(10);
    const { code, chains } = await verify("--key", keys[1] ?? "", "--tenant", "acme");
    expect(code).to.equal(40);
    expect(chains[0]?.first_bad?.reason).to.equal("unknown_key");
    expect((await verify("--key", SigningKey.fromSeed(randomBytes(32)).public.text)).code).to.equal(40);
  });

  it("says `stale` of a checkpoint older than asked for: 20", async () => {
    await world.close(); // its clock stands in the past
    expect((await verify("--max-age", "60")).code).to.equal(20);
    expect((await verify("--max-age", "999999999")).code).to.equal(10);
  });

  it("ends with 50 for a tenant that is not there", async () => {
    await world.close();
    expect((await verify("--tenant", "nobody")).code).to.equal(50);
  });

  for (const args of [["--key", "AAAA"], ["--max-age", "1d"], []] as const) {
    it(`ends with 2 for ${args.join(" ") || "no folder"}`, async () => {
      const data = args.length === 0 ? [] : ["--data", world.dir];
      expect(await runCommand(["evidence", "verify", ...data, ...args])).to.include({ code: 2, stdout: "" });
    });
  }
});

describe("gateway evidence keys", () => {
  inOwnWorld();

  it("lists each tenant's keys, and rotates one tenant's", async () => {
    await world.close();
    const list = async (): Promise<
      { tenant: string; keys: { key_id: string; from_size: number; to_size: number | null }[] }[]
    > => {
      const { code, stdout } = await runCommand(["evidence", "keys", "list", "--data", world.dir, "--json"]);
      expect(code).to.equal(0);
      return stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
    };
    const before = await list();
    expect(before.map(({ tenant, keys }) => [tenant, keys.length])).to.deep.equal([
      ["acme", 1],
      ["globex", 1],
    ]);
    const rotated = await runCommand(["evidence", "keys", "rotate", "--data", world.dir, "--tenant", "acme", "--json"]);
    expect(rotated.code).to.equal(0);
    const [acme, globex] = await list();
    expect(acme?.keys).to.have.length(2);
    expect(acme?.keys[0]).to.include({ from_size: 1, to_size: 4 });
    expect(acme?.keys[1]).to.include({ key_id: JSON.parse(rotated.stdout).key_id, from_size: 4, to_size: null });
    expect(globex).to.deep.equal(before[1]);
    expect((await verify()).code).to.equal(10);
  });

  it("rotates no key of a tenant that is not there", async () => {
    await world.close();
    const { code, stderr } = await runCommand(["evidence", "keys", "rotate", "--data", world.dir, "--tenant", "acmee"]);
    expect({ code, stderr }).to.deep.equal({
      code: 1,
      stderr: `gateway: state cannot be used: expected a tenant with evidence in \`${world.dir}\`, got \`acmee\`\n`,
    });
  });

  it("prints public keys for a person", async () => {
    await world.close();
    const { stdout } = await runCommand(["evidence", "keys", "list", "--data", world.dir]);
    expect(stdout).to.match(
      /^tenant {2}public key .*\nacme {4}[A-Za-z0-9+/]{43}= {2}[0-9a-f]{16} +0\ntenant .*\nglobex {2}/,
    );
    expect(stdout).to.not.include("PRIVATE");
  });
});
