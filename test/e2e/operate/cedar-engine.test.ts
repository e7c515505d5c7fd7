import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { Agent } from "../../support/agent.ts";
import { cedarFiles, cedarPolicies } from "../../support/cedar-folder.ts";
import { expectEngineEvidence } from "../../support/engine-folder.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { scrape } from "../../support/scrape.ts";
import { writeEngine } from "../../support/signed-engine.ts";
import { readCalls, siteConfig, siteKey } from "../../support/site.ts";
import { startRefusal } from "../../support/start-check.ts";
import { makeSigner, recordedEvents, TrustWorld, trustEntry } from "../../support/trust-world.ts";

const alice = makeSigner();

describe("a strict gateway with Cedar policies", () => {
  let world: TrustWorld;
  let gateway: RunningGateway | undefined;
  let agent: Agent;

  beforeEach(async () => {
    world = await TrustWorld.make();
    await world.write("trust.yaml", `all_of: [${trustEntry("alice", alice)}]\n`);
    await world.sign([alice]);
    await writeEngine(world, "notes", cedarFiles(), alice);
  });

  afterEach(async () => {
    await agent?.hangUp();
    await gateway?.stop();
    gateway = undefined;
    await world.remove();
  });

  function configOf(more = ""): string {
    const extensions = "extensions: { strict: true, trust_policy: trust.yaml }\ndata_dir: data\n";
    return siteConfig({ more: extensions, localLog: world.path("local.jsonl") })
      .replace("packs/open }] }", `packs/open }], engines: [{ type: cedar, path: engines/notes${more} }] }`)
      .replace(
        "connection: shared }]",
        "connection: shared, capabilities: { write_note: write, read_note: read, delete_note: delete, list_notes: read } }]",
      );
  }

  async function start(more = ""): Promise<RunningGateway> {
    gateway = await startGateway({ folder: world.folder, config: configOf(more) });
    agent = new Agent(gateway.url, siteKey);
    return gateway;
  }

  const answerOf = async (name: string, args: object): Promise<string> =>
    JSON.stringify((await agent.call(name, args)).result);
  const calls = async (): Promise<readonly string[]> =>
    (await readCalls(world.path("local.jsonl"))).map(({ tool }) => tool);
  const seriesOf = async (name: string): Promise<number> =>
    (await scrape((gateway as RunningGateway).metricsUrl)).get(name) ?? 0;

  it("runs what they permit, and nothing that is forbidden, fails, or does not fit the schema", async () => {
    await start();
    expect(await answerOf("write_note", { title: "a", text: "plain" })).to.include("wrote");
    expect(await answerOf("write_note", { title: "b", text: "a secret" })).to.include("secrets stay here");
    expect(await answerOf("write_note", { title: "b", text: "x", count: 3 })).to.include("could not answer");
    expect(await answerOf("write_note", { title: "b", text: "x", count: "3" })).to.include("could not answer");
    expect(await calls()).to.deep.equal(["write_note"]);
    expect(await seriesOf('gateway_engine_failures_total{engine="cedar",reason="evaluation"}')).to.equal(1);
    expect(await seriesOf('gateway_engine_failures_total{engine="cedar",reason="input"}')).to.equal(1);
  });

  it("has evidence of the folder, its signer, and of each verdict, which is explained by the policy's place", async () => {
    const { adminUrl } = await start();
    await answerOf("write_note", { title: "b", text: "a secret" });
    await expectEngineEvidence(adminUrl, "policies.cedar:11");
    expect(await calls()).to.deep.equal([]);
    await gateway?.stop();
    gateway = undefined;
    const events = await recordedEvents(world.path("data"), "extension");
    expect(events.find(({ kind }) => kind === "engine")).to.include({
      event: "loaded",
      name: "notes",
      trust: "trusted",
    });
  });

  it("only records what they would have decided in shadow mode", async () => {
    await start(", mode: shadow");
    expect(await answerOf("write_note", { title: "b", text: "a secret" })).to.include("wrote");
    expect(await seriesOf('gateway_shadow_decisions_total{kind="engine",decision="block"}')).to.equal(1);
  });

  it("does not start with a folder that is unsigned, altered, or invalid, and records the refusal", async () => {
    await world.write("engines/notes/policies.cedar", cedarPolicies.replace("secrets stay here", "fine"));
    expect(await startRefusal(world.folder, configOf())).to.include("file_altered");
    await writeEngine(world, "notes", cedarFiles({ "policies.cedar": "permit(principal, action, thing);" }), alice);
    expect(await startRefusal(world.folder, configOf())).to.match(/invalid policy engine: [\s\S]*policies\.cedar:1:/);
    await world.write("engines/notes/engine.sigstore.json", "");
    expect(await startRefusal(world.folder, configOf())).to.match(/extension refused: `[^`]*engines\/notes`/);
    const events = await recordedEvents(world.path("data"), "extension");
    const checks = events.map(({ event, kind, check }) => [event, kind, check]);
    expect(checks.slice(0, 2)).to.deep.equal([
      ["refused", "engine", "file_altered"],
      ["refused", "engine", "content_invalid"],
    ]);
    expect(await calls()).to.deep.equal([]);
  });

  it("keeps the last good policies while new ones are invalid, and takes new ones once they are signed", async () => {
    await start();
    await world.write("engines/notes/policies.cedar", "permit(principal, action, resource);");
    await until(
      async () => gateway?.stderr().includes("reload_refused") || gateway?.stdout().includes("reload_refused"),
    );
    expect(await answerOf("write_note", { title: "b", text: "a secret" })).to.include("secrets stay here");
    await writeEngine(
      world,
      "notes",
      cedarFiles({
        "engine.yaml": `${cedarFiles()["engine.yaml"]}sequence: 1\n`,
        "policies.cedar": cedarPolicies.replace("secrets stay here", "otherwise"),
      }),
      alice,
    );
    await until(async () => (await answerOf("write_note", { title: "b", text: "a secret" })).includes("otherwise"));
    expect(await calls()).to.deep.equal([]);
  });
});

async function until(isSo: () => Promise<boolean | undefined>): Promise<void> {
  while (!(await isSo())) await sleep(50);
}
