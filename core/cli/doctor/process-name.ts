import { readFile } from "node:fs/promises";
import { escapeHidden } from "../../kernel/visible-text.ts";

/** What the system calls a process, printable; `?` where it does not tell. */
export async function processName(pid: number): Promise<string> {
  const name = await readFile(`/proc/${pid}/comm`, "utf8").catch(() => "?");
  return escapeHidden(name.trim());
}
