import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { print } from "./print.ts";
import { installation, readNewName, writeScaffold } from "./scaffold.ts";

interface NewOptions {
  readonly sdk?: string;
  readonly gateway?: string;
  readonly json?: true;
}

/** `gateway plugin new`. */
export async function createPlugin(
  folder: string,
  { sdk, gateway, json }: NewOptions,
  command: Command,
): Promise<void> {
  const name = readNewName(folder, command);
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

/** The compiler version that builds the shipped plugins. */
async function compilerVersion(): Promise<string> {
  const { devDependencies } = JSON.parse(await readFile(join(installation, "package.json"), "utf8"));
  return devDependencies.assemblyscript;
}
