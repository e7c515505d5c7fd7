import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { repositoryRoot } from "../check/source-tree.ts";
import { Agent } from "../support/agent.ts";
import { EvidenceReader } from "../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../support/gateway.ts";
import { PostgresServer } from "../support/postgresql.ts";
import { type Recorder, startRecorder } from "../support/recorder.ts";
import { siteConfig, siteFiles, siteKey } from "../support/site.ts";
import { type Finished, runGateway } from "../unit/cli/run.ts";

const script = (name: string): string => join(repositoryRoot, "core/cli/deploy/postgresql", name);

describe("a relational database that records go to", () => {
  let database: PostgresServer;
  let upstream: Recorder;
  let gateway: RunningGateway;
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "records-"));
    [database, upstream] = await Promise.all([PostgresServer.start(), startRecorder()]);
    const more = "model_gateway: { routes: [{ model: mock, providers: [{ name: mock }] }] }";
    gateway = await startGateway({ config: siteConfig({ remoteUrl: upstream.url, more }), files: siteFiles() });
    await read("tables.sql");
    await read("tables.sql"); // for who is not sure whether it was done
  });

  after(async () => {
    await Promise.all([gateway.stop(), upstream.stop(), database.stop()]);
    await rm(folder, { recursive: true });
  });

  async function read(name: string, input?: string, ...more: readonly string[]): Promise<void> {
    const { code, stderr } = await database.psql([...more, "--file", script(name)], input);
    expect([code, stderr], name).to.deep.equal([0, ""]);
  }

  async function rows<T>(query: string): Promise<T> {
    const { stdout, stderr } = await database.sql(`SELECT json_agg(found) FROM (${query}) AS found`);
    expect(stderr).to.equal("");
    return JSON.parse(stdout) as T;
  }

  function cli(...args: readonly string[]): Promise<Finished> {
    return runGateway([...args], { GATEWAY_API_KEY: siteKey, GATEWAY_ADMIN_URL: gateway.adminUrl });
  }

  async function call(text: string): Promise<void> {
    const agent = new Agent(gateway.url, siteKey, "work");
    await agent.call("echo", { text }).finally(() => agent.hangUp());
  }

  async function load(name: string): Promise<void> {
    const [session] = await new EvidenceReader(gateway.adminUrl, siteKey).sessions();
    const { code } = await cli("evidence", "export", session?.id ?? "", "--file", join(folder, name));
    expect(code).to.equal(0);
    await read("load-evidence.sql", await readFile(join(folder, name), "utf8"));
  }

  it("has the records of a session as the chain has them, each once however often they are loaded [R1.1-30]", async () => {
    await call('it\'s "one"\\ \t\u{1f600}');
    await load("first");
    await call("two");
    await load("second");
    const [session] = await new EvidenceReader(gateway.adminUrl, siteKey).sessions();
    const records = await new EvidenceReader(gateway.adminUrl, siteKey).records(session?.id ?? "");
    const kept = await rows<{ record: object }[]>(
      "SELECT record FROM gateway_record WHERE session IS NOT NULL ORDER BY seq",
    );
    expect(kept.map(({ record }) => record)).to.deep.equal(records);
    expect(
      await rows("SELECT tool, decision, effect FROM gateway_record WHERE kind = 'decision' ORDER BY seq"),
    ).to.deep.equal(
      records
        .filter(({ kind }) => kind === "decision")
        .map(({ action, evaluation, effect }) => ({ tool: action.tool, decision: evaluation?.decision, effect })),
    );
  });

  it("has what was used of models, a day's counts in the place of earlier ones [R1.1-30]", async () => {
    for (const times of [1, 2]) {
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "x-api-key": siteKey, "content-type": "application/json" },
        body: JSON.stringify({ model: "mock", messages: [{ role: "user", content: "How is the weather?" }] }),
      });
      expect(response.status).to.equal(200);
      await response.arrayBuffer();
      const { stdout } = await cli("usage", "--json");
      await read("load-usage.sql", stdout, "--set=tenant=acme");
      const { totals } = JSON.parse(stdout) as { totals: object };
      expect(await rows(sum), `after ${times}`).to.deep.equal([totals]);
      expect(totals).to.include({ requests: times });
    }
    expect(await rows("SELECT tenant, provider, model FROM gateway_usage")).to.deep.equal([
      { tenant: "acme", provider: "mock", model: "mock" },
    ]);
  });

  it("takes nothing of what was cut off on the way", async () => {
    const whole = await readFile(join(folder, "second"), "utf8");
    await database.sql("TRUNCATE gateway_record");
    for (const cut of [whole.slice(0, -20), whole.slice(20)]) {
      const { code, stderr } = await database.psql(["--file", script("load-evidence.sql")], cut);
      expect(code).to.equal(3);
      expect(stderr).to.include("invalid input syntax for type json");
      expect(await rows("SELECT count(*) FROM gateway_record")).to.deep.equal([{ count: 0 }]);
    }
  });
});

const sum = `SELECT ${["requests", "input_tokens", "output_tokens", "cached_input_tokens"]
  .map((name) => `sum(${name}) AS ${name}`)
  .join(", ")} FROM gateway_usage`;
