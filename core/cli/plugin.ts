import { readFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { Command } from "commander";
import { signCommand, signingKeysCommand } from "./extension-sign.ts";
import { inspectCommand, verifyCommand } from "./extension-verify.ts";
import { installation, parseNewFolder, writeScaffold } from "./pack.ts";
import { benchCommand } from "./plugin-bench.ts";
import { buildCommand } from "./plugin-build.ts";
import { testCommand } from "./plugin-test.ts";
import { listPluginsCommand } from "./policies.ts";
import { print } from "./print.ts";

/** `gateway plugin`. */
export function pluginCommand(): Command {
  return new Command("plugin")
    .description("WASM plugins")
    .addCommand(newPluginCommand())
    .addCommand(buildCommand())
    .addCommand(testCommand())
    .addCommand(benchCommand())
    .addCommand(signCommand("plugin"))
    .addCommand(verifyCommand("plugin"))
    .addCommand(inspectCommand("plugin"))
    .addCommand(signingKeysCommand())
    .addCommand(listPluginsCommand());
}

interface NewOptions {
  readonly sdk?: string;
  readonly gateway?: string;
  readonly json?: true;
}

/** `gateway plugin new`. */
function newPluginCommand(): Command {
  return new Command("new")
    .description("write a plugin that builds, tests and signs with npm, to begin with")
    .argument("<folder>", "a new folder; its last part is the plugin's name", parseNewFolder)
    .option("--sdk <spec>", "what npm installs as agent-governance-sdk (default: the one beside this gateway)")
    .option("--gateway <spec>", "what npm installs as agent-governance-gateway (default: this gateway)")
    .option("--json", "print JSON")
    .action(makePlugin);
}

async function makePlugin(folder: string, { sdk, gateway, json }: NewOptions): Promise<void> {
  const name = basename(resolve(folder));
  const files = await writeScaffold("plugin", folder, {
    name,
    zeros: "0".repeat(64),
    sdk: sdk ?? `file:${join(installation, "sdk")}`,
    gateway: gateway ?? `file:${resolve(installation)}`,
    assemblyscript: await compilerVersion(),
  });
  if (json) return print(JSON.stringify({ ok: true, name, folder: resolve(folder), files }));
  print(`${name}: ${files.length} files in ${folder}`);
  print(`next: cd ${folder} && npm install && npm run build && npm test`);
}

/** The version that the shipped plugins are built with. */
async function compilerVersion(): Promise<string> {
  const { devDependencies } = JSON.parse(await readFile(join(installation, "package.json"), "utf8"));
  return devDependencies.assemblyscript;
}
