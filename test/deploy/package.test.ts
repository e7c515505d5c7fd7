import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { expect } from "chai";
import { cedarFiles } from "../support/cedar-folder.ts";
import { ConsoleTab, launchBrowser } from "../support/console-browser.ts";
import { cloneRepository, installPackage, packClone, weighPackages } from "../support/package.ts";
import { type Ran, runProgram } from "../support/program.ts";
import { awaitReady, type ReadyProcess } from "../support/ready-line.ts";

const waitMs = 120_000;

/** All that the archive may hold. Packs and templates come with the tests that are part of them. */
const allowed = [
  /^(?:CHANGELOG|README)\.md$|^LICENSE$|^package\.json$/,
  /^dist\/core\/[a-z0-9/-]+\.js$/,
  /^dist\/vendor\/[a-z-]+\/(?:LICENSE|[\w./-]+\.(?:js|cjs|wasm)|cjs\/package\.json)$/,
  /^core\/admin\/console\/asset\/[a-z-]+\.(?:css|html|js|svg)$/,
  /^core\/fact\/effect\/table\.json$/,
  /^core\/cli\/deploy\/(?:Caddyfile(?:-console)?|Containerfile|[a-z/-]+\.(?:conf|service|sql|yaml)|README\.md)$/,
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

/** Of a pending approval, what is read here. */
interface Held {
  readonly id: string;
  readonly session: { readonly id: string };
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

  it("installs within 60 MiB without the optional packages", async () => {
    const weights = await weighPackages(place);
    expect(weights.some(([name]) => name.startsWith("@cedar-policy"))).to.equal(false);
    expect(totalMib(weights), JSON.stringify(weights.slice(0, 10))).to.be.below(60);
  });

  it("refuses to start, and names what to install, where a configuration needs an optional package", async () => {
    for (const [name, text] of Object.entries(cedarFiles())) {
      await mkdir(join(place, "notes"), { recursive: true });
      await writeFile(join(place, "notes", name), text);
    }
    for (const [missing, setting] of [
      ["@opentelemetry/otlp-transformer", 'telemetry: { endpoint: "http://127.0.0.1:9" }'],
      ["@cedar-policy/cedar-wasm", "policy: { engines: [{ type: cedar, path: notes }] }"],
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

  describe("in an empty folder, as `npx agent-governance-gateway`", () => {
    let running: ReadyProcess;
    let client: Client;

    before(async () => {
      const args = ["--no-install", "agent-governance-gateway", "--port", "0"];
      const child = spawn("npx", args, { cwd: place, stdio: ["ignore", "pipe", "pipe"], detached: true });
      running = await awaitReady(child, { event: "ready" }, waitMs);
      const headers = { "X-API-Key": (await readFile(join(place, "data/agent.key"), "utf8")).trim() };
      const url = new URL(`http://127.0.0.1:${running.port("gateway_port")}/mcp`);
      client = new Client({ name: "newcomer", version: "1.0.0" });
      await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
    });

    after(async () => {
      await client.close();
      await running.stop("SIGTERM", waitMs);
    });

    it("keeps its data in the folder it was started in", async () => {
      expect(await readdir(place)).to.include("data");
      expect(await readdir(join(place, "node_modules/agent-governance-gateway"))).to.not.include("data");
    });

    it("holds a call, runs it once after a person approved it in the browser, and gives evidence that python3 verifies", async () => {
      const env = {
        GATEWAY_ADMIN_URL: `http://127.0.0.1:${running.port("admin_port")}`,
        GATEWAY_API_KEY: (await readFile(join(place, "data/operator.key"), "utf8")).trim(),
      };
      const operate = async (...args: string[]): Promise<string> => {
        const { code, stdout, stderr } = await gateway(args, env);
        expect(code, stderr).to.equal(0);
        return stdout;
      };
      const call = async (): Promise<string> => {
        const { content } = await client.callTool({
          name: "write_note",
          arguments: { title: "plan", text: "Ship it." },
        });
        return (content as readonly { readonly text: string }[])[0]?.text ?? "";
      };
      expect(await call()).to.match(/^Held for review/);
      const { id, session } = JSON.parse(await operate("approvals", "list", "--json")) as Held;
      await approveInBrowser(id, `http://127.0.0.1:${running.port("metrics_port")}`);
      expect(await call()).to.equal("wrote `plan`");
      expect(await call()).to.match(/^Held for review/);

      await operate("evidence", "export", session.id, "--file", "session.jsonl");
      const records = (await readFile(join(place, "session.jsonl"), "utf8"))
        .split("\n")
        .filter((line) => line.includes('"tool":"write_note"'));
      expect(records.filter((line) => line.includes('"effect":"dispatched"'))).to.have.length(1);
      const { keys } = JSON.parse(await operate("evidence", "keys", "list", "--json"));
      const verifier = join(place, "node_modules/agent-governance-gateway/sdk/evidence/verify.py");
      const verified = await runProgram("python3", [
        verifier,
        join(place, "session.jsonl"),
        "--key",
        keys[0].public_key,
      ]);
      expect(JSON.parse(verified.stdout)).to.deep.include({ verdict: "self-attested", first_bad: null });
    });
  });

  // After the others, which are about an installation without them.
  describe("with its optional packages", () => {
    it("installs within 110 MiB", async () => {
      await installPackage(archive, place, true);
      const weights = await weighPackages(place);
      expect(weights.map(([name]) => name)).to.include("@cedar-policy/cedar-wasm");
      expect(totalMib(weights), JSON.stringify(weights.slice(0, 10))).to.be.below(110);
    });
  });

  /** Approves by clicking, in the console that the link of `gateway console` opens. */
  async function approveInBrowser(id: string, consoleUrl: string): Promise<void> {
    const { stdout, stderr } = await gateway(["console", "--url", consoleUrl, "--json"]);
    const { link } = JSON.parse(stdout || "{}") as { readonly link?: string };
    if (link === undefined) throw new Error(`expected a link, got \`${stderr}\``);
    const browser = await launchBrowser();
    try {
      const tab = new ConsoleTab(await browser.newPage(), consoleUrl);
      await tab.page.goto(link);
      await tab.go(`#/approvals/${id}`);
      await tab.page.locator("textarea").fill("as planned");
      await tab.click("button.approve");
      await tab.untilText(".detail-head", "approved");
      expect(tab.faults).to.deep.equal([]);
    } finally {
      await browser.close();
    }
  }

  function gateway(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> {
    return runProgram("sh", ["-c", 'cd "$0" && exec node_modules/.bin/gateway "$@"', place, ...args], "", env);
  }
});

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

function totalMib(weights: readonly (readonly [string, number])[]): number {
  return weights.reduce((sum, [, kib]) => sum + kib, 0) / 1024;
}
