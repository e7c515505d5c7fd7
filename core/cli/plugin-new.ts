import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { compiledLanguages } from "./plugin-language.ts";
import { print } from "./print.ts";
import { installation, readNewName, writeScaffold } from "./scaffold.ts";

interface NewOptions {
  readonly language: "as" | keyof typeof compiledLanguages;
  readonly sdk?: string;
  readonly gateway?: string;
  readonly json?: true;
}

/** `gateway plugin new`. */
export async function createPlugin(folder: string, options: NewOptions, command: Command): Promise<void> {
  const { language, sdk, gateway, json } = options;
  const name = readNewName(folder, command);
  if (language !== "as" && (sdk ?? gateway) !== undefined) {
    const got = sdk === undefined ? "--gateway" : "--sdk";
    command.error(
      `error: expected --sdk and --gateway with --language as alone, got ${got} with --language ${language}`,
    );
  }
  const values = { name, zeros: "0".repeat(64) };
  const [files, steps] =
    language === "as"
      ? [await writeAssembly(folder, values, options), "npm install && npm run build && npm test"]
      : [await writeCompiled(folder, values, language), "gateway plugin build && gateway plugin test"];
  if (json) return print(JSON.stringify({ ok: true, name, folder: resolve(folder), files }));
  print(`${name}: ${files.length} files in ${folder}`);
  print(`next: cd ${folder} && ${steps}`);
}

type Values = Readonly<Record<string, string>>;

async function writeAssembly(folder: string, values: Values, { sdk, gateway }: NewOptions): Promise<readonly string[]> {
  return writeScaffold([{ from: "template/plugin" }], folder, {
    ...values,
    ...(await readPackages()),
    ...(sdk === undefined ? {} : { sdk }),
    ...(gateway === undefined ? {} : { gateway }),
  });
}

/** Writes a plugin without packages of npm: the library of the ABI lies beside the source. */
async function writeCompiled(
  folder: string,
  values: Values,
  language: keyof typeof compiledLanguages,
): Promise<readonly string[]> {
  const { source, library, sdkFolder, packages } = compiledLanguages[language];
  const parts = [
    { from: "template/compiled" },
    { from: `template/${language}`, to: "src" },
    { from: sdkFolder, to: "src" },
  ];
  return writeScaffold(parts, folder, { ...values, source, library, packages });
}

/**
 * The npm specs of the packages that a plugin needs: the releases of this gateway's version, or its own folders in a clone, and the
 * compiler that builds the shipped plugins.
 */
async function readPackages(): Promise<Readonly<Record<"sdk" | "gateway" | "assemblyscript", string>>> {
  const { version, devDependencies } = JSON.parse(await readFile(join(installation, "package.json"), "utf8"));
  const { assemblyscript } = devDependencies;
  const sdkFolder = join(installation, "sdk");
  if (existsSync(join(sdkFolder, "package.json")))
    return { sdk: `file:${sdkFolder}`, gateway: `file:${resolve(installation)}`, assemblyscript };
  return { sdk: `^${version}`, gateway: `^${version}`, assemblyscript };
}
