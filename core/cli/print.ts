import { GatewayError } from "../kernel/error.ts";

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
