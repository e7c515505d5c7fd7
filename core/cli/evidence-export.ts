import { writeFile } from "node:fs/promises";
import { contentDigest } from "../action/canonical-json.ts";
import { GatewayError } from "../action/error.ts";
import { asciiJson } from "../action/json.ts";
import { evidenceOperations } from "../evidence/operation.ts";
import type { AdminOperation } from "../operation/operation.ts";
import { type AdminOptions, fetchBytes, type Values } from "./admin-client.ts";
import { print, say } from "./print.ts";

interface ExportOptions extends AdminOptions {
  readonly file: string;
  readonly redact: readonly string[];
  readonly json?: true;
}

interface ReportOptions extends ExportOptions {
  readonly format: "md" | "html" | "json";
}

/** A session of 20,000 records, proofs and all, is some 70 MB that a busy gateway gathers between requests. */
const timeoutMs = 5 * 60_000;

/** `gateway evidence export`. */
export function exportSession(session: string, options: ExportOptions): Promise<void> {
  const values = { id: session, redact: options.redact };
  return save(session, evidenceOperations.exportSession, values, options);
}

/** `gateway evidence report`. */
export function reportSession(session: string, options: ReportOptions): Promise<void> {
  const values = { id: session, format: options.format, redact: options.redact };
  return save(session, evidenceOperations.reportSession, values, options);
}

/** Writes what an operation answers to a new file that only this user may read: it may hold what agents sent and received. */
async function save(session: string, operation: AdminOperation, values: Values, options: ExportOptions): Promise<void> {
  const { file, json } = options;
  const content = await fetchBytes(options, operation, values, timeoutMs);
  try {
    await writeFile(file, content, { flag: "wx", mode: 0o600 });
  } catch (cause) {
    const fault = (cause as NodeJS.ErrnoException).code === "EEXIST" ? "exists already" : "cannot be written";
    throw new GatewayError("INVALID_REQUEST", `\`${file}\` ${fault}; choose another --file`, { cause });
  }
  if (json) print(asciiJson({ session, file, bytes: content.length, digest: contentDigest(content) }));
  say(`wrote ${file}, ${content.length} bytes`);
}
