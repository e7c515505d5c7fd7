import { rename, rm, writeFile } from "node:fs/promises";
import { GatewayError } from "../action/error.ts";

/** One line of data. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** One line of speech. */
export function say(text: string): void {
  process.stderr.write(`gateway: ${text}\n`);
}

/** How far long work has come: for who looks on, and for no log. */
export function tellProgress(text: string): void {
  if (process.stderr.isTTY) say(text);
}

/**
 * What the work answers. What is wrong with an extension is printed as data, as text or as JSON, and sets the exit code to
 * 1; then undefined.
 */
export async function tellFaults<T>(json: true | undefined, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof GatewayError && /^(?:PACK|PLUGIN|EXTENSION)_INVALID$/.test(error.code))) throw error;
    process.exitCode = 1;
    print(json ? JSON.stringify({ ok: false, message: error.message, ...error.data }) : error.message);
    return undefined;
  }
}

/** In one step: a gateway that watches the folder reads the old content or the new. */
export async function replaceFile(path: string, content: string | Uint8Array): Promise<void> {
  const next = `${path}.next`;
  try {
    await writeFile(next, content, { flag: "wx" });
    await rename(next, path);
  } catch (cause) {
    await rm(next, { force: true });
    const reason = (cause as NodeJS.ErrnoException).code ?? String(cause);
    throw new GatewayError("EXTENSION_INVALID", `\`${path}\` cannot be written: ${reason}`, { cause });
  }
}
