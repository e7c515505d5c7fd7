import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { contentDigest } from "../../../core/action/canonical-json.ts";
import { hostileModules } from "../../support/hostile-load.ts";
import type { McpClient } from "../../support/mcp-client.ts";
import { PackFolders } from "../../support/policy-pack.ts";
import { roundsOf } from "../../support/rounds.ts";
import { secretEgress } from "../../support/secret-egress.ts";
import { abstain, assemble, pluginFiles } from "../../support/wasm-plugin.ts";
import { everythingServer } from "./server-program.ts";
import { openWorld, type World } from "./world.ts";

const rules = `rules:
  - { id: test.all, title: All is allowed, decision: allow, match: { phase: input } }
`;
const token = `${"ghp_"}q7Xv2LmP9sTz4KbW8nRd3HcY6fGj1AeU5oQi`;
const blocking =
  '{"decision":"block","findings":[{"rule":"sample.no","decision":"block","message":"No.","severity":"low","risk":1}]}';

interface ListedPolicy {
  readonly kind: string;
  readonly name: string;
  readonly digest: string;
  readonly mode: string;
}

describe("plugins of a running gateway", () => {
  const folders = new PackFolders();
  let sample: string;
  let world: World;
  let client: McpClient;

  /** Starts a gateway with a plugin that tests swap, one on trial, and others before them, as YAML flow. */
  function openWith(others: string): void {
    before(async () => {
      sample = await folders.write(pluginFiles(abstain));
      const verdict = blocking.replaceAll("sample", "on-trial");
      const files = pluginFiles(verdict);
      const onTrial = await folders.write({
        ...files,
        "plugin.yaml": files["plugin.yaml"].replace("sample", "on-trial"),
      });
      world = await openWorld({
        servers: () => ({ every: everythingServer() }),
        rules,
        policy: `plugins: [${others}{ path: "${sample}" }, { path: "${onTrial}", mode: shadow }], plugin_workers: 3`,
      });
      client = await world.connect("v2 modern");
    });

    after(async () => {
      await world?.stop();
      await folders.remove();
    });
  }

  async function plugins(): Promise<readonly ListedPolicy[]> {
    const response = await fetch(`${world.gateway.adminUrl}/admin/v1/plugins`, {
      headers: { "x-api-key": world.key },
    });
    return ((await response.json()) as { items: readonly ListedPolicy[] }).items;
  }

  async function echo(message: string): Promise<"allowed" | "blocked"> {
    return (await client.callTool("echo", { message })).isError === true ? "blocked" : "allowed";
  }

  /** Puts files in the place of the sample's, and resolves once the gateway said what it made of them. */
  async function change(files: Readonly<Record<string, string | Buffer>>, said: string): Promise<void> {
    const before = world.gateway.stderr().length;
    for (const [name, content] of Object.entries(files)) await writeFile(join(sample, name), content);
    world.gateway.process.kill("SIGHUP");
    for (const end = performance.now() + 60_000; performance.now() < end; await sleep(25)) {
      if (world.gateway.stderr().slice(before).includes(said)) return;
    }
    throw new Error(`expected the gateway to say \`${said}\`, got ${world.gateway.stderr().slice(before)}`);
  }

  describe("with one of ours", () => {
    openWith(`{ path: "${secretEgress}", phases: [input] }, `);

    it("block a call whose arguments hold a credential, before the upstream hears of it", async () => {
      expect(await echo("hello")).to.equal("allowed");
      expect(await echo(`my key is ${token}`)).to.equal("blocked");
      const told = world.calls("every").map(({ params }) => JSON.stringify(params?.arguments));
      expect(told).to.deep.equal(['{"message":"hello"}']);
    });

    it("are listed alone, each with its mode", async () => {
      const listed = (await plugins()).map(({ kind, mode }) => [kind, mode]);
      expect(listed).to.deep.equal([
        ["plugin", "enforce"],
        ["plugin", "enforce"],
        ["plugin", "shadow"],
      ]);
    });

    it("are named in the evidence by version and digest, with their finding, and without the credential", async () => {
      const [shipped] = await plugins();
      const records = await world.evidence.recordsOf(() => true);
      const blocked = records.find(
        ({ effect, evaluation }) => effect === "not_dispatched" && evaluation?.decision === "block",
      );
      const named = blocked?.evaluation?.policies.find(({ kind }) => kind === "plugin");
      expect(named).to.include({ kind: "plugin", name: "secret-egress", version: "1.0.0", digest: shipped?.digest });
      const said = JSON.stringify(blocked?.evaluation);
      expect(said).to.include("secret-egress.github-token");
      expect(said).not.to.include(token);
    });

    it("are only recorded where they are in shadow mode", async () => {
      const records = await world.evidence.recordsOf(() => true);
      const allowed = records.find(
        ({ effect, evaluation }) => effect === "dispatched" && evaluation?.decision === "allow",
      );
      const trial = allowed?.evaluation?.shadow.find(({ name }) => name === "on-trial");
      expect(trial).to.include({ kind: "plugin", verdict: "block" });
    });

    it("are swapped by a reload, whole", async () => {
      const [, old] = await plugins();
      await change(pluginFiles(blocking), "configuration_reloaded");
      expect((await plugins())[1]?.digest)
        .to.match(/^sha256:/)
        .and.not.equal(old?.digest);
      expect(await echo("hello again")).to.equal("blocked");
      await change(pluginFiles(abstain), "configuration_reloaded");
      expect((await plugins())[1]?.digest).to.equal(old?.digest);
      expect(await echo("hello again")).to.equal("allowed");
    });

    it("[S35] that never end are stopped in their budget; the call is blocked, the evidence says why, the metric counts", async () => {
      await change(pluginFiles(abstain, "(loop $l (br $l))"), "configuration_reloaded");
      const calls = world.calls("every").length;
      for (let round = 0; round < 7; round++) expect(await echo("spin")).to.equal("blocked");
      expect(world.calls("every")).to.have.length(calls);
      const records = await world.evidence.recordsOf(() => true);
      const said = records.map(({ evaluation }) => JSON.stringify(evaluation ?? null));
      expect(said.filter((each) => each.includes("policy_error"))).to.have.length.of.at.least(7);
      const metrics = await (await fetch(`${world.gateway.metricsUrl}/metrics`)).text();
      expect(metrics).to.match(/gateway_plugin_breaches_total\{reason="fuel_exhausted"\} [5-9]/);
      expect(metrics).to.match(/gateway_plugin_breaches_total\{reason="circuit_open"\} \d/);
      expect(metrics).to.match(/gateway_plugin_circuit_opened_total 1$/m);
      expect(world.gateway.stderr()).to.include("plugin_circuit_opened");
      await change(pluginFiles(abstain), "configuration_reloaded");
      expect(await echo("rested")).to.equal("allowed");
    });

    it("have as many threads for long calls as the configuration says, and a metric of what they spend", async () => {
      const metrics = await (await fetch(`${world.gateway.metricsUrl}/metrics`)).text();
      expect(metrics).to.match(/^gateway_plugin_threads 3$/m);
      expect(metrics).to.match(/^gateway_plugin_calls_waiting 0$/m);
      const [, within = "", all = ""] =
        /^gateway_plugin_fuel_ratio_bucket\{le="0.9"\} (\d+)\n.*\n.*_bucket\{le="\+Inf"\} (\d+)$/m.exec(metrics) ?? [];
      // The calls that never ended took all of theirs.
      expect(Number(all) - Number(within)).to.be.within(5, Number(within));
    });

    it("[S33] leave the others in force when their folder goes away", async () => {
      const old = await plugins();
      await rm(join(sample, "plugin.wasm"));
      await change({}, "reload_refused");
      expect(await plugins()).to.deep.equal(old);
      expect(await echo(token)).to.equal("blocked");
    });
  });

  describe("that change often", () => {
    openWith("");

    it("[S33] stay as they were where the new one is broken", async () => {
      const old = await plugins();
      const refused = "reload_refused";
      const spinning = Buffer.from(
        assemble(
          '(module (func $s (loop $l (br $l))) (start $s) (func (export "evaluate") (result i32) (i32.const 0)))',
        ),
      );
      const broken: readonly Readonly<Record<string, string | Buffer>>[] = [
        { "plugin.wasm": Buffer.from("not a module") },
        { "plugin.yaml": pluginFiles(abstain)["plugin.yaml"].replace("gateway-plugin/1", "gateway-plugin/9") },
        { "plugin.yaml": `${pluginFiles(abstain)["plugin.yaml"]}capabilities: [network]\n` },
        {
          "plugin.yaml": pluginFiles(abstain)["plugin.yaml"].replace(/sha256:.*/, contentDigest(spinning)),
          "plugin.wasm": spinning,
        },
      ];
      for (const files of broken) {
        await change({ ...pluginFiles(abstain), ...files }, refused);
        expect(await plugins()).to.deep.equal(old);
        expect(await echo("still here")).to.equal("allowed");
      }
      await change(pluginFiles(abstain), "configuration_reloaded");
    });

    it("[S35] are not loaded where they are hostile; what is in force goes on answering", async () => {
      // That each is refused, a unit test shows; here a reload meets some of them, and before a release all.
      const step = roundsOf(4, 1);
      for (const [, , module] of hostileModules.filter((_, at) => at % step === 0)) {
        const binary = Buffer.from(typeof module === "string" ? assemble(module) : module);
        const manifest = pluginFiles(abstain)["plugin.yaml"].replace(/sha256:.*/, contentDigest(binary));
        const limits = "limits: { memory_pages: 16 }\n";
        const answered = echo("beside it");
        await change({ "plugin.yaml": manifest + limits, "plugin.wasm": binary }, "reload_refused");
        expect(await answered).to.equal("allowed");
      }
      await change(pluginFiles(abstain), "configuration_reloaded");
    });
  });
});
