import { readFile, stat } from "node:fs/promises";
import type { ExtensionFolder } from "../extension/folder.ts";
import { refusalError } from "../extension/refusal.ts";
import { toSignatureLine } from "../extension/signature-file.ts";
import { isRefused, readSigned } from "../extension/verifier.ts";
import { GatewayError } from "../kernel/error.ts";

const mostBytes = 1_048_576;

/**
 * A line for a folder's signature file, out of a Sigstore bundle that another tool wrote. `statementOf` says what is to
 * be signed, given when. Throws EXTENSION_INVALID and EXTENSION_REFUSED.
 */
export async function readForeignBundle(
  file: string,
  folder: ExtensionFolder,
  statementOf: (issuedAt: string) => Buffer,
): Promise<string> {
  const line = toSignatureLine(await read(file));
  if (line === undefined) throw invalid(file, "expected a Sigstore bundle, got something else");
  const signed = readSigned({ ...folder, signature: Buffer.from(line) });
  if (isRefused(signed)) throw refusalError(file, signed);
  if (signed.bundles[0].payload.equals(statementOf(signed.statement.issuedAt))) return line;
  throw invalid(file, "expected a signature of what `--statement` prints, got one of another statement");
}

async function read(file: string): Promise<string> {
  try {
    const found = await stat(file);
    if (found.isFile() && found.size <= mostBytes) return await readFile(file, "utf8");
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code ?? String(cause);
    throw new GatewayError("EXTENSION_INVALID", `\`${file}\` cannot be read: ${reason}`, { cause });
  }
  throw invalid(file, `expected a file of at most ${mostBytes} bytes`);
}

function invalid(file: string, text: string): GatewayError {
  return new GatewayError("EXTENSION_INVALID", `\`${file}\`: ${text}`);
}
