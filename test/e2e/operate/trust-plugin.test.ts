import { readFile } from "node:fs/promises";
import { expect } from "chai";
import { contentDigest, sha256Hex } from "../../../core/action/canonical-json.ts";
import { readExtensionFolder } from "../../../core/trust/folder.ts";
import { statementBytes } from "../../../core/trust/statement.ts";
import { Agent } from "../../support/agent.ts";
import { startGateway } from "../../support/gateway.ts";
import { issuer, SigstoreWorld, signedAt, subject } from "../../support/sigstore/world.ts";
import { siteConfig, siteKey } from "../../support/site.ts";
import { checkStart, startRefusal } from "../../support/start-check.ts";
import { makeSigner, recordedEvents, signBundle, TrustWorld, trustEntry } from "../../support/trust-world.ts";
import { abstain, pluginFiles } from "../../support/wasm-plugin.ts";

const alice = makeSigner();
const signatureFile = "plugins/sample/plugin.sigstore.json";

describe("a strict gateway with a plugin", () => {
  let world: TrustWorld;

  beforeEach(async () => {
    world = await TrustWorld.make();
    await world.write("trust.yaml", `all_of: [${trustEntry("alice", alice)}]\n`);
    await world.sign([alice]);
    for (const [name, content] of Object.entries(pluginFiles(abstain))) {
      await world.write(`plugins/sample/${name}`, content);
    }
  });

  afterEach(() => world.remove());

  async function sign(name = "sample"): Promise<void> {
    const { fileDigests } = await readExtensionFolder(world.path("plugins/sample"), "plugin");
    const issuedAt = "2026-01-01T00:00:00.000Z";
    const claim = { kind: "plugin", name, version: "1.0.0", sequence: 0 } as const;
    const payload = statementBytes({ ...claim, issuedAt, expiresAt: null, subjects: fileDigests });
    await world.write(signatureFile, signBundle(alice, payload));
  }

  function configOf(strict: boolean, localLog?: string): string {
    const more = `extensions: { strict: ${strict}, trust_policy: trust.yaml }\ndata_dir: data\n`;
    return siteConfig({ more, ...(localLog === undefined ? {} : { localLog }) }).replace(
      "packs/open }] }",
      "packs/open }], plugins: [{ path: plugins/sample }] }",
    );
  }

  const check = (strict = true): Promise<void> => checkStart(world.folder, configOf(strict));
  const refusal = (): Promise<string> => startRefusal(world.folder, configOf(true));

  it("[R2.3-7] loads one that is signed, and records who signed which bytes", async () => {
    await sign();
    await check();
    const { digest } = await readExtensionFolder(world.path("plugins/sample"), "plugin");
    const bundleDigest = contentDigest(await readFile(world.path(signatureFile)));
    const [, loaded] = await recordedEvents(world.path("data"), "extension");
    expect(loaded).to.deep.equal({
      event: "loaded",
      kind: "plugin",
      name: "sample",
      version: "1.0.0",
      digest,
      signers: ["alice"],
      bundle_digest: bundleDigest,
      trust: "trusted",
    });
  });

  it("[R2.3-7] records how one was built, where a signed statement says so, and refuses one about another module", async () => {
    const build = (bytes: Uint8Array): string =>
      JSON.stringify({
        _type: "https://in-toto.io/Statement/v1",
        subject: [{ name: "plugin.wasm", digest: { sha256: sha256Hex(bytes) } }],
        predicateType: "https://slsa.dev/provenance/v1",
        predicate: { runDetails: { builder: { id: "https://ci.example/builder" } } },
      });
    const good = build(await readFile(world.path("plugins/sample/plugin.wasm")));
    await world.write("plugins/sample/build.intoto.json", good);
    await sign();
    await check();
    const [, loaded] = await recordedEvents(world.path("data"), "extension");
    expect(loaded?.build).to.deep.equal({
      digest: contentDigest(good),
      predicate_type: "https://slsa.dev/provenance/v1",
      builder: "https://ci.example/builder",
    });
    await world.write("plugins/sample/build.intoto.json", build(Buffer.from("another")));
    await sign();
    expect(await refusal())
      .to.include("build_of_another")
      .and.to.include("`plugin.wasm`");
  });

  it("loads one that the trusted builder built, records the proof, and refuses one that nobody proves", async () => {
    const sigstore = new SigstoreWorld();
    const builder = `builder: { issuer: "${issuer}", subject: { equal: "${subject}" } }`;
    await world.write("root.json", sigstore.trustedRoot());
    await world.write("trust.yaml", `all_of: [${trustEntry("alice", alice)}]\ntrusted_root: root.json\n${builder}\n`);
    await sign();
    expect(await refusal()).to.include("build_unproven: expected `build.sigstore.json`");
    const sha256 = sha256Hex(await readFile(world.path("plugins/sample/plugin.wasm")));
    const statement = {
      _type: "https://in-toto.io/Statement/v1",
      subject: [{ name: "plugin.wasm", digest: { sha256 } }],
      predicateType: "https://slsa.dev/provenance/v1",
      predicate: { runDetails: { builder: { id: "https://ci.example/builder" } } },
    };
    await world.write("plugins/sample/build.sigstore.json", sigstore.sign(Buffer.from(JSON.stringify(statement))));
    await sign();
    await check();
    const loaded = (await recordedEvents(world.path("data"), "extension")).find(({ build }) => build !== undefined);
    expect(loaded?.build).to.deep.include({
      builder: "https://ci.example/builder",
      proven_by: { issuer, subject, signed_at: signedAt.toISOString() },
    });
  });

  it("[R1.1-7] does not start with one that is unsigned, and records the refusal", async () => {
    expect(await refusal()).to.match(/extension refused: `[^`]*plugins\/sample`: unsigned: /);
    const [event, ...others] = await recordedEvents(world.path("data"), "extension");
    expect(event).to.include({ event: "refused", kind: "plugin", check: "unsigned" });
    expect(others).to.deep.equal([]);
  });

  it("[R1.1-7] does not start with one whose module is another than was signed", async () => {
    await sign();
    await world.flip("plugins/sample/plugin.wasm", -1);
    expect(await refusal()).to.include("file_altered");
  });

  it("lets one allow, unless its signer may only tighten", async () => {
    const verdict = {
      decision: "allow",
      findings: [{ rule: "sample.a", decision: "allow", message: "fine", severity: "info", risk: 0 }],
    };
    for (const [name, content] of Object.entries(pluginFiles(JSON.stringify(verdict)))) {
      await world.write(`plugins/sample/${name}`, content);
    }
    await sign();
    await world.edit("packs/open/rules/all.yaml", "phase: [list, input, output]", "phase: [list, output]");
    await world.sign([alice]);
    expect(await answerOfCall()).to.include("welcome");
    await world.write("trust.yaml", `all_of: [${trustEntry("alice", alice, "tighten_only: true")}]\n`);
    expect(await answerOfCall()).to.include("Blocked");
  });

  async function answerOfCall(): Promise<string> {
    const config = configOf(true, world.path("local.jsonl"));
    const gateway = await startGateway({ folder: world.folder, config });
    const agent = new Agent(gateway.url, siteKey);
    const answer = JSON.stringify((await agent.call("list_notes")).result);
    await agent.hangUp();
    await gateway.stop();
    return answer;
  }

  it("does not start with one that was signed under another name", async () => {
    await sign("other");
    expect(await refusal())
      .to.include("invalid plugin")
      .and.to.include("expected `name` as it was signed, `other`");
  });

  it("that is not strict loads one that is unsigned, and records that", async () => {
    await check(false);
    const [, loaded] = await recordedEvents(world.path("data"), "extension");
    expect(loaded).to.include({ event: "loaded", kind: "plugin", trust: "unsigned", check: "unsigned" });
  });
});
