import { randomBytes } from "node:crypto";
import { cp, readdir, rm } from "node:fs/promises";
import { expect } from "chai";
import type { ChainVerdict } from "../../../core/evidence/folder-verdict.ts";
import { KeyFolder } from "../../../core/evidence/key-folder.ts";
import { recordKey } from "../../../core/evidence/key-space.ts";
import { SigningKey } from "../../../core/evidence/signing-key.ts";
import { WitnessFeed } from "../../../core/evidence/witness-feed.ts";
import { FileWitness } from "../../../core/evidence/witness-file.ts";
import { LedgerWorld } from "../../support/ledger-world.ts";
import { runGateway } from "./run.ts";

let world: LedgerWorld;
let notes: string;

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

async function push(): Promise<void> {
  const { store, ledger } = world;
  const keys = new KeyFolder(world.keysPath, randomBytes);
  const parts = { store, ledger, keys, clock: Date.now, random: randomBytes };
  await new WitnessFeed(new FileWitness("vault", notes), parts).push();
}

async function verify(...args: string[]): Promise<{ readonly code: number; readonly chains: readonly ChainVerdict[] }> {
  const { code, stdout, stderr } = await runGateway(["evidence", "verify", "--data", world.dir, "--json", ...args]);
  expect(stderr).to.equal("");
  const said = JSON.parse(stdout) as { readonly exit: number; readonly chains: readonly ChainVerdict[] };
  expect(said.exit).to.equal(code);
  return { code, chains: said.chains };
}

describe("gateway evidence verify --data", () => {
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
    expect(await runGateway(["evidence", "verify", "--data", world.dir])).to.deep.equal({
      code: 40,
      stdout:
        "acme: invalid, 1 records, then seq_gap at record 1: expected record 1, got a gap\n" +
        "globex: self-attested, 2 records\n",
      stderr: "",
    });
  });

  it("changes nothing, and leaves nothing behind", async () => {
    await world.close();
    const before = await readdir(world.dir, { recursive: true });
    await verify();
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

  it("takes the first keys it is given, and no other", async () => {
    await world.close();
    const { stdout } = await runGateway(["evidence", "keys", "--data", world.dir, "--json"]);
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
      expect(await runGateway(["evidence", "verify", ...data, ...args])).to.include({ code: 2, stdout: "" });
    });
  }
});

describe("gateway evidence keys", () => {
  it("lists each tenant's keys, and rotates one tenant's", async () => {
    await world.close();
    const list = async (): Promise<
      { tenant: string; keys: { key_id: string; from_size: number; to_size: number | null }[] }[]
    > => {
      const { code, stdout } = await runGateway(["evidence", "keys", "list", "--data", world.dir, "--json"]);
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
    const rotated = await runGateway(["evidence", "keys", "rotate", "--data", world.dir, "--tenant", "acme", "--json"]);
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
    const { code, stderr } = await runGateway(["evidence", "keys", "rotate", "--data", world.dir, "--tenant", "acmee"]);
    expect({ code, stderr }).to.deep.equal({
      code: 1,
      stderr: `gateway: state cannot be used: expected a tenant with evidence in \`${world.dir}\`, got \`acmee\`\n`,
    });
  });

  it("prints public keys for a person", async () => {
    await world.close();
    const { stdout } = await runGateway(["evidence", "keys", "list", "--data", world.dir]);
    expect(stdout).to.match(/^acme\n {2}[A-Za-z0-9+/]{43}= {2}key [0-9a-f]{16}, from record 0\nglobex\n {2}/);
    expect(stdout).to.not.include("PRIVATE");
  });
});
