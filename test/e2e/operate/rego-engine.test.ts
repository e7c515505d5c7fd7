import { expect } from "chai";
import { Agent } from "../../support/agent.ts";
import { expectEngineEvidence } from "../../support/engine-folder.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { regoFiles, regoModule } from "../../support/rego-folder.ts";
import { scrape } from "../../support/scrape.ts";
import { writeEngine } from "../../support/signed-engine.ts";
import { readCalls, siteConfig, siteKey } from "../../support/site.ts";
import { startRefusal } from "../../support/start-check.ts";
import { makeSigner, recordedEvents, TrustWorld, trustEntry } from "../../support/trust-world.ts";

const alice = makeSigner();

describe("a strict gateway with Rego policies", () => {
  let world: TrustWorld;
  let gateway: RunningGateway | undefined;
  let agent: Agent | undefined;

  beforeEach(async () => {
    world = await TrustWorld.make();
    await world.write("trust.yaml", `all_of: [${trustEntry("alice", alice)}]\n`);
    await world.sign([alice]);
    await writeEngine(world, "notes", regoFiles(), alice);
  });

  afterEach(async () => {
    await agent?.hangUp();
    await gateway?.stop();
    agent = undefined;
    gateway = undefined;
    await world.remove();
  });

  function configOf(more = ""): string {
    const extensions = "extensions: { strict: true, trust_policy: trust.yaml }\ndata_dir: data\n";
    return siteConfig({ more: extensions, localLog: world.path("local.jsonl") })
      .replace("packs/open }] }", `packs/open }], engines: [{ type: rego, path: engines/notes${more} }] }`)
      .replace("connection: shared }]", "connection: shared, capabilities: { write_note: write } }]");
  }

  async function start(more = ""): Promise<RunningGateway> {
    gateway = await startGateway({ folder: world.folder, config: configOf(more) });
    agent = new Agent(gateway.url, siteKey);
    return gateway;
  }

  const write = async (text: string): Promise<string> =>
    JSON.stringify((await (agent as Agent).call("write_note", { title: "a", text })).result);
  const calls = async (): Promise<readonly string[]> =>
    (await readCalls(world.path("local.jsonl"))).map(({ tool }) => tool);

  it("runs what they permit, and nothing that they block or give no answer for", async () => {
    const { metricsUrl } = await start();
    expect(await write("plain")).to.include("wrote");
    expect(await write("a secret")).to.include("secrets stay here");
    expect(await write("a hole")).to.include("no policy of `notes` permits this");
    for (const text of ["an abort", "a loop", "a trap", "a number", "a half"])
      expect(await write(text), text).to.include("could not answer");
    expect(await calls()).to.deep.equal(["write_note"]);
    const series = await scrape(metricsUrl);
    expect(series.get('gateway_engine_failures_total{engine="rego",reason="evaluation"}')).to.equal(3);
    expect(series.get('gateway_engine_failures_total{engine="rego",reason="answer"}')).to.equal(2);
    expect(await write("plain")).to.include("wrote");
  });

  it("has evidence of the folder, its signer and each verdict, which is explained by the reasons", async () => {
    const { adminUrl } = await start();
    await write("a secret");
    await expectEngineEvidence(adminUrl, "policy.wasm:1");
    expect(await calls()).to.deep.equal([]);
  });

  it("only records what they would have decided in shadow mode", async () => {
    const { metricsUrl } = await start(", mode: shadow");
    expect(await write("a secret")).to.include("wrote");
    const series = await scrape(metricsUrl);
    expect(series.get('gateway_shadow_decisions_total{kind="engine",decision="block"}')).to.equal(1);
  });

  it("does not start with a folder that is altered, unsigned, or asks the host for a function", async () => {
    await world.write("engines/notes/data.json", "{}");
    expect(await startRefusal(world.folder, configOf())).to.include("file_altered");
    const changed = regoFiles({ "policy.wasm": regoModule({ builtins: '{"http.send":0}' }) });
    await writeEngine(world, "notes", changed, alice);
    expect(await startRefusal(world.folder, configOf())).to.match(/invalid policy engine: [\s\S]*`http\.send`/);
    await world.write("engines/notes/engine.sigstore.json", "");
    expect(await startRefusal(world.folder, configOf())).to.match(/extension refused: `[^`]*engines\/notes`/);
    const events = await recordedEvents(world.path("data"), "extension");
    expect(events.map(({ event, kind, check }) => [event, kind, check]).slice(0, 2)).to.deep.equal([
      ["refused", "engine", "file_altered"],
      ["refused", "engine", "content_invalid"],
    ]);
    expect(await calls()).to.deep.equal([]);
  });
});
