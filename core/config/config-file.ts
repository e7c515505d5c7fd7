import { isUtf8 } from "node:buffer";
import { readFile, stat } from "node:fs/promises";
import type { FaultList } from "./fault.ts";

const mostBytes = 1_048_576;

/**
 * The text of a configuration file: a regular file of at most 1 MiB of UTF-8 without byte order mark and NUL.
 * Anything else is a fault, and the answer null.
 */
export async function readConfigFile(path: string, faults: FaultList): Promise<string | null> {
  let bytes: Buffer;
  try {
    const found = await stat(path);
    // A pipe or a device would make the start wait for ever.
    if (!found.isFile()) return refuse(`a file, got ${found.isDirectory() ? "a directory" : "a special file"}`, faults);
    if (found.size > mostBytes) return refuse(`at most ${mostBytes} bytes, got ${found.size}`, faults);
    bytes = await readFile(path);
  } catch (error) {
    return refuse(`a readable file, got ${reason(error)}`, faults);
  }
  if (!isUtf8(bytes)) return refuse("UTF-8, got invalid bytes", faults);
  const text = bytes.toString("utf8");
  if (text.startsWith("\ufeff")) return refuse("no byte order mark, got one", faults);
  return text.includes("\0") ? refuse("text, got a NUL character", faults) : text;
}

function refuse(expectedAndGot: string, faults: FaultList): null {
  faults.add("", `expected ${expectedAndGot}`);
  return null;
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  ENOTDIR: "no such file",
  EACCES: "permission denied",
  EPERM: "permission denied",
  ELOOP: "a loop of symbolic links",
  ENAMETOOLONG: "a name too long",
};

/** Throws what is no error of the file system. */
function reason(error: unknown): string {
  if (!(error instanceof Error && "code" in error)) throw error;
  return reasons[String(error.code)] ?? `error ${String(error.code)}`;
}
