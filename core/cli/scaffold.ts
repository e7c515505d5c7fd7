import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { GatewayError } from "../action/error.ts";
import { describeFileError } from "../config/document.ts";
import { extensionName } from "../policy/schema.ts";

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

/** A folder below `sdk/` whose files a scaffold takes over, and where to. */
interface ScaffoldPart {
  readonly from: string;
  /** A folder of the new extension; its top where there is none. */
  readonly to?: string;
}

/**
 * Writes a new extension from its parts, `{{key}}` replaced from `values`, and returns the files. Throws
 * EXTENSION_INVALID where the folder is not empty.
 */
export async function writeScaffold(
  parts: readonly ScaffoldPart[],
  folder: string,
  values: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  const files = (await Promise.all(parts.map(listPart))).flat();
  try {
    await mkdir(folder, { recursive: true });
    if ((await readdir(folder)).length > 0) throw unusable(folder, "is not empty; expected a new or empty folder");
    for (const { source, path } of files) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), fill(await readFile(source, "utf8"), values), { flag: "wx" });
    }
    return files.map(({ path }) => path);
  } catch (cause) {
    if (cause instanceof GatewayError) throw cause;
    const found = `cannot be written: ${describeFileError(cause)}`;
    throw unusable(folder, `${found}; expected a new or empty folder that you may write to`);
  }
}

interface ScaffoldFile {
  readonly source: string;
  /** Below the new extension's folder. */
  readonly path: string;
}

async function listPart({ from, to = "" }: ScaffoldPart): Promise<readonly ScaffoldFile[]> {
  const top = join(installation, "sdk", from);
  const entries = await readdir(top, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return files.toSorted().map((source) => {
    const path = join(to, relative(top, dirname(source)), dotFiles[basename(source)] ?? basename(source));
    return { source, path };
  });
}

function fill(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{\{(\w+)\}\}/g, (placeholder, key: string) => values[key] ?? placeholder);
}

function unusable(folder: string, reason: string): GatewayError {
  return new GatewayError("EXTENSION_INVALID", `\`${folder}\` ${reason}`);
}
