import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { nodeFlag } from "../bench/target.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { cloneRepository } from "../support/package.ts";
import { runProgram } from "../support/program.ts";
import { awaitReady } from "../support/ready-line.ts";
import { carryOut, parseContainerfile } from "./container-build.ts";

const file = join(repositoryRoot, "core/cli/deploy/Containerfile");
const instructions = parseContainerfile(readFileSync(file, "utf8"));
/** Where the Node of the image lies: that of a package, for which `.ci/run` runs `npm rebuild node`. */
const imageNode = join(repositoryRoot, "node_modules/node/bin");

/** What the last instruction of that word says. */
function last(word: string): string {
  return instructions.findLast((instruction) => instruction.word === word)?.rest ?? "";
}

describe("the Containerfile", function () {
  this.timeout(900_000); // it installs twice
  let folder: string;
  /** Where the image's program lies. */
  let built: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "container-"));
    const context = join(folder, "context");
    await cloneRepository(context);
    built = await carryOut(file, context, folder);
  });

  after(() => rm(folder, { recursive: true, force: true }));

  it("builds, with nothing but what it copies, a gateway that serves and writes to its data folder alone", async () => {
    const [command = "", ...args] = JSON.parse(last("ENTRYPOINT")) as string[];
    const before = await filesOf(built);
    const child = spawn(command, [...args, "serve", "--data", join(folder, "data"), "--port", "0"], {
      cwd: built,
      env: { PATH: `${imageNode}:${process.env.PATH}`, NODE_ENV: "production" },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const ready = await awaitReady(child, { event: "ready" }, 60_000);
    const response = await fetch(`http://127.0.0.1:${ready.port("gateway_port")}/health`);
    expect(((await response.json()) as { status: string }).status).to.equal("ok");
    expect(await ready.stop("SIGTERM", 15_000)).to.equal(0);
    expect(await filesOf(built)).to.deep.equal(before);
  });

  it("holds the package that npm has, and the packages that run", async () => {
    const packages = await readdir(join(built, "node_modules"));
    expect(packages)
      .to.include.members(["koa", "@cedar-policy", "pg"])
      .and.not.include.members(["mocha", "typescript"]);
    const archive = (await readdir(join(folder, "build/src"))).filter((name) => name.endsWith(".tgz"));
    expect(archive).to.have.length(1);
    const { stdout } = await runProgram("tar", ["-tzf", join(folder, "build/src", archive[0] ?? "")]);
    const packed = stdout
      .trim()
      .split("\n")
      .map((path) => path.replace(/^package\//, ""));
    const held = Object.keys(await filesOf(built)).map((path) => path.slice(built.length + 1));
    expect(held.filter((path) => !path.startsWith("node_modules/")).toSorted()).to.deep.equal(packed.toSorted());
  });

  it("begins a pack and a plugin with what it holds", async () => {
    const [command = "", ...args] = JSON.parse(last("ENTRYPOINT")) as string[];
    const program = args.at(-1) ?? "";
    for (const kind of ["pack", "plugin"]) {
      const made = join(folder, `new-${kind}`);
      const { code, stderr } = await runProgram(command, [join(built, program), kind, "new", made]);
      expect(code, stderr).to.equal(0);
      expect(await readdir(made)).to.include(`${kind}.yaml`);
    }
  });

  it("has the Node that `.ci/run` tests on beside its own", async () => {
    const { stdout } = await runProgram(join(imageNode, "node"), ["--version"]);
    const major = /^v(\d+)\./.exec(stdout)?.[1];
    for (const { rest } of instructions.filter(({ word }) => word === "FROM")) {
      expect(rest).to.match(new RegExp(`^node:${major}-bookworm-slim( |$)`));
    }
  });

  it("runs Node with the flag of the systemd unit, of `npm start` and of the benches", () => {
    const [, flag] = JSON.parse(last("ENTRYPOINT")) as string[];
    expect(flag).to.equal(nodeFlag);
    for (const path of ["core/cli/deploy/gateway.service", "package.json"]) {
      const text = readFileSync(join(repositoryRoot, path), "utf8");
      expect(text, path).to.match(new RegExp(`node ${nodeFlag} \\S*dist/core/cli/main\\.js serve`));
    }
  });

  it("runs as nobody in particular, by number, so that a cluster can see that it is not root", () => {
    expect(last("USER")).to.match(/^[1-9]\d+:[1-9]\d+$/);
    expect(instructions.findIndex(({ word }) => word === "USER")).to.be.below(
      instructions.findIndex(({ word }) => word === "ENTRYPOINT"),
    );
  });
});

/** Each file below a folder, with when it was changed. */
async function filesOf(root: string): Promise<Readonly<Record<string, number>>> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return Object.fromEntries(await Promise.all(paths.map(async (path) => [path, (await stat(path)).mtimeMs] as const)));
}
