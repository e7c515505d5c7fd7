import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { PackFolders, packOf } from "../../support/policy-pack.ts";
import { abstain, pluginFiles } from "../../support/wasm-plugin.ts";

const program = fileURLToPath(new URL("../../../core/cli/main.js", import.meta.url));
const expecting = (decision: string): string =>
  `cases:\n  - { name: any, action: { tool: a }, expect: { decision: ${decision} } }\n`;

describe("--watch", () => {
  const folders = new PackFolders();
  const children: ChildProcess[] = [];

  afterEach(async () => {
    for (const child of children.splice(0)) if (child.kill("SIGKILL")) await once(child, "close");
    await folders.remove();
  });

  /** `until` waits for text that has not been waited for yet. */
  function start(...args: readonly string[]): { until(text: string): Promise<void>; stop(): Promise<unknown> } {
    const child = spawn(process.execPath, [program, ...args, "--watch"]);
    children.push(child);
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (said += text));
    const until = async (text: string): Promise<void> => {
      for (let waited = 0; !said.includes(text); waited += 20) {
        if (waited > 15_000) throw new Error(`expected \`${text}\`, got \`${said}\``);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      said = said.slice(said.indexOf(text) + text.length);
    };
    const stop = async (): Promise<unknown> => {
      const ended = once(child, "exit");
      child.kill("SIGINT");
      return (await ended)[0];
    };
    return { until, stop };
  }

  it("runs a plugin's tests again after each change, also where they were broken, and ends with 0", async () => {
    const folder = await folders.write({ ...pluginFiles(abstain), "tests/a.yaml": expecting("block") });
    const watch = start("plugin", "test", folder);
    await watch.until("expected block, got abstain");
    await watch.until("waiting for a change");
    await writeFile(join(folder, "tests/a.yaml"), "cases: nonsense\n");
    await watch.until("cases: expected a list");
    await writeFile(join(folder, "tests/a.yaml"), expecting("abstain"));
    await watch.until("1 cases, 0 failed");
    expect(await watch.stop()).to.equal(0);
  });

  it("builds a plugin once for a change, and not again for what it wrote itself", async () => {
    const module = pluginFiles(abstain)["plugin.wasm"];
    const manifest = pluginFiles(abstain)["plugin.yaml"];
    const unsealed = manifest.replace(/^digest:.*\n/m, "");
    const folder = await folders.write({ "plugin.yaml": unsealed, "plugin.wasm": module });
    const watch = start("plugin", "build", folder);
    await watch.until("sample 1.0.0: built");
    await watch.until("waiting for a change");
    await writeFile(join(folder, "plugin.yaml"), manifest.replace("1.0.0", "1.0.1"));
    await watch.until("built");
    await rm(join(folder, "plugin.yaml"));
    await watch.until("expected a manifest");
    expect(await watch.stop()).to.equal(0);
  });

  it("lints and tests a pack", async () => {
    const rule = "  - { id: sample.a, title: A, decision: allow, match: { tool: a } }\n";
    const folder = await folders.write(packOf(rule));
    const [lint, test] = [start("pack", "lint", folder), start("pack", "test", folder)];
    await Promise.all([lint.until("ok, 1 rules"), test.until("0 cases, 0 failed")]);
    await Promise.all([lint.until("waiting"), test.until("waiting")]);
    await writeFile(
      join(folder, "rules/b.yaml"),
      `rules:\n${rule.replace("sample.a", "sample.b").replace("tool: a", "tool: b")}`,
    );
    await Promise.all([lint.until("ok, 2 rules"), test.until("0 cases, 0 failed")]);
    expect(await Promise.all([lint.stop(), test.stop()])).to.deep.equal([0, 0]);
  });
});
