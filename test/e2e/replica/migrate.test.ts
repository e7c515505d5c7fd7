import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { Agent } from "../../support/agent.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { freePort } from "../../support/free-port.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { PostgresServer } from "../../support/postgresql.ts";
import { type Ran, runProgram } from "../../support/program.ts";
import { replicaStore } from "../../support/replica-store.ts";
import { roundsOf } from "../../support/rounds.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";
import { storedKey, storedSecret, unpackStoredState } from "../../support/stored-state.ts";
import { exportVerified } from "../../support/verified-bundle.ts";

const program = fileURLToPath(new URL("../../../core/cli/main.js", import.meta.url));
/** Each leaves two records. */
const calls = roundsOf(400, 150_000);
const interruptions = roundsOf(3, 10);
const agents = 16;

describe("gateway store migrate", () => {
  let postgres: PostgresServer;
  let folder: string;
  let env: Readonly<Record<string, string>>;
  let config: string;
  let digest: string;
  let sessionId: string;
  let bundle: Buffer;

  before(async function () {
    this.timeout(1_800_000);
    postgres = await PostgresServer.start();
    folder = await mkdtemp(join(tmpdir(), "migrate-"));
    const text = siteConfig({ localLog: join(folder, "calls.jsonl") });
    const gateway = await startGateway({ config: text, files: siteFiles(), folder });
    await makeCalls(gateway);
    ({ id: sessionId, bundle } = await exportNewest(gateway));
    await gateway.stop();
    await cp(join(folder, "data"), join(folder, "before"), { recursive: true });
    const url = await postgres.createDatabase("gateway");
    const secret = randomBytes(32).toString("hex");
    const store = replicaStore({ url, secret, port: await freePort(), leaseMs: 2_000 });
    ({ env } = store);
    config = `${text}\n${store.config}`;
    await writeFile(join(folder, "gateway.yaml"), config);
  });

  after(async () => {
    await postgres.stop();
    await rm(folder, { recursive: true });
  });

  it("is named by a replica that finds a folder with a store, and an empty database", async () => {
    const { code, stderr } = await gatewayCommand("serve", "--config", "gateway.yaml");
    expect(code).to.equal(1);
    expect(stderr).to.contain("`gateway store migrate` takes it into the database");
  });

  it("goes on where it was killed", async function () {
    this.timeout(1_800_000);
    const wholeMs = await durationOfCopy();
    for (let at = 1; at <= interruptions; at++) {
      const child = startCommand("store", "migrate", "--config", "gateway.yaml", "--to", "postgres");
      const killing = setTimeout(() => child.kill("SIGKILL"), (wholeMs * at) / (interruptions + 1));
      await once(child, "exit");
      clearTimeout(killing);
      if (child.signalCode === null) break; // it was done before
    }
    const ran = await gatewayCommand("store", "migrate", "--config", "gateway.yaml", "--to", "postgres", "--json");
    // The last one that was interrupted may have been done but for its words.
    if (ran.code !== 0) expect(ran.stderr).to.contain("the data folder is a replica's copy");
    const back = await migrate("leveldb");
    ({ digest } = back);
    expect(back.entries).to.be.above(calls);
  });

  it("takes every byte there and back", async () => {
    await postgres.sql("DROP DATABASE gateway");
    await postgres.createDatabase("gateway");
    expect((await migrate("postgres")).digest).to.equal(digest);
    await rm(join(folder, "data", "state"), { recursive: true });
    await rm(join(folder, "data", "keys"), { recursive: true });
    await rm(join(folder, "data", "high-water"));
    // From the database alone: a folder of nothing gets entries, marks and keys.
    expect((await migrate("leveldb")).digest).to.equal(digest);
    const keysOf = async (name: string) => (await readdir(join(folder, name, "keys"), { recursive: true })).sort();
    expect(await keysOf("data")).to.deep.equal(await keysOf("before"));
    const { code, stdout } = await gatewayCommand("evidence", "verify", "--data", "data", "--json");
    expect(JSON.parse(stdout).chains[0]).to.include({ tenant: "acme", first_bad: null });
    expect(code).to.equal(10);
  });

  it("leaves a database from which no replica serves, and a folder that does", async () => {
    const { code, stderr } = await gatewayCommand("serve", "--config", "gateway.yaml");
    expect(code).to.equal(1);
    expect(stderr).to.match(/the state of a gateway without a database|has left this database/);
    const gateway = await startGateway({ config: siteConfig({ localLog: join(folder, "calls.jsonl") }), folder });
    const reader = new EvidenceReader(gateway.adminUrl, siteKey);
    expect(await reader.verify()).to.include({ ok: true });
    const again = await exportSession(gateway, sessionId);
    await exportVerified(gateway.adminUrl, siteKey, sessionId);
    await gateway.stop();
    await writeFile(join(folder, "gateway.yaml"), config);
    // What the bundle showed it shows again, byte for byte; beside it the record of the new start.
    expect(recordsIn(bundle)).to.have.length.above(calls / agents);
    expect(recordsIn(again)).to.include.members(recordsIn(bundle));
  });

  it("refuses a database that is used, a folder that is a copy, and one that a replica serves from", async () => {
    const used = await gatewayCommand("store", "migrate", "--config", "gateway.yaml", "--to", "postgres");
    expect([used.code, used.stderr]).to.satisfy(
      ([code, text]: [number, string]) => code === 1 && /expected an empty database/.test(text),
    );
    await postgres.sql("DROP DATABASE gateway");
    await postgres.createDatabase("gateway");
    await migrate("postgres");
    const copy = await gatewayCommand("store", "migrate", "--config", "gateway.yaml", "--to", "postgres");
    expect(copy.stderr).to.contain("the data folder is a replica's copy of a database");
    const offline = await gatewayCommand("evidence", "verify", "--data", "data");
    expect(offline.stderr).to.contain("the data folder is a replica's copy of a database");
    const replica = await startGateway({ config, files: siteFiles(), folder, env, ownProcess: true });
    try {
      await writeFile(join(folder, "other.yaml"), `data_dir: elsewhere\n${config}`);
      const busy = await gatewayCommand("store", "migrate", "--config", "other.yaml", "--to", "leveldb");
      expect(busy.stderr).to.match(/the replica at `127\.0\.0\.1:\d+` has the lease/);
    } finally {
      await replica.stop();
    }
  });

  async function migrate(to: "postgres" | "leveldb"): Promise<{ readonly entries: number; readonly digest: string }> {
    const ran = await gatewayCommand("store", "migrate", "--config", "gateway.yaml", "--to", to, "--json");
    expect(ran.code, ran.stderr).to.equal(0);
    return JSON.parse(ran.stdout);
  }

  /** The time that the whole takes, into a database that is dropped again. */
  async function durationOfCopy(): Promise<number> {
    const startMs = performance.now();
    await migrate("postgres");
    const tookMs = performance.now() - startMs;
    await migrate("leveldb");
    await postgres.sql("DROP DATABASE gateway");
    await postgres.createDatabase("gateway");
    return tookMs;
  }

  function startCommand(...args: readonly string[]): ChildProcess {
    return spawn(process.execPath, [program, ...args], {
      cwd: folder,
      env: { ...process.env, ...env },
      stdio: "ignore",
    });
  }

  function gatewayCommand(...args: readonly string[]): Promise<Ran> {
    const inFolder = 'cd "$1" && shift && exec "$@"';
    return runProgram("sh", ["-c", inFolder, "sh", folder, process.execPath, program, ...args], "", env);
  }
});

describe("gateway store migrate, of a folder of an earlier store format", () => {
  it("takes it as it is; the first replica that serves moves its records in the database", async () => {
    const postgres = await PostgresServer.start();
    const folder = await unpackStoredState("packed");
    try {
      const url = await postgres.createDatabase("gateway");
      const secret = randomBytes(32).toString("hex");
      const { config, env } = replicaStore({ url, secret, port: await freePort(), leaseMs: 2_000 });
      const own = (await readFile(join(folder, "gateway.yaml"), "utf8")).replace(/^data_dir:.*\n/gm, "");
      const text = `${own}\ndata_dir: data\n${config}\n`;
      const variables = { ...env, HOOK: storedSecret };
      await writeFile(join(folder, "gateway.yaml"), text);
      const args = ["store", "migrate", "--config", join(folder, "gateway.yaml"), "--to", "postgres"];
      const { code, stderr } = await runProgram(process.execPath, [program, ...args], "", variables);
      expect(code, stderr).to.equal(0);
      const recordsAt = async (prefix: string): Promise<number> => {
        const where = `value IS NOT NULL AND encode(key, 'escape') LIKE '${prefix}%'`;
        return Number((await postgres.sql(`SELECT count(*) FROM gateway_entry WHERE ${where}`, "gateway")).stdout);
      };
      const before = await recordsAt("acme/record/");
      expect(before).to.be.above(0);
      const replica = await startGateway({ config: text, folder, env: variables, ownProcess: true });
      try {
        expect(await new EvidenceReader(replica.adminUrl, storedKey("rita")).verify()).to.include({ ok: true });
        expect(await recordsAt("acme/record/")).to.equal(0);
        expect(await recordsAt("{record}/acme/")).to.be.at.least(before);
      } finally {
        await replica.stop();
      }
    } finally {
      await postgres.stop();
      await rm(folder, { recursive: true });
    }
  });
});

async function makeCalls({ url }: RunningGateway): Promise<void> {
  const work = Array.from({ length: agents }, async (_, index) => {
    const agent = new Agent(url, siteKey, `session-${index}`);
    for (let made = index; made < calls; made += agents)
      await agent.call("write_note", { title: `t${made % 50}`, text: "x" });
    await agent.hangUp();
  });
  await Promise.all(work);
}

async function exportNewest(gateway: RunningGateway): Promise<{ readonly id: string; readonly bundle: Buffer }> {
  const [newest] = await new EvidenceReader(gateway.adminUrl, siteKey).sessions();
  const id = newest?.id ?? "";
  return { id, bundle: await exportSession(gateway, id) };
}

async function exportSession({ adminUrl }: RunningGateway, id: string): Promise<Buffer> {
  const response = await fetch(`${adminUrl}/admin/v1/evidence/sessions/${id}/export`, {
    headers: { "x-api-key": siteKey },
  });
  expect(response.status).to.equal(200);
  return Buffer.from(await response.arrayBuffer());
}

/** The records of a bundle with their fields, without their proofs, which grow with the chain. */
function recordsIn(bundle: Buffer): readonly string[] {
  const lines = bundle.toString().trim().split("\n").slice(1, -1);
  return lines.map((line) => {
    const { proof: _, ...entry } = JSON.parse(line);
    return JSON.stringify(entry);
  });
}
