import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { expect } from "chai";
import { repositoryRoot } from "../check/source-tree.ts";

const run = promisify(execFile);
const program = fileURLToPath(new URL("../../core/cli/main.js", import.meta.url));
/** Times the CPU of Node itself with an empty program: 0.06 s of Node alone are at most 0.2 s of a light command. */
const maxTimesOfNode = 0.2 / 0.06;
const attempts = 8;

/** What may be loaded before a command runs: its description, and the words that its options choose from. */
const descriptions =
  /^core\/(?:action\/[a-z-]+|compose\/identity|store\/(?:key-range|optimizer)|usage\/usage-(?:report|row)|cli\/(?:main|program|failure|print|command\/[a-z-]+))\.js$/;
const packages = new Set(["commander"]);

describe("a light command line", () => {
  for (const words of [["--version"], ["--help"], ["approvals", "--help"], ["evidence", "verify", "--help"]]) {
    const line = `gateway ${words.join(" ")}`;

    it(`\`${line}\` loads descriptions of commands only, and no code of theirs`, async () => {
      const loaded = await loadedBy(words);
      expect(loaded).to.include("core/cli/program.js");
      expect(loaded.filter((path) => path.startsWith("core/") && !descriptions.test(path))).to.deep.equal([]);
      const names = loaded.map((path) => /^node_modules\/([^/]+)/.exec(path)?.[1]).filter((name) => name !== undefined);
      expect(names.filter((name) => !packages.has(name))).to.deep.equal([]);
    });
  }

  for (const word of ["--version", "--help"]) {
    it(`\`gateway ${word}\` takes less than 0.2 s of CPU where Node itself takes 0.06`, async () => {
      const times: number[] = [];
      for (let attempt = 0; attempt < attempts; attempt++) {
        times.push((await cpuSeconds(program, word)) / (await cpuSeconds("-e", "0")));
        if ((times.at(-1) ?? maxTimesOfNode) < maxTimesOfNode) break;
      }
      expect(Math.min(...times)).to.be.below(maxTimesOfNode);
    });
  }
});

/** The modules that a command line loads, by V8's coverage of it, from the root of the compiled code or the repository. */
async function loadedBy(words: readonly string[]): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), "light-"));
  try {
    await run(process.execPath, [program, ...words], { env: { ...process.env, NODE_V8_COVERAGE: folder } });
    const files = await Promise.all((await readdir(folder)).map((name) => readFile(join(folder, name), "utf8")));
    const urls = files.flatMap((text) =>
      (JSON.parse(text).result as readonly { readonly url: string }[]).map(({ url }) => url),
    );
    const dist = pathToFileURL(join(repositoryRoot, "dist/")).href;
    return urls
      .filter((url) => url.startsWith("file:"))
      .map((url) => (url.startsWith(dist) ? url.slice(dist.length) : url.replace(/^.*\/(?=node_modules\/)/, "")));
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** User and system time of one run, as the process itself measures it at its end. */
async function cpuSeconds(...words: readonly string[]): Promise<number> {
  const probe = `process.on("exit", () => { const { user, system } = process.cpuUsage(); process.stderr.write(String((user + system) / 1e6)); })`;
  const { stderr } = await run(process.execPath, [
    "--import",
    `data:text/javascript,${encodeURIComponent(probe)}`,
    ...words,
  ]);
  return Number(stderr);
}
