import { cpSync, existsSync, readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join, relative } from "node:path";
import { expect } from "chai";
import type { Verdict } from "../../../core/action/policy.ts";
import { PluginBreach } from "../../../core/plugin/breach.ts";
import { exampleAction } from "../../../sdk/harness/index.ts";
import { everythingServer } from "../../e2e/client/server-program.ts";
import { openWorld } from "../../e2e/client/world.ts";
import { runCommand } from "../../support/command-host.ts";
import { rejection } from "../../support/ledger-world.ts";
import { openPlugin } from "../../support/plugin.ts";
import type { Finished } from "./run.ts";

const languages = [
  { language: "c", source: "plugin.c", library: "gateway_plugin.h" },
  { language: "rust", source: "plugin.rs", library: "gateway_plugin.rs" },
] as const;
const path = process.env.PATH ?? "";

describe("gateway plugin new --language", () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "plugin-language-"));
  });
  after(() => rm(folder, { recursive: true }));

  const gateway = (...args: readonly string[]): Promise<Finished> => runCommand(args, { PATH: path });
  const expectDone = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await gateway(...args);
    expect({ code, stderr }, stdout).to.deep.equal({ code: 0, stderr: "" });
    return stdout;
  };

  for (const { language, source, library } of languages) {
    describe(language, () => {
      let plugin: string;
      const copyTo = (name: string): string => {
        const copy = join(folder, language, name);
        cpSync(plugin, copy, { recursive: true });
        return copy;
      };

      before(async () => {
        plugin = join(folder, language, "keep-in");
        expect(await expectDone("plugin", "new", plugin, "--language", language)).to.include("next: cd ");
        expect(await expectDone("plugin", "build", plugin)).to.match(/^keep-in 1\.0\.0: built, /);
      });

      it("writes a folder that builds without npm, the same bytes elsewhere, and passes its tests, signed too", async () => {
        const elsewhere = copyTo("else/where");
        await rm(join(elsewhere, "plugin.wasm"));
        await expectDone("plugin", "build", elsewhere);
        for (const file of ["plugin.wasm", "plugin.yaml"]) {
          expect(readFileSync(join(elsewhere, file)).equals(readFileSync(join(plugin, file))), file).to.equal(true);
        }
        expect(readFileSync(join(plugin, "plugin.wasm")).includes(folder)).to.equal(false);
        const key = join(folder, `${language}.key`);
        await expectDone("plugin", "keys", "new", key);
        expect(await expectDone("plugin", "sign", elsewhere, "--key", key)).to.include("signed by");
        expect(await expectDone("plugin", "test", elsewhere)).to.match(/^9 cases, 0 failed$/m);
      });

      it("finds what the settings name as it is spelled, whatever stands around it", async () => {
        for (const text of ["bird", '"', "\\", "\\n", "\n", 'a"b', "ключ", "😀", "{", '","x":"']) {
          const policy = await openPlugin(plugin, { text });
          for (const value of [
            "",
            "a",
            "bird",
            "\\bird",
            "\nbird",
            '\\"',
            "one\nightjar",
            "мой ключ\\",
            "x😀",
            'a\\"b',
            "{}",
          ]) {
            for (const [held, texts] of [
              [{ value: [1, null, { deep: value }] }, ["value", "deep", value]],
              [{ [value]: true, text: {} }, [value, "text"]],
            ] as const) {
              const expected = texts.some((each) => each.includes(text)) ? "block" : "abstain";
              const action = exampleAction({ tool: text, arguments: held });
              expect(policy.evaluate(action).decision, JSON.stringify([text, held])).to.equal(expected);
            }
          }
        }
      });

      it("blocks an input that is longer than it reads, and judges 60 KiB", async () => {
        const policy = await openPlugin(plugin);
        const judge = (value: string): Verdict => policy.evaluate(exampleAction({ arguments: { value } }));
        expect(judge("b".repeat(60 * 1_024)).decision).to.equal("abstain");
        expect(judge(`${"b".repeat(60 * 1_024)}bluebird`).findings[0]?.rule).to.equal("keep-in.text");
        const long = exampleAction({ arguments: { value: "b".repeat(600 * 1_024) } });
        expect(await rejection(policy.settle(long))).to.be.instanceOf(PluginBreach);
      });

      it("blocks a call of a real client before the upstream hears of it, and passes the others", async () => {
        const world = await openWorld({
          servers: () => ({ every: everythingServer() }),
          policy: `plugins: [{ path: "${plugin}", phases: [input] }]`,
        });
        try {
          const client = await world.connect("v2 modern");
          expect((await client.callTool("echo", { message: "a bluebird flies" })).isError).to.equal(true);
          expect(world.calls("every")).to.deep.equal([]);
          const [record] = await world.evidence.recordsOf();
          expect(JSON.stringify(record?.evaluation)).to.include("keep-in.text");
          expect((await client.callTool("echo", { message: "a nightjar flies" })).isError ?? false).to.equal(false);
          expect(world.calls("every")).to.have.length(1);
        } finally {
          await world.stop();
        }
      });

      it("names each fault by its place, and leaves the last module", async () => {
        const broken = copyTo("broken");
        const file = join(broken, "src", source);
        const text = await readFile(file, "utf8");
        const line = text.slice(0, text.indexOf("evaluate(")).split("\n").length;
        await writeFile(file, text.replace("evaluate(", "evaluate(]"));
        const { code, stdout } = await gateway("plugin", "build", broken);
        expect(code).to.equal(1);
        expect(stdout)
          .to.include("does not compile\n")
          .and.to.match(new RegExp(`^src/${source}:${line}:\\d+: error`, "m"));
        const [left, last] = [broken, plugin].map((place) => readFileSync(join(place, "plugin.wasm")));
        expect(left?.equals(last ?? Buffer.alloc(0))).to.equal(true);
      });

      it(`needs ${library} beside its source`, async () => {
        const alone = copyTo("alone");
        await rm(join(alone, "src", library));
        const { code, stdout } = await gateway("plugin", "build", alone);
        expect({ code, named: stdout.includes("gateway_plugin") }).to.deep.equal({ code: 1, named: true });
      });

      it("has no use for npm's options", async () => {
        for (const option of ["--sdk", "--gateway"]) {
          const none = join(folder, "none");
          const { code, stderr } = await gateway("plugin", "new", none, "--language", language, option, "^1.0.0");
          expect(existsSync(none)).to.equal(false);
          expect({ code, stderr: stderr.split("\n")[0] }).to.deep.equal({
            code: 2,
            stderr: `error: expected --sdk and --gateway with --language as alone, got ${option} with --language ${language}`,
          });
        }
      });
    });
  }

  it("is AssemblyScript where nothing is said, and knows no other language", async () => {
    const files = async (...args: readonly string[]): Promise<unknown> =>
      JSON.parse(await expectDone("plugin", "new", "--json", ...args)).files;
    expect(await files(join(folder, "one"))).to.deep.equal(await files(join(folder, "two"), "--language", "as"));
    const { code, stderr } = await gateway("plugin", "new", join(folder, "three"), "--language", "go");
    expect(code).to.equal(2);
    expect(stderr).to.include("'go' is invalid").and.to.include("Allowed choices are as, c, rust");
  });
});

describe("gateway plugin build, by the compilers of the PATH", () => {
  let folder: string;
  let bin: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "plugin-compiler-"));
    bin = join(folder, "bin");
    await mkdir(bin);
    for (const { language } of languages) {
      await runCommand(["plugin", "new", join(folder, language), "--language", language], { PATH: path });
    }
  });
  afterEach(() => rm(folder, { recursive: true }));

  const build = (language: string, searched: string): Promise<Finished> =>
    runCommand(["plugin", "build", join(folder, language)], { PATH: searched });
  const stub = async (name: string, script: string): Promise<void> => {
    await writeFile(join(bin, name), `#!/bin/sh\n${script}\n`);
    await chmod(join(bin, name), 0o755);
  };
  const cPackages = "; on Debian, `apt-get install clang lld`\n";
  const rustPackages = "; on Debian, `apt-get install rustc libstd-rust-dev-wasm32 lld`";

  it("says which compiler of C is missing, and what brings it", async () => {
    const expected = `invalid plugin: \`${folder}/c\`: expected \`clang\` and \`wasm-ld\` on the PATH, got no`;
    expect(await build("c", bin)).to.include({ code: 1, stdout: `${expected} \`clang\`${cPackages}` });
    await stub("clang", "exit 3");
    expect(await build("c", bin)).to.include({ code: 1, stdout: `${expected} \`wasm-ld\`${cPackages}` });
  });

  it("says what of Rust is missing, and what brings it", async () => {
    const expected = `\`${folder}/rust\`: expected \`rustc\` on the PATH with its library for wasm32-unknown-unknown, got`;
    const hint = `${rustPackages}; with rustup, \`rustup target add wasm32-unknown-unknown\`\n`;
    expect(await build("rust", bin)).to.include({ code: 1, stdout: `invalid plugin: ${expected} no \`rustc\`${hint}` });
    await stub("rustc", `echo ${folder}/not-installed`);
    const without = `invalid plugin: ${expected} \`${bin}/rustc\` without that library${hint}`;
    expect(await build("rust", bin)).to.include({ code: 1, stdout: without });
    await stub(
      "rustc",
      `[ "$1" = --print ] && { echo ${folder}; exit 0; }; echo 'error: linker \`rust-lld\` not found' >&2; exit 1`,
    );
    const linker = `invalid plugin: \`${folder}/rust\`: expected the linker \`rust-lld\`, got none${rustPackages}\n`;
    expect(await build("rust", bin)).to.include({ code: 1, stdout: linker });
  });

  it("passes over a `rustc` without the library for one that has it", async () => {
    await stub("rustc", `echo ${folder}/not-installed`);
    expect(await build("rust", `${bin}${delimiter}${path}`)).to.include({ code: 0 });
  });

  it("finds the programs of a relative PATH from where it is called, not in the plugin's folder", async () => {
    await stub("clang", "echo of the PATH >&2; exit 1");
    await stub("wasm-ld", "exit 1");
    const stdout = `invalid plugin: \`${folder}/c\` does not compile\nof the PATH\n`;
    expect(await build("c", relative(process.cwd(), bin))).to.include({ code: 1, stdout });
  });

  it("compiles one source, not whichever of two", async () => {
    await symlink(join(folder, "c/src/plugin.c"), join(folder, "rust/src/plugin.c"));
    const got = "got `src/plugin.c` and `src/plugin.rs`; remove the others";
    const stdout = `invalid plugin: \`${folder}/rust\`: expected one source to compile, ${got}\n`;
    expect(await build("rust", path)).to.include({ code: 1, stdout });
  });
});
