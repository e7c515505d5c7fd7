import { cp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { contentDigest } from "../../../core/action/canonical-json.ts";
import { type Descriptor, registryAccount } from "../../support/docker-registry.ts";
import { startGateway } from "../../support/gateway.ts";
import { connectClient } from "../../support/mcp-client.ts";
import { PullWorld } from "../../support/pull-world.ts";
import { readCalls, siteConfig, siteKey } from "../../support/site.ts";
import { makeSigner } from "../../support/trust-world.ts";
import { until } from "../../support/webhook-receiver.ts";
import type { Finished } from "../../unit/cli/run.ts";

const fileType = "application/vnd.agent-governance-gateway.file.v1";

describe("packs in a registry", () => {
  let world: PullWorld;

  beforeEach(async () => {
    world = await PullWorld.make();
  });

  afterEach(() => world.remove());

  /** Runs a pull that must be refused with exactly this message, exit code 1 unless told, and nothing written. */
  async function expectRefused(pull: () => Promise<Finished>, message: string, code = 1): Promise<void> {
    const before = await world.siteFiles();
    const finished = await pull();
    expect({ ...finished }).to.deep.equal({ code, stdout: "", stderr: `gateway: ${message}\n` });
    expect(await world.siteFiles()).to.deep.equal(before);
  }

  /** Pushes the pack, then the same manifest once more with other layers. */
  async function pushLayers(change: (layers: readonly Descriptor[]) => readonly object[]): Promise<void> {
    await world.release();
    const manifest = await world.registry.readManifest(world.repository, "1");
    const layers = change(manifest.layers as readonly Descriptor[]);
    await world.registry.pushManifest(world.repository, "1", { ...manifest, layers });
  }

  const titled = (layer: Descriptor, title: string): Descriptor => ({
    ...layer,
    annotations: { "org.opencontainers.image.title": title },
  });

  it("come back byte for byte, locked by digest; the same release again changes nothing", async () => {
    const artifact = await world.release(":1.0.0");
    expect(await world.release(":again"), "the same files are the same artifact").to.equal(artifact);
    const { code, stdout, stderr } = await world.pull(":1.0.0", ["--json"]);
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: "" });
    const pulled = JSON.parse(stdout);
    expect(pulled).to.deep.include({
      ok: true,
      name: "open",
      version: "1.0.0",
      sequence: 3,
      signers: ["ops"],
      artifact,
    });
    const names = (folder: string): Promise<string[]> => readdir(folder, { recursive: true });
    expect((await names(world.target)).toSorted()).to.deep.equal((await names(world.world.pack)).toSorted());
    for (const name of ["pack.yaml", "README.md", "rules/delete.yaml", "pack.sigstore.json"]) {
      const [sent, come] = await Promise.all(
        [world.world.pack, world.target].map((each) => readFile(join(each, name))),
      );
      expect(come?.equals(sent as Buffer), name).to.equal(true);
    }
    expect(JSON.parse(await readFile(`${world.target}.lock.json`, "utf8"))).to.deep.equal({
      lock_version: 1,
      kind: "pack",
      name: "open",
      version: "1.0.0",
      sequence: 3,
      source: world.reference(":1.0.0"),
      artifact,
      digest: pulled.digest,
    });
    const before = await world.siteFiles();
    expect((await world.pull(":1.0.0")).code, "the same pull again").to.equal(0);
    expect((await world.pull(`@${artifact}`)).code, "by its digest").to.equal(0);
    expect({ ...(await world.siteFiles()), "packs/open.lock.json": "" }).to.deep.equal({
      ...before,
      "packs/open.lock.json": "",
    });
  });

  it("replace the release of a strict gateway that serves meanwhile", async () => {
    await world.release(":1");
    expect((await world.pull(":1")).code).to.equal(0);
    await cp(world.world.path("trust.yaml"), world.world.path("site/trust.yaml"));
    const log = world.world.path("site/calls.log");
    const more = "extensions: { strict: true, trust_policy: trust.yaml }";
    const config = siteConfig({ localLog: log, more });
    const gateway = await startGateway({ folder: world.world.path("site"), config });
    try {
      const client = await connectClient("v2 modern", { url: `${gateway.url}/mcp`, headers: { "x-api-key": siteKey } });
      const answerTo = async (tool: string): Promise<string> => {
        const answer = await client.callTool(tool, { title: "plan" }).catch((error: Error) => error);
        return answer instanceof Error ? answer.message : JSON.stringify(answer);
      };
      expect(await answerTo("delete_note")).to.include("notes are kept");
      await client.callTool("list_notes");
      await world.world.edit("packs/open/rules/delete.yaml", "notes are kept", "nothing is deleted");
      await world.setSequence(4);
      await world.release(":2");
      expect((await world.pull(":2", ["--update"])).code).to.equal(0);
      await until(async () => (await answerTo("delete_note")).includes("nothing is deleted"), "the other release");
      await client.close();
      expect((await readCalls(log)).map(({ tool }) => tool)).to.deep.equal(["list_notes"]);
    } finally {
      await gateway.stop();
    }
  });

  it("are refused where a blob was altered on the registry's disk [S89]", async () => {
    await world.release();
    const { layers } = await world.registry.readManifest(world.repository, "1");
    const [layer] = (layers as readonly Descriptor[]).filter(({ annotations }) =>
      Object.values(annotations ?? {}).includes("rules/delete.yaml"),
    );
    const { digest = "" } = layer ?? {};
    const bytes = await readFile(world.registry.dataFile(digest));
    const altered = Buffer.from(bytes.toString("latin1").replace("decision: block", "decision: allow"), "latin1");
    await writeFile(world.registry.dataFile(digest), altered);
    const found = contentDigest(altered);
    expect(found).to.not.equal(digest);
    const message = `artifact refused: \`rules/delete.yaml\`: expected the digest ${digest}, got ${found}`;
    await expectRefused(() => world.pull(), message);
  });

  it("are refused where the manifest of a digest was altered on the registry's disk [S89]", async () => {
    const artifact = await world.release();
    const file = world.registry.dataFile(artifact);
    await writeFile(file, (await readFile(file, "utf8")).replace("1.0.0", "1.0.1"));
    const found = contentDigest(await readFile(file));
    const message = `artifact refused: the manifest: expected the digest ${artifact}, got ${found}`;
    await expectRefused(() => world.pull(`@${artifact}`), message);
  });

  it("are refused where a tag moved, until the user asks for the other release [S89]", async () => {
    const first = await world.release();
    expect((await world.pull()).code).to.equal(0);
    await world.setSequence(4);
    const second = await world.release();
    const message = `artifact refused: expected the locked ${first} of open 1.0.0, got ${second}; \`--update\` accepts another release`;
    await expectRefused(() => world.pull(), message);
    expect((await world.pull(":1", ["--update"])).code).to.equal(0);
    expect(await readFile(join(world.target, "pack.yaml"), "utf8")).to.include("sequence: 4");
    expect((await world.pull()).code, "the lock has the other release").to.equal(0);
  });

  it("do not go back to an older release, nor to other content of the same [S89]", async () => {
    await world.release(":old");
    await world.setSequence(4);
    await world.release(":new");
    expect((await world.pull(":new")).code).to.equal(0);
    const lower = "sequence_lower: expected no sequence below one that was loaded before (got 3 after 4)";
    await expectRefused(
      () => world.pull(":old", ["--update"]),
      `extension refused: \`${world.reference(":old")}\`: ${lower}`,
    );
    const { digest } = JSON.parse(await readFile(`${world.target}.lock.json`, "utf8"));
    await world.world.write("packs/open/README.md", "Otherwise.\n");
    await world.setSequence(4);
    await world.release(":other");
    const reused = `sequence_reused: expected one content for one sequence (4 was \`${digest}\`)`;
    await expectRefused(
      () => world.pull(":other", ["--update"]),
      `extension refused: \`${world.reference(":other")}\`: ${reused}`,
    );
  });

  it("are refused for a layer that is too large, or larger than it says [S89]", async () => {
    const large = await world.registry.pushBlob(world.repository, Buffer.alloc(1_048_577), fileType, "data/large.json");
    await pushLayers((layers) => [large, ...layers]);
    await expectRefused(() => world.pull(), "artifact refused: layer 1: expected at most 1048576 bytes, got 1048577");
    await pushLayers((layers) => [{ ...large, size: 10 }, ...layers]);
    await expectRefused(() => world.pull(), "artifact refused: expected at most 10 bytes from the registry, got more");
    await pushLayers((layers) => [{ ...(layers[0] as Descriptor), size: 1_048_576 }, ...layers.slice(1)]);
    const { stderr, code } = await world.pull();
    expect(code).to.equal(1);
    expect(stderr).to.match(/^gateway: artifact refused: `README\.md`: expected 1048576 bytes, got \d+\n$/);
    const full = (index: number): object => titled({ ...large, size: 1_048_576 }, `data/${index}.json`);
    await pushLayers((layers) => [...layers, ...Array.from({ length: 17 }, (_, index) => full(index))]);
    const finished = await world.pull();
    expect(finished.stderr).to.match(/^gateway: artifact refused: expected at most 16777216 bytes in all, got \d+\n$/);
    await pushLayers((layers) => [...layers, ...Array.from({ length: 257 }, () => layers[0] as Descriptor)]);
    await expectRefused(() => world.pull(), "artifact refused: expected at most 256 layers, got 262");
    expect(await readdir(world.world.path("site"))).to.deep.equal(["kept.txt"]);
  });

  const plain = "expected a relative path of plain file names, got";
  const tricks: readonly (readonly [title: string, fault: string])[] = [
    ["../kept.txt", `${plain} "../kept.txt"`],
    ["rules/../../kept.txt", `${plain} "rules/../../kept.txt"`],
    ["/etc/passwd", `${plain} "/etc/passwd"`],
    ["rules\\..\\x.yaml", `${plain} "rules\\\\..\\\\x.yaml"`],
    ["./x.yaml", `${plain} "./x.yaml"`],
    ["", `${plain} ""`],
    ["rules//x.yaml", `${plain} "rules//x.yaml"`],
    [".git/hooks/post-checkout", `${plain} ".git/hooks/post-checkout"`],
    ["a/.GIT/config", `${plain} "a/.GIT/config"`],
    ["x\u001b[2J.yaml", `${plain} "x\\u001b[2J.yaml"`],
    ["x\u202elmay.yaml", `${plain} "x\\u202elmay.yaml"`],
    ["PACK.yaml", "expected each file once, got `pack.yaml` and `PACK.yaml`"],
    ["pack.yaml", "expected each file once, got `pack.yaml` and `pack.yaml`"],
    ["pack.yaml/x", "expected `pack.yaml` to be a file or a folder, got both"],
  ];

  it("are refused for path tricks in titles, before any file is asked for [S89]", async () => {
    await world.release();
    const manifest = await world.registry.readManifest(world.repository, "1");
    const layers = manifest.layers as readonly Descriptor[];
    for (const { digest } of layers) await writeFile(world.registry.dataFile(digest), "altered");
    for (const [title, fault] of tricks) {
      await world.registry.pushManifest(world.repository, "1", {
        ...manifest,
        layers: [...layers, titled(layers[0] as Descriptor, title)],
      });
      await expectRefused(() => world.pull(), `artifact refused: ${fault}`);
    }
    const [first, ...others] = layers;
    const link = { ...(first as Descriptor), urls: ["https://elsewhere.example/x"] };
    await world.registry.pushManifest(world.repository, "1", { ...manifest, layers: [link, ...others] });
    await expectRefused(() => world.pull(), 'artifact refused: layer 1: expected no member "urls"');
  });

  it("are refused with a file that the signers do not list, without one, and by another signer", async () => {
    const more = await world.registry.pushBlob(world.repository, Buffer.from("{}"), fileType, "data/more.json");
    await pushLayers((layers) => [...layers, more]);
    const refused = (check: string): string => `extension refused: \`${world.reference()}\`: ${check}`;
    const unlisted = "file_unlisted: expected every file to be signed (`data/more.json`)";
    await expectRefused(() => world.pull(), refused(unlisted));
    const isTitled = ({ annotations }: Descriptor, title: string): boolean =>
      Object.values(annotations ?? {}).includes(title);
    await pushLayers((layers) => layers.filter((layer) => !isTitled(layer, "rules/delete.yaml")));
    const missing = "file_missing: expected every signed file to be there (`rules/delete.yaml`)";
    await expectRefused(() => world.pull(), refused(missing));
    await pushLayers((layers) => layers.filter((layer) => !isTitled(layer, "pack.sigstore.json")));
    await expectRefused(() => world.pull(), "artifact refused: expected a pack with `pack.sigstore.json`, got none");
    await world.world.sign([makeSigner()]);
    await world.release();
    const few =
      "signers_missing: expected signatures of the signers that the trust policy asks for (`ops` did not sign)";
    await expectRefused(() => world.pull(), refused(few));
  });

  it("are not pulled as a plugin, nor over a folder that no pull has written", async () => {
    await world.release();
    const words = ["plugin", "pull", world.reference(), world.target, "--trust", world.world.path("trust.yaml")];
    const type = "application/vnd.agent-governance-gateway";
    await expectRefused(
      () => world.run(words),
      `artifact refused: expected the artifact type \`${type}.plugin.v1\` of a plugin, got "${type}.pack.v1"`,
    );
    await world.world.write("site/packs/open/mine.txt", "mine\n");
    await expectRefused(
      () => world.pull(),
      `invalid extension: \`${world.target}\`: expected a folder that a pull has written, with its lock file, or nothing`,
    );
    await rm(world.target, { recursive: true });
    expect((await world.pull()).code).to.equal(0);
    await writeFile(`${world.target}.lock.json`, "{}");
    await expectRefused(
      () => world.pull(),
      `state cannot be used: \`${world.target}.lock.json\`: expected the lock file of a pull; restore it`,
    );
  });

  it("are pushed only as they were signed, and asked for only where they are", async () => {
    await expectRefused(
      () => world.pull(":none"),
      `the registry refused: \`${world.reference(":none")}\`: it has no such artifact (HTTP 404 MANIFEST_UNKNOWN)`,
    );
    await world.world.write("packs/open/README.md", "Otherwise.\n");
    const altered = "file_altered: expected every file as it was signed (`README.md`)";
    await expectRefused(() => world.push(), `extension refused: \`${world.world.pack}\`: ${altered}`);
    await world.registry.stop();
    await expectRefused(
      () => world.pull(),
      `registry unreachable: \`${world.registry.host}\`: the connection failed (ECONNREFUSED)`,
      3,
    );
  }).timeout(60_000);
});

describe("a registry that asks for credentials", () => {
  for (const auth of ["basic", "token"] as const) {
    describe(auth === "basic" ? "by basic authentication" : "by a token", () => {
      let world: PullWorld;

      before(async () => {
        world = await PullWorld.make(auth);
      });

      after(() => world.remove());

      const { username, password } = registryAccount;
      const fromEnv = { GATEWAY_REGISTRY_USERNAME: username, GATEWAY_REGISTRY_PASSWORD: password };
      const refusal = (expected: string): string =>
        `gateway: the registry refused: \`${world.reference()}\`: ${expected} (HTTP 401); \`docker login ${world.registry.host}\`, or set GATEWAY_REGISTRY_USERNAME and GATEWAY_REGISTRY_PASSWORD\n`;

      it("refuses who has none, or a wrong one, which is not printed", async () => {
        expect(await world.push()).to.deep.equal({
          code: 1,
          stdout: "",
          stderr: refusal("expected a credential, got none"),
        });
        const wrong = { ...fromEnv, GATEWAY_REGISTRY_PASSWORD: "wrong-canary" };
        const finished = await world.push(":1", wrong);
        const stderr = refusal("expected a credential that may do this, got another");
        expect(finished).to.deep.equal({ code: 1, stdout: "", stderr });
      });

      it("accepts the environment's, and the one of `docker login`", async () => {
        const pushed = await world.push(":1", fromEnv);
        expect(pushed).to.include({ code: 0, stderr: "" });
        const config = {
          auths: { [world.registry.host]: { auth: Buffer.from(`${username}:${password}`).toString("base64") } },
        };
        await world.world.write("docker/config.json", JSON.stringify(config));
        const pulled = await world.pull();
        expect(pulled).to.include({ code: 0, stderr: "" });
        for (const { stdout } of [pushed, pulled]) expect(stdout).to.not.include(password);
        if (auth === "token")
          expect(new Set(world.registry.issuedTokens)).to.include(`repository:${world.repository}:pull`);
      });
    });
  }
});
