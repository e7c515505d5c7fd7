import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { expect } from "chai";
import { repositoryRoot } from "../../check/source-tree.ts";
import { Agent } from "../../support/agent.ts";
import { CommandHost, runCommand } from "../../support/command-host.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { KeyDesk } from "../../support/key-rotation.ts";
import type { Finished } from "../../unit/cli/run.ts";
import { effectsOf, type KeyHolder, keys, nothing, openWorld, type World } from "../wire/world.ts";

const agents = 64;
const rotations = 5;

describe("changing the key of a chain while the gateway serves", () => {
  let world: World;
  let folder: string;
  let commands: CommandHost;

  before(async () => {
    commands = new CommandHost();
    folder = await mkdtemp(join(tmpdir(), "rotation-"));
    world = await openWorld();
    // A chain begins with its first record.
    const agent = new Agent(world.gateway.url, keys.operator, "first");
    expect((await agent.call("echo", { mark: "first" })).status).to.equal(200);
    await agent.hangUp();
  });

  after(async () => {
    await commands.stop();
    await world.stop();
    await rm(folder, { recursive: true });
  });

  function desk(holder: KeyHolder | null): KeyDesk {
    return new KeyDesk(world.gateway.adminUrl, holder === null ? null : keys[holder]);
  }

  function gateway(holder: KeyHolder, ...args: string[]): Promise<Finished> {
    return commands.run(["evidence", ...args, "--admin", world.gateway.adminUrl], { GATEWAY_API_KEY: keys[holder] });
  }

  function reader(): EvidenceReader {
    return new EvidenceReader(world.gateway.adminUrl, keys.operator);
  }

  /** One agent that calls until told to stop; returns how many calls were answered. */
  async function work(label: string, stop: AbortSignal): Promise<number> {
    const agent = new Agent(world.gateway.url, keys.operator, label);
    let count = 0;
    while (!stop.aborted) {
      const { status, result } = await agent.call("echo", { mark: `${label} ${count++}` });
      expect([status, result?.isError ?? false], label).to.deep.equal([200, false]);
    }
    await agent.hangUp();
    return count;
  }

  /** Runs `during` while 64 agents call; returns how many calls were answered. */
  async function underLoad(prefix: string, during: () => Promise<void>): Promise<number> {
    const stop = new AbortController();
    const working = Promise.all(Array.from({ length: agents }, (_, index) => work(`${prefix}-${index}`, stop.signal)));
    await sleep(200);
    await during().finally(() => stop.abort());
    return (await working).reduce((sum, each) => sum + each, 0);
  }

  it("loses no call of 64 in flight, keeps the chain sound, and lists every key with its sizes", async () => {
    const before = await desk("viewer").keys();
    const made: string[] = [];
    const calls = (await world.upstream.calls()).length;
    const answered = await underLoad("load", async () => {
      for (let each = 0; each < rotations; each++) {
        const { status, body } = await desk("admin").rotate();
        expect([status, body.tenant]).to.deep.equal([200, "acme"]);
        made.push(body.key_id);
        await sleep(100);
      }
    });
    expect((await world.upstream.calls()).length - calls).to.equal(answered);
    const records = await reader().recordsOf((label) => label?.startsWith("load-") ?? false);
    expect(records.map(({ effect }) => effect).toSorted()).to.deep.equal([
      ...Array<string>(answered).fill("dispatched"),
      ...Array<string>(answered).fill("success"),
    ]);
    expect(await reader().verify()).to.include({ ok: true });
    const after = await desk("viewer").keys();
    expect([after.tenant, after.chain]).to.deep.equal(["acme", before.chain]);
    expect(after.keys.map(({ key_id: id }) => id)).to.deep.equal([...before.keys.map(({ key_id: id }) => id), ...made]);
    for (const [index, { to_size: to }] of after.keys.entries()) {
      expect(to, `key ${index} ends where the next begins`).to.equal(after.keys[index + 1]?.from_size ?? null);
    }
  });

  it("lets the old key sign nothing more, from the answer on", async () => {
    const old = (await desk("admin").keys()).keys.at(-1)?.key_id;
    await underLoad("after", async () => {
      const { body } = await desk("admin").rotate();
      const from = (await desk("admin").keys()).keys.at(-1)?.from_size ?? Number.NaN;
      for (let each = 0; each < 20; each++) {
        const { checkpoint, signers } = await desk("admin").checkpoint();
        expect(checkpoint.size).to.be.at.least(from);
        expect(signers).to.deep.equal(checkpoint.size === from ? [old, body.key_id] : [body.key_id]);
        await sleep(10);
      }
    });
  });

  it("leaves a bundle over rotations, and what was recorded before them, to both verifiers under the first key", async () => {
    const agent = new Agent(world.gateway.url, keys.operator, "spanning");
    await agent.call("echo", { turn: 1 });
    expect((await desk("admin").rotate()).status).to.equal(200);
    await agent.call("echo", { turn: 2 });
    await agent.hangUp();
    const first = (await desk("viewer").keys()).keys[0]?.public_key ?? "";
    const sessions = await reader().sessions();
    const verifier = join(repositoryRoot, "sdk", "evidence", "verify.py");
    for (const label of ["spanning", "load-0"]) {
      const session = sessions.find((each) => each.label === label)?.id ?? "";
      const bundle = join(folder, `${label}.jsonl`);
      expect((await gateway("operator", "export", session, "--file", bundle)).code).to.equal(0);
      const ours = await runCommand(["evidence", "verify", bundle, "--key", first]);
      expect(ours.code, ours.stdout).to.equal(10);
      const theirs = await promisify(execFile)("python3", [verifier, bundle, "--key", first]).catch((error) => error);
      expect([theirs.code, JSON.parse(theirs.stdout).verdict]).to.deep.equal([10, "self-attested"]);
    }
  });

  it("is an admin's alone, and leaves other tenants' chains as they are", async () => {
    const [acme, other] = [await desk("admin").keys(), await desk("foreign").keys()];
    const effects = await effectsOf(world, async () => {
      for (const [holder, status] of [
        ["operator", 403],
        ["viewer", 403],
        [null, 401],
      ] as const) {
        expect((await desk(holder).rotate()).status, holder ?? "nobody").to.equal(status);
      }
    });
    expect(effects).to.deep.equal(nothing);
    expect(await desk("admin").keys()).to.deep.equal(acme);
    const { body } = await desk("foreign").rotate();
    expect(body.tenant).to.equal("other");
    expect((await desk("foreign").keys()).keys.map(({ key_id: id }) => id)).to.deep.equal([
      ...other.keys.map(({ key_id: id }) => id),
      body.key_id,
    ]);
    expect(await desk("admin").keys()).to.deep.equal(acme);
  });

  describe("gateway evidence keys, without --data", () => {
    it("lists and rotates the caller's, as the gateway says", async () => {
      const rotated = await gateway("admin", "keys", "rotate", "--json");
      const { tenant, key_id: id } = JSON.parse(rotated.stdout);
      const listed = await gateway("viewer", "keys", "list", "--json");
      expect(JSON.parse(listed.stdout)).to.deep.equal(await desk("viewer").keys());
      expect([tenant, id]).to.deep.equal(["acme", JSON.parse(listed.stdout).keys.at(-1).key_id]);
    });

    it("says why not", async () => {
      expect(await gateway("operator", "keys", "rotate")).to.deep.equal({
        code: 1,
        stdout: "",
        stderr: "gateway: this role may not do that: `operator` lacks `evidence.rotate`\n",
      });
      const half = await gateway("admin", "keys", "rotate", "--tenant", "acme");
      expect([half.code, half.stderr.split("\n")[0]]).to.deep.equal([
        2,
        "error: expected both `--data <folder>` and `--tenant <name>`, or neither",
      ]);
    });
  });
});
