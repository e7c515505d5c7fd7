import { GatewayError } from "../action/error.ts";

/** Prints one line of data on standard output. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Prints one line for the person at the terminal on standard error. */
export function say(text: string): void {
  process.stderr.write(`gateway: ${text}\n`);
}

/** Prints progress on a terminal; nothing in a log or a pipe. */
export function sayProgress(text: string): void {
  if (process.stderr.isTTY) say(text);
}

/**
 * Resolves with the result of `work`. Where it throws faults of an extension, prints them as data, as text or JSON, sets
 * the exit code to 1 and resolves with undefined.
 */
export async function printFaults<T>(json: true | undefined, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof GatewayError && /^(?:PACK|PLUGIN|ENGINE|EXTENSION)_INVALID$/.test(error.code))) throw error;
    process.exitCode = 1;
    print(json ? JSON.stringify({ ok: false, message: error.message, ...error.data }) : error.message);
    return undefined;
  }
}

/** Quotes a text as one word of a POSIX shell. */
export function quotePosix(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Returns a text as one word of a POSIX shell, quoted where it has to be. */
export function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : quotePosix(text);
}
