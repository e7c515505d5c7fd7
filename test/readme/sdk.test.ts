import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { exampleAction, loadPlugin } from "../../sdk/harness/index.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { everythingServer } from "../e2e/client/server-program.ts";
import { openWorld } from "../e2e/client/world.ts";
import { cloneRepository, packClone } from "../support/package.ts";
import { openPlugin } from "../support/plugin.ts";
import { Terminal } from "./terminal.ts";

const readme = readFileSync(join(repositoryRoot, "sdk/README.md"), "utf8");
const commandMs = 120_000;
const fence = /^```(\S+) (\S+)\n(.*?)^```$/gms;
const anyFence = /^```[^\n]*\n.*?^```$/gms;

describe("the README of the SDK, from its package", function () {
  this.timeout(commandMs);
  let folder: string;
  let clone: string;
  let terminal: Terminal;
  let archive: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "sdk-"));
    clone = await mkdtemp(join(tmpdir(), "sdk-clone-"));
    await cloneRepository(clone);
    archive = await packClone(clone, "022", "sdk");
    const kept = Object.entries(process.env).filter(([name]) => !/^(npm_|GATEWAY_|NODE_)/i.test(name));
    terminal = new Terminal(folder, { ...Object.fromEntries(kept), npm_config_prefer_offline: "true" });
  });

  after(async () => {
    await terminal.close();
    await Promise.all([folder, clone].map((each) => rm(each, { recursive: true })));
  });

  it("has no code that this test does not use", () => {
    const marked = [...readme.matchAll(fence)].map(([block]) => block);
    expect([...readme.matchAll(anyFence)].map(([block]) => block)).to.deep.equal(marked);
  });

  for (const [, , use = "", text = ""] of readme.matchAll(fence)) {
    if (use === "run") {
      it(text.trim().split("\n").at(-1) ?? "", async () => {
        await terminal.run(text.replace(/(npm install.*) agent-governance-sdk /, `$1 ${archive} `), commandMs);
      });
    } else it(use, () => writeFile(join(folder, "house-rules", use), text));
  }

  it("gives types that a compiler takes, and that refuse what no action is", async () => {
    const source = (phase: string): string => `import type { Verdict } from "agent-governance-sdk/contract";
import { exampleAction, loadPlugin } from "agent-governance-sdk/harness";
export const verdict: Verdict = (await loadPlugin(".")).evaluate(exampleAction({ phase: "${phase}" }));
`;
    const compiler = join(repositoryRoot, "node_modules/.bin/tsc");
    const compile = async (name: string, phase: string): Promise<string> => {
      await writeFile(join(folder, "house-rules", name), source(phase));
      return terminal.run(`${compiler} --noEmit --strict --module nodenext --target es2023 ${name}; true`, commandMs);
    };
    expect((await compile("good.mts", "output")).trim()).to.equal("");
    expect(await compile("wrong.mts", "after")).to.match(/^wrong\.mts\(3,\d+\): error TS2322: /);
  });

  it("gives a plugin that passes its tests in the gateway's sandbox", async () => {
    const gateway = join(repositoryRoot, "dist/core/cli/main.js");
    const { stdout } = await promisify(execFile)(process.execPath, [
      gateway,
      "plugin",
      "test",
      join(folder, "house-rules"),
    ]);
    expect(stdout).to.include("2 cases, 0 failed");
  });

  it("gives a plugin that the gateway loads, and that judges the same there", async () => {
    const plugin = await openPlugin(join(folder, "house-rules"));
    const long = plugin.evaluate(exampleAction({ arguments: { path: `/${"x".repeat(64)}` } }));
    expect(long.findings[0]?.message).to.equal("expected a path of at most 64 characters");
    const answer = exampleAction({ phase: "output", output: { text: "BLUEBIRD" } });
    expect(plugin.evaluate(answer).redactions).to.have.length(1);
  });

  it("gives a plugin in C that judges the same in the gateway's sandbox and in the harness", async () => {
    for (const tool of ["echo", 'a"tool":"echo', "ключ\\", "echo2"]) {
      const path = join(folder, "no-tool");
      const [sandboxed, harnessed] = [await openPlugin(path, { tool }), await loadPlugin(path, { settings: { tool } })];
      for (const called of [tool, "echo", "ech", 'x"', "tool"]) {
        const action = exampleAction({ tool: called, arguments: { tool: "echo", settings: [{ tool }] } });
        const decisions = [sandboxed, harnessed].map((plugin) => plugin.evaluate(action).decision);
        expect(decisions, `${tool} ${called}`).to.deep.equal(Array(2).fill(called === tool ? "block" : "abstain"));
      }
    }
  });

  it("gives a plugin in C that blocks a call of a real client, before the upstream hears of it", async () => {
    const world = await openWorld({
      servers: () => ({ every: everythingServer() }),
      policy: `plugins: [{ path: "${join(folder, "no-tool")}", phases: [input], settings: { tool: echo } }]`,
    });
    try {
      const client = await world.connect("v2 modern");
      const blocked = await client.callTool("echo", { message: "hello" });
      expect(blocked.isError).to.equal(true);
      expect(world.calls("every")).to.deep.equal([]);
      const [record] = await world.evidence.recordsOf();
      expect(JSON.stringify(record?.evaluation)).to.include("no-tool.named");
      const passed = await client.callTool("get-sum", { a: 1, b: 2 });
      expect(passed.isError ?? false).to.equal(false);
      expect(world.calls("every")).to.have.length(1);
    } finally {
      await world.stop();
    }
  });

  it("installs what the README names, and no more", async () => {
    const files = (await terminal.run("find node_modules/agent-governance-sdk -type f", commandMs)).split("\n");
    const folders = new Set(
      files.map((file) => /agent-governance-sdk\/([^/]+)\//.exec(file)?.[1]).filter((name) => name !== undefined),
    );
    expect([...folders]).to.have.members(["assembly", "c", "contract", "dist", "evidence", "example", "rust"]);
  });

  it("names all that the package exports", () => {
    for (const part of ["assembly", "contract", "harness"]) {
      const source = readFileSync(join(repositoryRoot, `sdk/${part}/index.ts`), "utf8");
      const names = [...source.matchAll(/\{([^}]*)\}/g)].flatMap(([, list = ""]) => list.split(","));
      const missing = names
        .map((name) => name.replace(/^\s*type\s/, "").trim())
        .filter((name) => name !== "" && !new RegExp(`\`${name}\\b`).test(readme));
      expect(missing, part).to.deep.equal([]);
    }
  });
});
