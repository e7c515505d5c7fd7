// Has a program answer what it is asked on stdin, a line of JSON each, on stdout, a line of JSON each.
import { createInterface } from "node:readline";

/** `answer` resolves with the answer to one question; what it throws is the answer `{error}`. */
export async function answerLines(answer) {
  for await (const line of createInterface({ input: process.stdin })) {
    const told = await answer(JSON.parse(line)).catch((error) => ({ error: shown(error) }));
    process.stdout.write(`${JSON.stringify(told)}\n`);
  }
}

/** What the libraries' errors have in common, each under the name that it has for it. */
export function shown(error) {
  const { name, message, status = error.statusCode, code = error.data?.error?.code } = error;
  return { name, message, status, code };
}
