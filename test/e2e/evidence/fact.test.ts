import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { canonicalJson } from "../../../core/action/canonical-json.ts";
import type { JsonObject } from "../../../core/action/json.ts";
import { SigningKey } from "../../../core/action/signing-key.ts";
import { sealBundle } from "../../../core/evidence/bundle/build.ts";
import { type BundledEntry, readBundle } from "../../../core/evidence/bundle/bundle-line.ts";
import type { ActionRecord } from "../../../core/evidence/record/record.ts";
import type { SessionReport } from "../../../core/evidence/report/model.ts";
import { repositoryRoot } from "../../check/source-tree.ts";
import { Agent } from "../../support/agent.ts";
import { CommandHost } from "../../support/command-host.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { readCalls, siteConfig, siteFiles, siteKey } from "../../support/site.ts";

const statement = "delete from payroll_secret";
const command = "rm -rf /srv/hidden-place";
const statedFacts = "connection: shared, facts: { write_note: { sql: text, dialect: postgresql } } }";

describe("facts in evidence", () => {
  let folder: string;
  let gateway: RunningGateway;
  let reader: EvidenceReader;
  let commands: CommandHost;
  let publicKey: string;

  before(async () => {
    commands = new CommandHost();
    folder = await mkdtemp(join(tmpdir(), "gateway-fact-evidence-"));
    const site = siteConfig({ localLog: join(folder, "calls.jsonl"), role: "admin" });
    gateway = await startGateway({
      alone: true,
      folder,
      config: site.replace("connection: shared }", statedFacts),
      files: siteFiles(),
    });
    reader = new EvidenceReader(gateway.adminUrl, siteKey);
    const { body } = await ask("/admin/v1/evidence/keys");
    publicKey = (JSON.parse(body) as { keys: [{ public_key: string }] }).keys[0].public_key;
  });

  after(async () => {
    await commands.stop();
    await gateway.stop();
    await rm(folder, { recursive: true });
  });

  async function ask(
    path: string,
    base = gateway.adminUrl,
  ): Promise<{ readonly status: number; readonly body: string }> {
    const response = await fetch(base + path, { headers: { "x-api-key": siteKey } });
    return { status: response.status, body: await response.text() };
  }

  /** Calls the tool whose argument is stated as SQL, and one that has no statement. */
  async function call(label: string): Promise<void> {
    const agent = new Agent(gateway.url, siteKey, label);
    try {
      await agent.call("write_note", { title: "a", text: statement });
      await agent.call("read_note", { title: "none" });
    } finally {
      await agent.hangUp();
    }
  }

  async function asksToRun(label: string): Promise<JsonObject> {
    const action = { protocol: "shell", tool: "sh", target: "builder", arguments: { command } };
    const headers = { "x-api-key": siteKey, "content-type": "application/json", "x-gateway-session-id": label };
    const response = await fetch(`${gateway.url}/v1/actions/evaluate`, {
      method: "POST",
      headers,
      body: JSON.stringify(action),
    });
    return (await response.json()) as JsonObject;
  }

  async function sessionOf(label: string): Promise<string> {
    return (await reader.sessions()).find((each) => each.label === label)?.id ?? "";
  }

  async function decisionsOf(label: string): Promise<readonly ActionRecord[]> {
    return (await reader.recordsOf((each) => each === label)).filter(({ kind }) => kind === "decision");
  }

  async function exported(label: string, ...args: string[]): Promise<string> {
    const path = join(folder, `${label}-${args.length}.jsonl`);
    const session = await sessionOf(label);
    const own = ["evidence", "export", session, "--file", path, "--admin", gateway.adminUrl, ...args];
    const { code, stderr } = await commands.run(own, { GATEWAY_API_KEY: siteKey });
    expect(code, stderr).to.equal(0);
    return path;
  }

  /** What both verifiers say, once they say the same. */
  async function verdictOf(bundle: string): Promise<JsonObject> {
    const ours = await commands.run(["evidence", "verify", bundle, "--key", publicKey, "--json"]);
    const theirs = await python(bundle, publicKey);
    const { verdict, exit, first_bad: bad } = JSON.parse(theirs.stdout) as JsonObject;
    expect(JSON.parse(ours.stdout)).to.include({ verdict, exit }).and.to.deep.include({ first_bad: bad });
    expect([ours.code, theirs.code]).to.deep.equal([exit, exit]);
    return { verdict: verdict ?? null, first_bad: bad ?? null };
  }

  async function decisionIn(bundle: string): Promise<BundledEntry> {
    const entry = readBundle(await readFile(bundle)).entries.find(({ record }) => record.kind === "decision");
    if (entry === undefined) throw new Error("expected a decision in the bundle");
    return entry;
  }

  it("are committed to by the decision and its outcome, which say in clear the effect alone", async () => {
    await call("committed");
    const records = await reader.recordsOf((label) => label === "committed");
    const [decision, outcome, ...rest] = records.toSorted((a, b) => a.seq - b.seq);
    expect(decision?.action.facts?.effect).to.equal("delete");
    expect(decision?.action.facts?.digest).to.match(/^sha256:[0-9a-f]{64}$/);
    expect(outcome?.action.facts).to.deep.equal(decision?.action.facts);
    expect(rest.map(({ action }) => [action.tool, "facts" in action])).to.deep.equal([
      ["read_note", false],
      ["read_note", false],
    ]);
    expect((await readCalls(join(folder, "calls.jsonl"))).length).to.equal(2);
  });

  it("are committed to for a command line that an agent asks about", async () => {
    await asksToRun("asked");
    const [decision] = await decisionsOf("asked");
    expect([decision?.action.protocol, decision?.action.facts?.effect]).to.deep.equal(["shell", "delete"]);
    const bundle = await exported("asked");
    expect((await decisionIn(bundle)).facts?.join()).to.include("/srv/hidden-place");
    expect(await verdictOf(bundle)).to.deep.equal({ verdict: "self-attested", first_bad: null });
  });

  it("are disclosed by the bundle beside the arguments, and both verifiers agree", async () => {
    await call("disclosed");
    const bundle = await exported("disclosed");
    const { facts = [] } = await decisionIn(bundle);
    const fields = facts.map((text) => JSON.parse(text) as [string, string, string, JsonObject]);
    expect(fields.map(([, , name]) => name).sort()).to.deep.equal(["hosts", "more", "paths", "sql"]);
    const sql = fields.find(([, , name]) => name === "sql")?.[3];
    expect(JSON.stringify(sql)).to.include("payroll_secret");
    expect(await verdictOf(bundle)).to.deep.equal({ verdict: "self-attested", first_bad: null });
  });

  it("are refused by both where one was changed, though the bundle was sealed anew", async () => {
    await call("changed");
    const bundle = await exported("changed");
    const { seq } = (await decisionIn(bundle)).record;
    const lines = String(await readFile(bundle))
      .split("\n")
      .slice(0, -2);
    const forged = lines.map((line) => {
      if (!line.includes(`"seq":${seq},`)) return line;
      const entry = JSON.parse(line) as { facts: string[] };
      return canonicalJson({ ...entry, facts: entry.facts.map((text) => text.replace("payroll_secret", "drafts")) });
    });
    const path = join(folder, "forged.jsonl");
    await writeFile(path, sealBundle(forged, await signingKey(folder)));
    expect(await verdictOf(path)).to.deep.equal({
      verdict: "invalid",
      first_bad: { reason: "bad_disclosure", file: "records", seq },
    });
  });

  it("go with an argument that an export withholds, and leave the proof valid", async () => {
    await call("withheld");
    const [decision] = await decisionsOf("withheld");
    const bundle = await exported("withheld", "--redact", `${decision?.seq}.arguments.text`);
    expect(String(await readFile(bundle))).to.not.include("payroll_secret");
    const one = await exported(
      "withheld",
      "--redact",
      `${decision?.seq}.facts.sql`,
      "--redact",
      `${decision?.seq}.facts.more`,
    );
    const { facts = [] } = await decisionIn(one);
    expect(facts.filter((text) => /^[0-9a-f]{64}$/.test(text))).to.have.length(2);
    for (const path of [bundle, one]) {
      expect(await verdictOf(path)).to.deep.equal({ verdict: "self-attested", first_bad: null });
    }
  });

  it("are erased with an argument, and leave the proof valid", async () => {
    await call("erased");
    const session = await sessionOf("erased");
    const args = ["evidence", "erase", "--session", session, "--field", "arguments.text", "--reason", "asked"];
    const erased = await commands.run([...args, "--admin", gateway.adminUrl], { GATEWAY_API_KEY: siteKey });
    expect(erased.stdout, erased.stderr).to.equal("acme: erased 5 fields in 1 records\n");
    const bundle = await exported("erased");
    expect(String(await readFile(bundle))).to.not.include("payroll_secret");
    expect(await verdictOf(bundle)).to.deep.equal({ verdict: "self-attested", first_bad: null });
    expect(await reader.verify()).to.include({ ok: true });
  });

  it("are said in the report as reviewers see them, and by their effect where they are withheld", async () => {
    await call("reported");
    const path = `/admin/v1/evidence/sessions/${await sessionOf("reported")}/report`;
    const [decision] = await decisionsOf("reported");
    const report = JSON.parse((await ask(`${path}?format=json`)).body) as SessionReport;
    expect(report.actions.map(({ facts }) => facts?.does)).to.deep.equal([
      ["deletes from payroll_secret, every row"],
      undefined,
    ]);
    const line = "Does: deletes from payroll_secret, every row (effect delete)";
    expect((await ask(`${path}?format=html`)).body).to.include(`<p>${line}</p>`);
    expect((await ask(`${path}?format=md`)).body.replaceAll("\\", "")).to.include(`- ${line}\n`);
    const withheld = await ask(`${path}?format=html&redact=${decision?.seq}.arguments.text`);
    expect(withheld.body).to.include("<p>Effect delete; not all facts are shown</p>");
    expect(withheld.body).to.not.include("payroll_secret");
  });

  it("are in clear neither in the store, nor in records, logs or metrics", async () => {
    await call("private");
    await asksToRun("private");
    const records = await reader.recordsOf((label) => label === "private");
    const { body: metrics } = await ask("/metrics", gateway.metricsUrl);
    const files = await filesOf(join(folder, "data"));
    const stored = Buffer.concat(await Promise.all(files.map((file) => readFile(file))));
    expect(stored.includes("write_note")).to.equal(true);
    for (const word of ["payroll_secret", "hidden-place"]) {
      expect(JSON.stringify(records)).to.not.include(word);
      expect(gateway.stdout() + gateway.stderr() + metrics).to.not.include(word);
      expect(stored.includes(word), word).to.equal(false);
    }
    expect(metrics).to.include("gateway_");
  });
});

async function filesOf(dir: string): Promise<readonly string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
}

/** The key of the only tenant's chain, as its operator holds it. */
async function signingKey(folder: string): Promise<SigningKey> {
  const [pem] = (await filesOf(folder)).filter((path) => path.includes("/keys/") && path.endsWith(".pem"));
  return SigningKey.fromPem(await readFile(pem ?? "", "utf8"));
}

interface Said {
  readonly code: number | null;
  readonly stdout: string;
}

function python(bundle: string, key: string): Promise<Said> {
  return new Promise((resolve) => {
    const program = join(repositoryRoot, "sdk/evidence/verify.py");
    const child = execFile("python3", [program, bundle, "--key", key], (_error, stdout) => {
      resolve({ code: child.exitCode, stdout });
    });
  });
}
