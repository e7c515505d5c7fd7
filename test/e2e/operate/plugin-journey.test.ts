import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { contentDigest } from "../../../core/action/canonical-json.ts";
import { repositoryRoot } from "../../check/source-tree.ts";
import { runCommand } from "../../support/command-host.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { connectClient, type McpClient } from "../../support/mcp-client.ts";
import { readCalls, siteConfig, siteFiles, siteKey } from "../../support/site.ts";
import type { Finished } from "../../unit/cli/run.ts";

/** What the developer writes in place of the scaffold's rule. */
const source = `import { Action, abstain, block, definePlugin, Value, Verdict } from "agent-governance-sdk/assembly";

export { evaluate } from "agent-governance-sdk/assembly";

definePlugin("no-parents", (action: Action, _settings: Value): Verdict => {
  const title = action.arguments.get("/title").textOr("");
  return title.startsWith("../") ? block("upwards", "the title leads upwards") : abstain();
});
`;
const tests = `cases:
  - name: up
    action: { arguments: { title: ../a } }
    expect: { decision: block, rules: [no-parents.upwards] }
  - name: not up
    action: { arguments: { title: a } }
    expect: { decision: abstain }
`;

/** A developer of plugins, who has the command line and knows nothing of its code. */
describe("a new developer's plugin", () => {
  let folder: string;
  let plugin: string;
  let gateway: RunningGateway | undefined;
  let client: McpClient | undefined;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "plugin-journey-"));
    plugin = join(folder, "no-parents");
    for (const [name, text] of Object.entries(siteFiles())) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), text);
    }
  });

  after(async () => {
    await client?.close();
    await gateway?.stop();
    await rm(folder, { recursive: true });
  });

  async function cli(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await runCommand(args);
    expect(code, `${args.join(" ")}: ${stdout}${stderr}`).to.equal(0);
    return stdout;
  }

  function start(): Promise<RunningGateway> {
    const more = "extensions: { strict: true, trust_policy: trust.yaml }\ndata_dir: data\n";
    const config = siteConfig({ more, localLog: join(folder, "calls.log") }).replace(
      "packs/open }] }",
      "packs/open }], plugins: [{ path: no-parents, phases: [input] }] }",
    );
    return startGateway({ folder, config });
  }

  async function read(title: string): Promise<string> {
    const result = await client?.callTool("read_note", { title });
    return JSON.stringify(result);
  }

  it("begins as a scaffold that builds and passes its tests", async () => {
    await cli("plugin", "new", plugin);
    // What `npm install` brings, without a registry: the page of the journey runs npm.
    await symlink(join(repositoryRoot, "node_modules"), join(plugin, "node_modules"));
    expect(await cli("plugin", "build", plugin)).to.include("no-parents 1.0.0: built");
    expect(await cli("plugin", "test", plugin)).to.include("6 cases, 0 failed");
  });

  it("fails its own tests when they ask for more, until it is edited", async () => {
    await writeFile(join(plugin, "tests/calls.yaml"), tests);
    const failed: Finished = await runCommand(["plugin", "test", plugin]);
    expect([failed.code, failed.stdout.split("\n").at(-2)]).to.deep.equal([1, "2 cases, 1 failed"]);
    expect(failed.stdout).to.include("tests/calls.yaml:2:5: up: expected block, got abstain");
    await writeFile(join(plugin, "assembly/index.ts"), source);
    await cli("plugin", "build", plugin);
    expect(await cli("plugin", "test", plugin)).to.include("2 cases, 0 failed");
  });

  it("is not started by a strict gateway before it is signed", async () => {
    const key = await cli("plugin", "keys", "new", join(folder, "me.key"), "--json");
    const trust = `any_of: { minimum: 1, signers: [{ name: me, key: "${JSON.parse(key).key}" }] }\n`;
    await writeFile(join(folder, "trust.yaml"), trust);
    await cli("pack", "sign", join(folder, "packs/open"), "--key", join(folder, "me.key"));
    expect(await refusal()).to.match(/extension refused: `[^`]*no-parents`: unsigned: /);
  });

  it("is trusted once it is, blocks a real client's call, and the upstream never hears of it", async () => {
    await cli("plugin", "sign", plugin, "--key", join(folder, "me.key"));
    expect(await cli("plugin", "verify", plugin, "--trust", join(folder, "trust.yaml"))).to.include("signed by me");
    gateway = await start();
    client = await connectClient("v2 modern", { url: `${gateway.url}/mcp`, headers: { "x-api-key": siteKey } });
    expect(await read("welcome")).not.to.include("Blocked by policy");
    expect(await read(`../${randomBytes(4).toString("hex")}`))
      .to.include("Blocked by policy")
      .and.to.include("no-parents.upwards");
    expect((await readCalls(join(folder, "calls.log"))).map((call) => call.arguments)).to.deep.equal([
      { title: "welcome" },
    ]);
  });

  it("[R2.3-7] is named by digest, signer and verdict in the exported evidence", async () => {
    const url = gateway?.adminUrl ?? "";
    const [session] = await new EvidenceReader(url, siteKey).sessions();
    const bundle = join(folder, "session.jsonl");
    const env = { GATEWAY_ADMIN_URL: url, GATEWAY_API_KEY: siteKey };
    const { code, stderr } = await runCommand(["evidence", "export", session?.id ?? "", "--file", bundle], env);
    expect(code, stderr).to.equal(0);
    const { digest } = JSON.parse(await cli("plugin", "inspect", plugin, "--json"));
    const lines = (await readFile(bundle, "utf8")).trim().split("\n");
    const records = lines.map((line) => JSON.parse(line).record).filter((record) => record !== undefined);
    const blocked = records.find(({ evaluation }) => evaluation?.decision === "block");
    const named = blocked.evaluation.policies.find(({ kind }: { readonly kind: string }) => kind === "plugin");
    const known = { name: "no-parents", version: "1.0.0", signer: "me", verdict: "block", digest };
    expect(named).to.include(known);
    const loaded = records.find(({ detail }) => detail?.event === "loaded" && detail.kind === "plugin");
    expect(loaded.detail).to.deep.include({ digest, signers: ["me"], trust: "trusted" });
  });

  it("[S34] keeps a strict gateway from starting once a byte of its module is another", async () => {
    await client?.close();
    await gateway?.stop();
    client = gateway = undefined;
    const module = await readFile(join(plugin, "plugin.wasm"));
    const digest = contentDigest(module);
    module.writeUInt8(module.readUInt8(module.length - 1) ^ 1, module.length - 1);
    await writeFile(join(plugin, "plugin.wasm"), module);
    expect(await refusal()).to.include("file_altered: expected every file as it was signed (`plugin.wasm`)");
    module.writeUInt8(module.readUInt8(module.length - 1) ^ 1, module.length - 1);
    await writeFile(join(plugin, "plugin.wasm"), module);
    expect(contentDigest(module)).to.equal(digest);
    gateway = await start();
  });

  async function refusal(): Promise<string> {
    const started = await start().catch((error: unknown) => String(error));
    if (typeof started === "string") return started;
    await started.stop();
    throw new Error("expected the gateway not to start");
  }
});
