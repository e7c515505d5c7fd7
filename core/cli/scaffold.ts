import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { InvalidArgumentError } from "commander";
import { GatewayError } from "../kernel/error.ts";
import type { ExtensionKind } from "../kernel/verified-extension.ts";
import { nameRule } from "../policy/manifest.ts";

/** Beside `package.json`; compiled code lives two folders below it. */
export const installation: string = fileURLToPath(new URL("../../../", import.meta.url));
const templates = join(installation, "sdk", "template");

/** Dot files do not survive every way of packaging. */
const dotFiles: Readonly<Record<string, string>> = { gitignore: ".gitignore" };

/** Reads the folder of something new; its last part is the name. Throws where that is none. */
export function parseNewFolder(folder: string): string {
  const name = basename(resolve(folder));
  if (nameRule.pattern?.test(name) && name.length <= nameRule.max) return folder;
  throw new InvalidArgumentError(`expected a name that is ${nameRule.shape}, of at most ${nameRule.max} characters`);
}

/**
 * Writes a new extension from its template, `{{key}}` filled in from `values`; answers with the files. Throws
 * EXTENSION_INVALID where the folder holds something already.
 */
export async function writeScaffold(
  kind: ExtensionKind,
  folder: string,
  values: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  const template = join(templates, kind);
  const entries = await readdir(template, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  try {
    await mkdir(folder, { recursive: true });
    if ((await readdir(folder)).length > 0) throw unusable(folder, "is not empty");
    const written: string[] = [];
    for (const file of files.toSorted()) {
      const path = join(dirname(file), dotFiles[basename(file)] ?? basename(file)).slice(template.length + 1);
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), fill(await readFile(file, "utf8"), values), { flag: "wx" });
      written.push(path);
    }
    return written;
  } catch (cause) {
    if (cause instanceof GatewayError) throw cause;
    throw unusable(folder, `cannot be written: ${(cause as NodeJS.ErrnoException).code ?? String(cause)}`);
  }
}

function fill(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{\{(\w+)\}\}/g, (whole, key: string) => values[key] ?? whole);
}

function unusable(folder: string, reason: string): GatewayError {
  return new GatewayError("EXTENSION_INVALID", `\`${folder}\` ${reason}; expected a folder that is new, or empty`);
}
