import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { expect } from "chai";
import { evidenceRules } from "../../../core/compose/evidence-rules.ts";
import { verifyBundle } from "../../../core/evidence/bundle/verify.ts";
import { repositoryRoot } from "../../check/source-tree.ts";
import { Agent } from "../../support/agent.ts";
import { runCommand } from "../../support/command-host.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import {
  agentPolicies,
  cedarAgentFiles,
  opaServerFiles,
  type StandIn,
  standInCedarAgent,
  standInOpa,
} from "../../support/policy-server.ts";
import { scrape } from "../../support/scrape.ts";
import { writeEngine } from "../../support/signed-engine.ts";
import { readCalls, siteConfig, siteKey } from "../../support/site.ts";
import { startRefusal } from "../../support/start-check.ts";
import { makeSigner, TrustWorld, trustEntry } from "../../support/trust-world.ts";
import { exportVerified } from "../../support/verified-bundle.ts";
import { send } from "../../support/wire.ts";

const alice = makeSigner();
const deadline = "deadline_ms: 4000\n";

describe("a strict gateway with policies on an OPA server and a cedar-agent", () => {
  let world: TrustWorld;
  let opa: StandIn;
  let cedar: StandIn;
  let gateway: RunningGateway;
  let agent: Agent;
  let booked = 0;

  before(async () => {
    opa = await standInOpa().start();
    cedar = await (await standInCedarAgent(agentPolicies)).start();
    world = await TrustWorld.make();
    await world.write("trust.yaml", `all_of: [${trustEntry("alice", alice)}]\n`);
    await world.sign([alice]);
    const manifest = `${opaServerFiles()["engine.yaml"]}${deadline}`;
    await writeEngine(world, "notes", opaServerFiles({ "engine.yaml": manifest }), alice);
    await writeEngine(world, "agents", cedarAgentFiles(), alice);
    gateway = await startGateway({ folder: world.folder, config: configOf(), env: { OPA_TOKEN: "s3cret-t0ken" } });
    agent = new Agent(gateway.url, siteKey);
  });

  after(async () => {
    await agent?.hangUp();
    await gateway?.stop();
    await opa?.stop();
    await cedar?.stop();
    await world?.remove();
  });

  function configOf(mode = "enforce"): string {
    const extensions = "extensions: { strict: true, trust_policy: trust.yaml }\ndata_dir: data\n";
    const engines = [
      `{ type: opa-server, path: engines/notes, url: "${opa.url}", token_env: OPA_TOKEN, mode: ${mode} }`,
      `{ type: cedar-agent, path: engines/agents, url: "${cedar.url}" }`,
    ];
    return siteConfig({ more: extensions, localLog: world.path("local.jsonl") })
      .replace("packs/open }] }", `packs/open }], deadline_ms: 30000, engines: [${engines.join(", ")}] }`)
      .replace(
        "connection: shared }]",
        "connection: shared, capabilities: { write_note: write, delete_note: delete, list_notes: read } }]",
      );
  }

  const answerOf = async (name: string, args: object): Promise<string> =>
    JSON.stringify((await agent.call(name, args)).result);
  const write = (text: string): Promise<string> => answerOf("write_note", { title: "a", text });

  /** Returns the number of calls that reached the upstream since it was asked last. */
  async function newCalls(): Promise<number> {
    const all = (await readCalls(world.path("local.jsonl"))).length;
    const fresh = all - booked;
    booked = all;
    return fresh;
  }

  async function failures(engine: string): Promise<Readonly<Record<string, number>>> {
    const series = await scrape(gateway.metricsUrl);
    const pattern = new RegExp(`^gateway_engine_failures_total\\{engine="${engine}",reason="(\\w+)"\\}$`);
    const found = [...series].map(([name, value]) => [pattern.exec(name)?.[1], value] as const);
    return Object.fromEntries(found.filter(([reason]) => reason !== undefined));
  }

  const ask = async (path: string, body?: object): Promise<string> => {
    const { status, body: text } = await send(gateway.adminUrl, {
      ...{ method: body === undefined ? "GET" : "POST", target: `/admin/v1/${path}` },
      headers: [
        ["x-api-key", siteKey],
        ["content-type", "application/json"],
      ],
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    expect(status, text).to.equal(200);
    return text;
  };

  it("runs what both permit, and nothing that one of them blocks", async () => {
    expect(await write("plain")).to.include("wrote");
    expect(await newCalls()).to.equal(1);
    expect(opa.requests.at(-1)).to.include({ authorization: "Bearer s3cret-t0ken" });
    expect(cedar.requests.at(-1)?.body.principal).to.equal(`Agent::"acme/ci"`);
    expect(await write("a secret")).to.include("secrets stay here");
    expect(await write("a refusal")).to.include("no policy of `notes` permits this");
    expect(await write("my secret")).to.include("secrets stay here");
    expect(await answerOf("list_notes", {})).to.include("declares no action `read`");
    expect(await newCalls()).to.equal(0);
  });

  it("runs nothing for which there is no answer, and counts why", async () => {
    for (const text of ["a hole", "a number", "a half", "a flood", "a zip", "a conflict", "a redirect"])
      expect(await write(text), text).to.include("could not answer");
    expect(await answerOf("write_note", { count: 3 })).to.include("could not answer");
    expect(await answerOf("write_note", { title: "a", count: "3" })).to.include("could not answer");
    expect(await write("a wait")).to.include("could not answer");
    expect(await newCalls()).to.equal(0);
    expect(await failures("opa-server")).to.deep.equal({ answer: 5, status: 2, timeout: 1 });
    expect(await failures("cedar-agent")).to.deep.equal({ evaluation: 1, input: 1 });
    expect(await write("plain")).to.include("wrote");
    expect(await newCalls()).to.equal(1);
  });

  it("leaves evidence with the digest of each answer, which both verifiers check", async () => {
    const labelled = new Agent(gateway.url, siteKey, "digests");
    await labelled.call("write_note", { title: "a", text: "a secret" });
    const [opaDigest, cedarDigest] = [opa.digests.at(-1), cedar.digests.at(-1)];
    await labelled.call("write_note", { title: "a", text: "a hole" });
    const holeDigest = opa.digests.at(-1);
    await labelled.call("write_note", { title: "a", text: "a flood" });
    await labelled.hangUp();
    const { id = "" } =
      (await new EvidenceReader(gateway.adminUrl, siteKey).sessions()).find(({ label }) => label === "digests") ?? {};
    const records = await exportVerified(gateway.adminUrl, siteKey, id);
    const judged = records.flatMap((record) =>
      "evaluation" in record && record.evaluation ? [record.evaluation] : [],
    );
    const named = (at: number, name: string): object | undefined =>
      judged[at]?.policies.find((each) => each.name === name);
    expect(named(0, "notes")).to.include({ answer_digest: opaDigest, replayable: false, verdict: "block" });
    expect(named(0, "agents")).to.include({ answer_digest: cedarDigest, replayable: false, signer: "alice" });
    expect(named(1, "notes")).to.include({ answer_digest: holeDigest, replayable: false, verdict: "block" });
    expect(named(2, "notes")).to.include({ replayable: false, verdict: "block" });
    expect(named(2, "notes")).not.to.have.property("answer_digest");
    expect(named(0, "open")).not.to.have.any.keys("answer_digest", "replayable");
    const report = await ask(`evidence/sessions/${id}/report?format=md`);
    expect(report.replaceAll("\\", "")).to.include(`not replayable: answer ${opaDigest})`);
    await expectTamperFound(id, String(opaDigest));
  });

  async function expectTamperFound(session: string, digest: string): Promise<void> {
    const bundle = await ask(`evidence/sessions/${session}/export`);
    const other = `sha256:${"0".repeat(64)}`;
    expect(bundle).to.include(digest);
    const forged = Buffer.from(bundle.replace(digest, other));
    const { verdict } = verifyBundle(forged, { keys: [], rules: evidenceRules, nowMs: Date.now() });
    expect(verdict).to.equal("invalid");
    await writeFile(world.path("forged.jsonl"), forged);
    const verifier = `${repositoryRoot}/sdk/evidence/verify.py`;
    const { stdout } = await promisify(execFile)("python3", [verifier, world.path("forged.jsonl")]).catch(
      (error: { stdout: string }) => error,
    );
    expect(JSON.parse(stdout)).to.include({ verdict: "invalid" });
  }

  it("says in explanations and simulations that another server decided", async () => {
    const action = { tool: "write_note", target: "local", capability: "write", arguments: { text: "a secret" } };
    const { evaluation } = JSON.parse(await ask("test-action", { ...action, explain: true }));
    expect(evaluation).to.deep.include({ decision: "block", rules: ["notes.no-secret", "agents.no-secret"] });
    const { verdicts, explanation } = evaluation;
    expect(verdicts.map(({ replayable }: { replayable?: boolean }) => replayable)).to.include(false);
    expect(verdicts.at(-1)).to.include({ replayable: false, answer_digest: cedar.digests.at(-1) });
    expect(explanation.why).to.equal("`notes.no-secret` decides block (engine notes 1.0.0)");
    expect(explanation.notes.join()).to.include("Another server decides for engine notes 1.0.0 (answer sha256:");
    await world.write("actions.yaml", `actions: [${JSON.stringify(action)}]\n`);
    const asked = ["simulate", world.path("actions.yaml"), "--admin", gateway.adminUrl];
    const { stdout } = await runCommand(asked, { GATEWAY_API_KEY: siteKey });
    expect(stdout).to.include("another server took part: not replayable");
  });

  it("ends the request of an agent that goes away", async () => {
    const abandoned = opa.abandoned;
    const asked = opa.requests.length;
    const abort = new AbortController();
    const gone = fetch(`${gateway.url}/v1/actions/evaluate`, {
      method: "POST",
      signal: abort.signal,
      headers: { "x-api-key": siteKey, "content-type": "application/json" },
      body: JSON.stringify({ protocol: "sql", tool: "db", target: "db", arguments: { statement: "a wait" } }),
    }).catch(() => "gone");
    await opa.until(() => opa.requests.length > asked);
    abort.abort();
    expect(await gone).to.equal("gone");
    await opa.until(() => opa.abandoned > abandoned);
    while ((await failures("opa-server")).cancelled !== 1) await sleep(20);
  });

  it("blocks while a server is down, soon without asking it, and recovers by itself", async () => {
    await cedar.stop();
    for (let round = 0; round < 5; round++) expect(await write("plain")).to.include("could not answer");
    while ((await failures("cedar-agent")).circuit_open === undefined)
      expect(await write("plain")).to.include("could not answer");
    expect(await newCalls()).to.equal(0);
    expect(gateway.stdout() + gateway.stderr()).to.include("engine_circuit_opened");
    await cedar.start();
    while (!(await write("plain")).includes("wrote")) await sleep(50);
    expect(await newCalls()).to.equal(1);
    expect(gateway.stdout() + gateway.stderr()).to.include("engine_circuit_closed");
  });

  it("takes a newly signed folder, and asks it in shadow mode without effect, without a restart", async () => {
    const manifest = `${opaServerFiles()["engine.yaml"]}${deadline}entrypoint: other/rule\nsequence: 1\n`;
    await writeEngine(world, "notes", opaServerFiles({ "engine.yaml": manifest }), alice);
    while (!opa.requests.some(({ path }) => path === "/v1/data/other/rule")) {
      await write("plain");
      await sleep(50);
    }
    expect(await write("plain")).to.include("could not answer");
    await newCalls();
    await world.write("gateway.yaml", `${configOf("shadow")}\n`);
    while (!(await write("plain")).includes("wrote")) await sleep(50);
    expect(opa.requests.at(-1)).to.include({ path: "/v1/data/other/rule" });
    const [decision] = (await new EvidenceReader(gateway.adminUrl, siteKey).recordsOf())
      .filter(({ kind }) => kind === "decision")
      .toReversed();
    expect(decision?.evaluation?.shadow[0]).to.include({ name: "notes", replayable: false, verdict: "block" });
  });

  it("does not start with a folder that is altered, and `config check` says why", async () => {
    await world.write("engines/agents/schema.cedarschema", "entity Agent, Tool;\n");
    const checked = await runCommand(["config", "check", world.path("gateway.yaml")], { OPA_TOKEN: "s3cret-t0ken" });
    expect(checked.code).to.equal(1);
    expect(checked.stdout).to.match(/gateway\.yaml[^\n]*: policy\.engines: extension refused: [\s\S]*file_altered/);
    const config = configOf()
      .replace("data_dir: data", "data_dir: data-of-another")
      .replace(", token_env: OPA_TOKEN", "");
    expect(await startRefusal(world.folder, config)).to.include("file_altered");
  });
});
