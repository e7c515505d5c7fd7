import { writeFile } from "node:fs/promises";
import { Command, Option } from "commander";
import { asciiJson } from "../kernel/ascii-json.ts";
import { contentDigest } from "../kernel/digest.ts";
import { GatewayError } from "../kernel/error.ts";
import { type AdminOptions, adminOption, askAdmin } from "./admin-client.ts";
import { print, say } from "./print.ts";
import { parseSessionId } from "./session-id.ts";

interface ExportOptions extends AdminOptions {
  readonly file: string;
  readonly redact: readonly string[];
  readonly json?: true;
}

interface ReportOptions extends ExportOptions {
  readonly format: "md" | "html" | "json";
}

/** `gateway evidence export`: a session's bundle, from a running gateway. */
export function evidenceExportCommand(): Command {
  return sessionCommand("export")
    .description("write all evidence of a session, with what is needed to verify it anywhere, into one file")
    .action(exportSession);
}

/** `gateway evidence report`: the same for a person to read. */
export function evidenceReportCommand(): Command {
  return sessionCommand("report")
    .description("write what happened in a session as a page for a person to read")
    .addOption(new Option("--format <format>", "how it is written").choices(["md", "html", "json"]).default("md"))
    .action(reportSession);
}

function sessionCommand(name: string): Command {
  return new Command(name)
    .argument("<session-id>", "as `GET /admin/v1/evidence/sessions` lists it", parseSessionId)
    .requiredOption("--file <path>", "where to write; must not exist yet")
    .option("--redact <seq.member.field>", "withhold a field: `12.arguments.password`; repeatable", addText, [])
    .addOption(adminOption())
    .option("--json", "print JSON: what was written where");
}

async function exportSession(session: string, options: ExportOptions): Promise<void> {
  await save(session, "export", new URLSearchParams(), options);
}

async function reportSession(session: string, options: ReportOptions): Promise<void> {
  await save(session, "report", new URLSearchParams({ format: options.format }), options);
}

async function save(session: string, what: string, query: URLSearchParams, options: ExportOptions): Promise<void> {
  for (const field of options.redact) query.append("redact", field);
  const body = await askAdmin(options, `/admin/v1/evidence/sessions/${session}/${what}?${query}`);
  try {
    // It may hold what agents sent and received: nobody else on this machine is to read it.
    await writeFile(options.file, body, { flag: "wx", mode: 0o600 });
  } catch (cause) {
    const why = (cause as NodeJS.ErrnoException).code === "EEXIST" ? "exists already" : "cannot be written";
    throw new GatewayError("INVALID_REQUEST", `\`${options.file}\` ${why}; choose another --file`, { cause });
  }
  const { file } = options;
  if (options.json) print(asciiJson({ session, file, bytes: body.length, digest: contentDigest(body) }));
  say(`wrote ${file}, ${body.length} bytes`);
}

function addText(text: string, texts: readonly string[]): readonly string[] {
  return [...texts, text];
}
