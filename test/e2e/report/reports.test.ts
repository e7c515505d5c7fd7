import { cp, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { recordRange } from "../../../core/evidence/record/key-space.ts";
import { openStore } from "../../../core/store/open.ts";
import { repositoryRoot } from "../../check/source-tree.ts";
import { HeldSite, overHttp } from "../../support/held-site.ts";
import { PostgresServer } from "../../support/postgresql.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { eventually } from "../../support/replica-site.ts";
import { runGateway } from "../../unit/cli/run.ts";

const password = "a-password-of-the-report-database";
const argument = "what-an-agent-sent-0123456789";
const models = "model_gateway: { routes: [{ model: mock, providers: [{ name: mock }] }] }";
const reports = `reports: { url_env: REPORT_DATABASE_URL }\n${models}`;
const tables = [
  "gateway_record",
  "gateway_usage",
  "gateway_feed",
  "gateway_report",
  "gateway_approval",
  "gateway_kill",
];
const counts = ["requests", "input_tokens", "output_tokens", "cached_input_tokens"];

describe("reports in a relational database", () => {
  let server: PostgresServer;
  let upstream: Recorder;
  let folder: string;
  let site: HeldSite;
  let databases = 0;
  let database: string;

  before(async () => {
    [server, upstream] = await Promise.all([PostgresServer.start(), startRecorder()]);
  });

  after(() => Promise.all([server.stop(), upstream.stop()]));

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "reports-"));
    database = `reports${++databases}`;
    const url = (await server.createDatabase(database)).replace("auditor@", `auditor:${password}@`);
    const env = { REPORT_DATABASE_URL: url };
    site = new HeldSite({ upstreams: [overHttp("remote", upstream.url)], more: reports, folder, env });
    await site.start();
  });

  afterEach(async () => {
    await site.stop().catch(() => undefined); // where the test has stopped it
    await rm(folder, { recursive: true, force: true });
  });

  async function rows<T>(query: string): Promise<readonly T[]> {
    const { stdout, stderr } = await server.sql(
      `SELECT coalesce(json_agg(found), '[]') FROM (${query}) AS found`,
      database,
    );
    expect(stderr).to.equal("");
    return JSON.parse(stdout) as T[];
  }

  function has(query: string): () => Promise<boolean> {
    return async () => {
      const { stdout } = await server.sql(`SELECT 1 WHERE EXISTS (${query})`, database);
      return stdout.trim() === "1";
    };
  }

  /** Records that agents leave, over three sessions. */
  async function call(text: string = argument): Promise<void> {
    const answer = await site.call("deep", { text }, "agent", text.slice(0, 8));
    expect(answer.status, JSON.stringify(answer)).to.equal(200);
  }

  /** The records of a tenant in the store of the gateway, which is stopped. */
  async function recordsInStore(tenant: string): Promise<readonly object[]> {
    const store = await openStore({ dir: join(folder, "data"), enabled: true });
    const texts = await store.values(recordRange(tenant)).all();
    await store.close();
    return texts.map((text) => JSON.parse(text) as object);
  }

  function recordsInDatabase(tenant: string): Promise<readonly { record: { seq: number } }[]> {
    return rows(`SELECT record FROM gateway_record WHERE tenant = '${tenant}' ORDER BY seq`);
  }

  /** Waits until the database has what the store has, and compares it record by record. Leaves the gateway running. */
  async function expectSame(tenant: string): Promise<void> {
    await site.stop();
    const length = (await recordsInStore(tenant)).length;
    await site.start();
    await eventually("the records", async () => (await recordsInDatabase(tenant)).length > length);
    await site.stop();
    const [stored, fed] = [await recordsInStore(tenant), await recordsInDatabase(tenant)];
    expect(fed.map(({ record }) => record)).to.deep.equal(stored.slice(0, fed.length));
    expect(fed.length).to.be.greaterThan(length);
    await site.start();
  }

  async function post(path: string, body: object, person: "rita" | "adam" = "rita"): Promise<void> {
    const response = await fetch(`${site.gateway.adminUrl}/admin/v1/${path}`, {
      method: "POST",
      headers: { "x-api-key": site.key(person), "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    expect(response.status, await response.text()).to.be.lessThan(300);
  }

  it("have every record as the chain has it, once, after a restart, a kill -9 and an absence of the database [R1.1-30]", async () => {
    await call();
    await eventually("records", has("SELECT 1 FROM gateway_record WHERE kind = 'outcome'"));
    await site.kill9();
    await site.start();
    await call("two");
    await server.halt("immediate");
    await eventually("the warning", () => site.gateway.stderr().includes("reports_paused"));
    const before = (await upstream.calls()).length;
    for (const text of ["three", "four", "five"]) await call(text);
    expect((await upstream.calls()).length).to.equal(before + 3);
    await server.resume();
    await eventually("the end of the pause", () => site.gateway.stderr().includes("reports_resumed"));
    expect(site.gateway.stderr().match(/reports_paused/g), "one warning").to.have.length(1);
    await call("six");
    await expectSame("acme");
    await expectSame("other");
    expect(
      await rows("SELECT tool, target, decision, effect FROM gateway_record WHERE kind = 'decision' LIMIT 1"),
    ).to.deep.equal([{ tool: "deep", target: "remote", decision: "allow", effect: "dispatched" }]);
    const metrics = await (await fetch(`${site.gateway.metricsUrl}/metrics`)).text();
    expect(metrics).to.match(/^gateway_report_backlog_records \d+$/m);
  });

  it("have the usage that `gateway usage` reports [R1.1-30]", async () => {
    for (const times of [1, 2]) {
      const response = await fetch(`${site.gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "x-api-key": site.key("agent"), "content-type": "application/json" },
        body: JSON.stringify({ model: "mock", messages: [{ role: "user", content: argument }] }),
      });
      expect(response.status).to.equal(200);
      await response.arrayBuffer();
      const key = { GATEWAY_API_KEY: site.key("rita"), GATEWAY_ADMIN_URL: site.gateway.adminUrl };
      const { stdout } = await runGateway(["usage", "--json"], key);
      const { items } = JSON.parse(stdout) as { items: readonly { key_id?: string }[] };
      await eventually("usage", has(`SELECT 1 FROM gateway_usage WHERE requests = ${times}`));
      const names = ["day", "principal", "provider", "model", ...counts];
      const fed = await rows(`SELECT ${names.join(", ")} FROM gateway_usage WHERE tenant = 'acme'`);
      expect(fed).to.deep.equal(items.map(({ key_id: _, ...item }) => item));
    }
  });

  it("show approvals and kills, and answer the questions of the page; no argument, answer or key is in them [R1.1-30]", async () => {
    const used = await site.hold("echo", { text: argument });
    expect((await site.review(used, "approve", "rita", { comment: "fine" })).status).to.equal(200);
    await site.call("echo", { text: argument });
    const denied = await site.hold("echo", { text: "another" });
    expect((await site.review(denied, "deny", "adam", { comment: "not now" })).status).to.equal(200);
    const pending = await site.hold("echo", { text: "a third" });
    const subject = site.principal("other");
    await post("kills", { scope: "principal", subject, note: "an incident" });
    await post("kills/release", { scope: "principal", subject, reason: "it is over" });
    await post("kills", { scope: "tenant", note: "a drill" });
    await eventually("the last kill", has("SELECT 1 FROM gateway_kill WHERE scope = 'tenant'"));

    const columns =
      "id, requested_by, tool, target, state, reviewer, comment, endorsed_by, used_at IS NOT NULL AS is_used";
    const asked = { requested_by: site.principal("agent"), tool: "echo", target: "remote" };
    const open = { reviewer: null, comment: null, endorsed_by: null };
    const [rita, adam] = [site.principal("rita"), site.principal("adam")];
    expect(await rows(`SELECT ${columns} FROM gateway_approval ORDER BY requested_at`)).to.deep.equal([
      { ...asked, id: used, state: "consumed", reviewer: rita, comment: "fine", endorsed_by: [rita], is_used: true },
      { ...asked, ...open, id: denied, state: "denied", reviewer: adam, comment: "not now", is_used: false },
      { ...asked, ...open, id: pending, state: "pending", is_used: false },
    ]);
    expect(
      await rows("SELECT event, scope, subject, ordered_by, reason, note FROM gateway_kill ORDER BY seq"),
    ).to.deep.equal([
      { event: "killed", scope: "principal", subject, ordered_by: rita, reason: "operator", note: "an incident" },
      { event: "released", scope: "principal", subject, ordered_by: rita, reason: "it is over", note: null },
      { event: "killed", scope: "tenant", subject: null, ordered_by: rita, reason: "operator", note: "a drill" },
    ]);
    await expectQuestions();
    await expectNoSecret();
  });

  /** Every query of the page runs; the ones about what happened here find it. */
  async function expectQuestions(): Promise<void> {
    const page = await readFile(join(repositoryRoot, "core/report/README.md"), "utf8");
    const queries = [...page.matchAll(/```sql\n([^`]*);\n```/g)].map(([, query = ""]) => query);
    expect(queries).to.have.length(5);
    const answers: number[] = [];
    for (const query of queries) {
      answers.push((await rows(query.replace("principal = 'id'", `principal = '${site.principal("agent")}'`))).length);
    }
    // Held three times, dispatched once with its outcome, and the session's own; review alone, by one day; two reviewers.
    expect(answers[0]).to.be.greaterThan(4);
    expect(answers.slice(1)).to.deep.equal([1, 2, 3, 0]);
  }

  async function expectNoSecret(): Promise<void> {
    const [received] = (await upstream.calls()).slice(-1);
    expect(received?.body).to.include(argument);
    const hidden = [argument, password, ...(["agent", "rita", "adam", "other"] as const).map((each) => site.key(each))];
    for (const table of tables) {
      const { stdout } = await server.sql(`SELECT * FROM ${table}`, database);
      expect(stdout, table).not.to.equal(table === "gateway_usage" ? " " : "");
      for (const secret of hidden) expect(stdout.includes(secret), `${secret} in ${table}`).to.equal(false);
    }
    expect(site.gateway.stderr()).not.to.include(password);
  }

  it("have what the store has, where it was put back as it was before", async () => {
    await call();
    await site.stop();
    await cp(folder, `${folder}-before`, { recursive: true });
    await site.start();
    for (const text of ["one", "two", "three"]) await call(text);
    await eventually("three calls", has("SELECT 1 FROM gateway_record WHERE kind = 'outcome' HAVING count(*) = 4"));
    await site.stop();
    await rm(folder, { recursive: true });
    await cp(`${folder}-before`, folder, { recursive: true });
    await rm(`${folder}-before`, { recursive: true });
    await site.start();
    await call("another");
    await eventually("a new begin", () => site.gateway.stderr().includes("reports_began_again"));
    await eventually("two calls", has("SELECT 1 FROM gateway_record WHERE kind = 'outcome' HAVING count(*) = 2"));
    await expectSame("acme");
  });

  it("are not connected to where the key is left out", async () => {
    await eventually("a connection", has("SELECT 1 FROM pg_stat_activity WHERE application_name LIKE 'agent-%'"));
    await site.stop();
    await server.sql(`DROP TABLE gateway_report CASCADE`, database);
    await site.start({ more: models });
    await call();
    await site.stop();
    expect(await has("SELECT 1 WHERE to_regclass('gateway_report') IS NOT NULL")()).to.equal(false);
    expect(site.options.env).to.have.property("REPORT_DATABASE_URL");
  });

  it("wait for another version where the tables are of a format that this one does not know", async () => {
    await eventually("tables", has("SELECT 1 FROM gateway_report"));
    await site.stop();
    await server.sql("UPDATE gateway_report SET format = 99", database);
    const [before] = await rows("SELECT count(*) FROM gateway_record");
    await site.start();
    await call();
    await eventually("the warning", () => site.gateway.stderr().includes("expected report tables of format"));
    expect(await rows("SELECT count(*) FROM gateway_record")).to.deep.equal([before]);
  });
});
