import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { cedarFiles } from "../support/cedar-folder.ts";
import { cloneRepository, installPackage, packClone, weighPackages } from "../support/package.ts";
import { type Ran, runProgram } from "../support/program.ts";

/** All that the archive may hold. Packs and templates come with the tests that are part of them. */
const allowed = [
  /^(?:CHANGELOG|README)\.md$|^LICENSE$|^package\.json$/,
  /^dist\/core\/(?:[a-z0-9/-]+\.js|build-record)$/,
  /^dist\/vendor\/[a-z-]+\/(?:LICENSE|[\w./-]+\.(?:js|cjs|wasm|wasm\.br|json\.br)|cjs\/package\.json)$/,
  /^core\/admin\/console\/asset\/[a-z-]+\.(?:css|html|js|svg)$/,
  /^core\/fact\/effect\/table\.json$/,
  /^core\/cli\/deploy\/(?:Caddyfile(?:-console)?|Containerfile|[a-z/-]+\.(?:cfg|conf|mjs|service|yaml)|(?:relay\/)?README\.md)$/,
  /^core\/cli\/deploy\/chart\/(?:Chart\.yaml|values(?:\.schema)?\.(?:json|yaml)|templates\/[a-z_-]+\.(?:tpl|txt|yaml))$/,
  /^policy-packs\/(?:FIRST-PACK|README|RULES)\.md$/,
  /^policy-packs\/[a-z-]+\/(?:pack\.yaml|(?:rules|tests)\/[a-z-]+\.yaml|data\/[a-z-]+\.json)$/,
  /^plugins\/[A-Z-]+\.md$/,
  /^plugins\/[a-z-]+\/(?:asconfig\.json|plugin\.(?:wasm|yaml)|assembly\/[a-z-]+\.(?:ts|json)|tests\/[a-z-]+\.yaml)$/,
  /^sdk\/(?:c|rust)\/gateway_plugin\.(?:h|rs)$/,
  /^sdk\/evidence\/(?:README\.md|REASONS\.md|verify\.py)$/,
  /^sdk\/template\/[\w./-]+$/,
];

/** The same of the SDK. */
const allowedOfSdk = [
  /^(?:README\.md|LICENSE|package\.json)$/,
  /^assembly\/[a-z0-9-]+\.ts$/,
  /^(?:c|rust)\/gateway_plugin\.(?:h|rs)$/,
  /^contract\/[a-z-]+\.schema\.json$/,
  /^dist\/(?:contract|harness)\/[a-z-]+\.(?:js|d\.ts)$/,
  /^evidence\/(?:README\.md|REASONS\.md|verify\.py)$/,
  /^example\/c\/(?:build\.sh|plugin\.(?:c|yaml))$/,
];

/** A private key with its bytes; rules and their tests only name its first line. */
const wholeKey = /-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/=]{40,}/;

/** Of a CycloneDX document, what is read here. */
interface Bill {
  readonly bomFormat: string;
  readonly metadata: { readonly component: { readonly name: string } };
  readonly components: readonly { readonly name: string; readonly hashes?: readonly { readonly alg: string }[] }[];
}

describe("the package of npm", function () {
  this.timeout(300_000);
  let folder: string;
  let archive: string;
  let sdkArchive: string;
  /** Where it is installed without optional packages. */
  let place: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "package-"));
    place = join(folder, "empty");
    await cloneRepository(join(folder, "one"));
    archive = await packClone(join(folder, "one"));
    sdkArchive = await packClone(join(folder, "one"), "022", "sdk");
    await installPackage(archive, place, false);
  });

  after(() => rm(folder, { recursive: true, force: true }));

  it("is the same, byte for byte, in another folder, of files of another time and with another umask", async () => {
    const other = join(folder, "further", "two");
    await cloneRepository(other, "077");
    const past = new Date("2001-02-03");
    for (const name of ["README.md", "policy-packs/baseline/pack.yaml", "plugins/pii-guard/plugin.wasm"]) {
      await utimes(join(other, name), past, past);
    }
    expect(await digestOf(await packClone(other, "077"))).to.equal(await digestOf(archive));
    expect(await digestOf(await packClone(other, "077", "sdk"))).to.equal(await digestOf(sdkArchive));
  });

  it("holds what an installation uses, and nothing of tests, keys or a contributor", async () => {
    const files = await filesIn(archive);
    const unexpected = files.filter((path) => !allowed.some((pattern) => pattern.test(path)));
    expect(unexpected).to.deep.equal([]);
    expect(files).to.include.members([
      "LICENSE",
      "dist/core/cli/local.js",
      "dist/core/cli/main.js",
      "dist/vendor/gpt-tokenizer/LICENSE",
      "plugins/secret-egress/plugin.wasm",
      "policy-packs/baseline/pack.yaml",
      "policy-packs/sql/data/outside.json",
      "sdk/evidence/verify.py",
    ]);
    const compiled = files.filter((path) => path.startsWith("dist/core/"));
    expect(compiled.filter((path) => /\.test\.|\/test\//.test(path))).to.deep.equal([]);
  });

  it("of the SDK holds the kits, the harness and the verifier, and nothing of tests", async () => {
    const files = await filesIn(sdkArchive);
    expect(files.filter((path) => !allowedOfSdk.some((pattern) => pattern.test(path)))).to.deep.equal([]);
    expect(files).to.include.members(["LICENSE", "assembly/index.ts", "dist/harness/index.js", "evidence/verify.py"]);
  });

  it("comes with a bill of materials of what is installed and what is copied into it", async () => {
    const { code, stdout, stderr } = await runProgram(process.execPath, [
      join(folder, "one/dist/release/bill-of-materials.js"),
    ]);
    expect(code, stderr).to.equal(0);
    const { bomFormat, metadata, components } = JSON.parse(stdout) as Bill;
    expect([bomFormat, metadata.component.name]).to.deep.equal(["CycloneDX", "agent-governance-gateway"]);
    const names = components.map(({ name }) => name);
    expect(names).to.include.members(["koa", "@cedar-policy/cedar-wasm", "gpt-tokenizer", "tree-sitter-bash"]);
    expect(names).to.not.include.members(["mocha"]).and.not.include.members(["typescript"]);
    expect(components.filter(({ hashes }) => hashes?.[0]?.alg !== "SHA-512").map(({ name }) => name)).to.deep.equal([]);
  });

  it("begins a plugin with the release of its own version", async () => {
    const { code, stderr } = await gateway(["plugin", "new", "acme-scan"]);
    expect(code, stderr).to.equal(0);
    const { devDependencies } = JSON.parse(await readFile(join(place, "acme-scan/package.json"), "utf8"));
    const [{ version }, sdk] = await Promise.all(
      ["one/package.json", "one/sdk/package.json"].map(async (path) =>
        JSON.parse(await readFile(join(folder, path), "utf8")),
      ),
    );
    expect(sdk.version).to.equal(version);
    expect(devDependencies).to.include({
      "agent-governance-gateway": `^${version}`,
      "agent-governance-sdk": `^${version}`,
    });
  });

  it("is the command `gateway` where it is given one", async () => {
    const { version } = JSON.parse(await readFile(join(folder, "one/package.json"), "utf8"));
    const program = join(place, "node_modules/.bin/agent-governance-gateway");
    expect((await runProgram(program, ["--version"])).stdout.trim()).to.equal(version);
    const { stdout } = await runProgram(program, ["keys", "new", "--id", "agent", "--json"]);
    expect(JSON.parse(stdout).entry).to.include({ id: "agent" });
  });

  it("names nothing of the machine that built it, and holds no private key", async () => {
    const top = join(place, "node_modules/agent-governance-gateway");
    const entries = await readdir(top, { recursive: true, withFileTypes: true });
    const found: string[] = [];
    for (const entry of entries.filter((each) => each.isFile())) {
      const text = await readFile(join(entry.parentPath, entry.name), "latin1");
      if (text.includes(folder) || wholeKey.test(text)) found.push(entry.name);
    }
    expect(found).to.deep.equal([]);
  });

  it("installs within 60 MB without the optional packages", async () => {
    const weights = await weighPackages(place);
    expect(weights.some(([name]) => name.startsWith("@cedar-policy"))).to.equal(false);
    expect(printTotal("without the optional packages", weights)).to.be.at.most(60);
  });

  it("refuses to start, and names what to install, where a configuration needs an optional package", async () => {
    for (const [name, text] of Object.entries(cedarFiles())) {
      await mkdir(join(place, "notes"), { recursive: true });
      await writeFile(join(place, "notes", name), text);
    }
    for (const [missing, setting] of [
      ["@opentelemetry/otlp-transformer", 'telemetry: { endpoint: "http://127.0.0.1:9" }'],
      ["@cedar-policy/cedar-wasm", "policy: { engines: [{ type: cedar, path: notes }] }"],
      ["pg", "store: { engine: postgres, url_env: DATABASE_URL, secret_env: REPLICA_SECRET }"],
    ] as const) {
      await writeFile(
        join(place, "gateway.yaml"),
        `listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }\n${setting}\n`,
      );
      const { code, stdout, stderr } = await gateway(["serve", "--config", "gateway.yaml"]);
      expect([code, stdout], stderr).to.deep.equal([1, ""]);
      expect(stderr).to.match(new RegExp(`npm install .*${missing}@[\\^~]?\\d+\\.\\d+.*installs them`));
    }
    const keyless = await gateway([
      "pack",
      "sign",
      "node_modules/agent-governance-gateway/policy-packs/sql",
      "--keyless",
    ]);
    expect(keyless.stderr).to.include("npm install sigstore@");
    const update = await gateway(["trust", "update", "root.json", "--check"]);
    expect([update.code, update.stderr.includes("npm install @sigstore/tuf@")], update.stderr).to.deep.equal([1, true]);
  });

  // After the others, which are about an installation without them.
  describe("with its optional packages", () => {
    it("installs within 110 MB", async () => {
      await installPackage(archive, place, true);
      const weights = await weighPackages(place);
      expect(weights.map(([name]) => name)).to.include("@cedar-policy/cedar-wasm");
      expect(printTotal("with the optional packages", weights)).to.be.at.most(110);
    });
  });

  function gateway(args: readonly string[]): Promise<Ran> {
    return runProgram("sh", ["-c", 'cd "$0" && exec node_modules/.bin/gateway "$@"', place, ...args], "", ofReplicas);
  }
});

/** Variables that a configuration of replicas names. */
const ofReplicas = {
  DATABASE_URL: "postgres://127.0.0.1:9/none",
  REPLICA_SECRET: "of no replica at all, 32 characters".replaceAll(" ", "-"),
};

async function filesIn(archive: string): Promise<readonly string[]> {
  const { stdout } = await runProgram("tar", ["-tzf", archive]);
  return stdout
    .trim()
    .split("\n")
    .map((path) => path.replace(/^package\//, ""));
}

async function digestOf(path: string): Promise<string> {
  return createHash("sha256")
    .update(await readFile(path))
    .digest("hex");
}

/** Prints what packages occupy on disk, and returns it in MB, of 1,000,000 bytes. */
function printTotal(what: string, weights: readonly (readonly [name: string, kib: number])[]): number {
  const total = (weights.reduce((sum, [, kib]) => sum + kib, 0) * 1_024) / 1e6;
  const heaviest = weights.slice(0, 5).map(([name, kib]) => `${name} ${((kib * 1_024) / 1e6).toFixed(1)}`);
  process.stdout.write(`      ${total.toFixed(1)} MB on disk ${what}; the heaviest: ${heaviest.join(", ")}\n`);
  return total;
}
