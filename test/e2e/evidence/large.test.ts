import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { readBundle } from "../../../core/evidence/bundle/bundle-line.ts";
import { Agent } from "../../support/agent.ts";
import { CommandHost } from "../../support/command-host.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { allowEverything } from "../../support/pack.ts";
import { PythonVerifier } from "../../support/python-verifier.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { siteConfig, siteKey } from "../../support/site.ts";

/** As bytes more than a piece, and no character of it ends where a piece does. */
const page = `${"\u00e4 page of text. ".repeat(80_000)}its end`;

/** Everything is allowed but the tool `deep`. */
const files = {
  ...allowEverything("packs/open"),
  "packs/open/rules/deep.yaml": `rules:
  - id: open.deep
    title: Nothing is deep
    decision: block
    severity: high
    risk: 80
    match: { phase: input, tool: deep }
    message: it is deep
`,
};

describe("large arguments and results in evidence", () => {
  let folder: string;
  let gateway: RunningGateway;
  let commands: CommandHost;
  let python: PythonVerifier;
  let upstream: Recorder;

  before(async () => {
    [commands, python, upstream] = [new CommandHost(), await PythonVerifier.start(), await startRecorder()];
    folder = await mkdtemp(join(tmpdir(), "gateway-large-evidence-"));
    await start();
    const agent = new Agent(gateway.url, siteKey, "large");
    for (const [tool, said] of [
      ["echo", /its end/],
      ["deep", /^Blocked by policy/],
    ] as const) {
      const { result } = await agent.call(tool, { page, rest: "rest" });
      expect(result?.content?.[0]?.text, tool).to.match(said);
    }
    await agent.hangUp();
  });

  after(async () => {
    await Promise.all([commands.stop(), python.stop(), gateway.stop(), upstream.stop()]);
    await rm(folder, { recursive: true });
  });

  async function start(): Promise<void> {
    const config = siteConfig({ remoteUrl: upstream.url, role: "admin" });
    gateway = await startGateway({ ownProcess: true, folder, config, files });
  }

  async function run(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await commands.run([...args, "--admin", gateway.adminUrl], {
      GATEWAY_API_KEY: siteKey,
    });
    expect(code, stderr).to.equal(0);
    return stdout;
  }

  async function session(): Promise<string> {
    const sessions = await new EvidenceReader(gateway.adminUrl, siteKey).sessions();
    return sessions.find(({ label }) => label === "large")?.id ?? "";
  }

  /** Exports the session, has both verifiers judge it, and counts how often it discloses the page. */
  async function disclosedPages(): Promise<number> {
    const path = join(folder, "session.jsonl");
    await run("evidence", "export", await session(), "--file", path);
    const response = await fetch(`${gateway.adminUrl}/admin/v1/evidence/keys`, { headers: { "x-api-key": siteKey } });
    const { keys } = (await response.json()) as { keys: [{ public_key: string }] };
    const bundle = await readFile(path);
    const [key] = keys;
    const ours = await commands.run(["evidence", "verify", path, "--key", key.public_key, "--json"]);
    expect(JSON.parse(ours.stdout)).to.include({ verdict: "self-attested" });
    expect(await python.judge({ bundle, keys: [key.public_key] })).to.include({ verdict: "self-attested" });
    await rm(path);
    const fields = readBundle(bundle).entries.flatMap((entry) => entry.fields);
    return fields.filter((text) => text.includes(page)).length;
  }

  it("are disclosed whole, and both verifiers agree; what was blocked was not called", async () => {
    expect(await disclosedPages()).to.equal(3);
    const calls = (await upstream.calls()).map(({ body }) => JSON.parse(body) as { params: { name: string } });
    expect(calls.map(({ params }) => params.name)).to.deep.equal(["echo"]);
  });

  it("are there after the process was killed", async () => {
    await gateway.kill9();
    await start();
    expect(await disclosedPages()).to.equal(3);
    expect(await new EvidenceReader(gateway.adminUrl, siteKey).verify()).to.include({ ok: true });
  });

  it("can be erased while the gateway serves", async () => {
    const of = ["evidence", "erase", "--session", await session(), "--reason", "asked"];
    expect(await run(...of, "--field", "arguments.*")).to.equal("acme: erased 4 fields in 2 records\n");
    expect(await disclosedPages()).to.equal(1);
  });
});
