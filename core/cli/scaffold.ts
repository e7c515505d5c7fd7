import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { GatewayError } from "../action/error.ts";
import { extensionName } from "../policy/schema.ts";
import type { ExtensionKind } from "../trust/verified-extension.ts";

/** The folder of `package.json`; compiled code is three folders below it. */
export const installation: string = fileURLToPath(new URL("../../../", import.meta.url));

/** npm does not package files named `.gitignore`: templates have them without the dot. */
const dotFiles: Readonly<Record<string, string>> = { gitignore: ".gitignore" };

/** Returns the name of an extension in a new folder: its last part. Ends with a usage error where that is no name. */
export function readNewName(folder: string, command: Command): string {
  const name = basename(resolve(folder));
  const { pattern, maxLength, expected: shape } = extensionName;
  if (new RegExp(pattern).test(name) && name.length <= maxLength) return name;
  const expected = `a name that is ${shape}, of at most ${maxLength} characters`;
  return command.error(`error: expected the last part of \`${folder}\` to be ${expected}`);
}

/**
 * Writes a new extension from its template, `{{key}}` replaced from `values`, and returns the files. Throws
 * EXTENSION_INVALID where the folder is not empty.
 */
export async function writeScaffold(
  kind: ExtensionKind,
  folder: string,
  values: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  const template = join(installation, "sdk", "template", kind);
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
  return text.replace(/\{\{(\w+)\}\}/g, (placeholder, key: string) => values[key] ?? placeholder);
}

function unusable(folder: string, reason: string): GatewayError {
  return new GatewayError("EXTENSION_INVALID", `\`${folder}\` ${reason}; expected a new or empty folder`);
}
