import { resolve } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import type { Erased, ErasureRequest } from "../evidence/erasure.ts";
import { compactRange } from "../store/compact.ts";
import { changeEvidence } from "./offline-ledger.ts";
import { currentUser, parseText } from "./requester.ts";

interface EraseOptions {
  readonly data: string;
  readonly tenant: string;
  readonly session?: string;
  readonly seq?: number;
  readonly field: readonly string[];
  readonly reason: string;
  readonly by?: string;
  readonly json?: true;
}

const fieldPattern = /^(?:\*|(?:arguments|output)\.[^\p{Cc}\p{Cs}]{0,256})$/u;

/** `gateway evidence erase`. */
export function evidenceEraseCommand(): Command {
  return new Command("erase")
    .description(
      "erase arguments and answers for good; records, proofs and checkpoints stay valid, and a record says so",
    )
    .requiredOption("-d, --data <folder>", "data folder; no gateway may run on it")
    .requiredOption("--tenant <name>", "whose evidence")
    .addOption(new Option("--session <id>", "in every record of this session").conflicts("seq"))
    .addOption(new Option("--seq <number>", "in this record alone").argParser(parseSeq))
    .requiredOption(
      "--field <pattern>",
      "`arguments.<name>`, `output.<name>`, with `*` for any characters, or `*`; repeatable",
      addField,
    )
    .requiredOption("--reason <text>", "why; kept in the record", parseText)
    .option("--by <name>", "who asked for it; kept in the record (default: the user this runs as)", parseText)
    .option("--json", "print JSON")
    .action(eraseFields);
}

async function eraseFields(options: EraseOptions, command: Command): Promise<void> {
  const { data, tenant, session, seq, field: fields, reason, json } = options;
  const of = session !== undefined ? { session } : seq !== undefined ? { seq } : undefined;
  if (of === undefined) return command.error("error: expected `--session <id>` or `--seq <number>`");
  const request: ErasureRequest = { of, fields, reason, by: options.by ?? currentUser() };
  const erased = await changeEvidence(resolve(data), tenant, "gateway evidence erase", (ledger, store) =>
    ledger.erase(tenant, request, (range) => compactRange(store, range)),
  );
  report(tenant, erased, json);
}

function report(tenant: string, { seqs, fields }: Erased, json: true | undefined): void {
  if (json) process.stdout.write(`${JSON.stringify({ tenant, fields, seqs })}\n`);
  else if (fields > 0) process.stdout.write(`${tenant}: erased ${fields} fields in ${seqs.length} records\n`);
  if (fields > 0) return;
  process.exitCode = 1;
  process.stderr.write("gateway: nothing erased: no kept field of these records fits\n");
}

function addField(text: string, fields: readonly string[] = []): readonly string[] {
  if (fieldPattern.test(text)) return [...fields, text];
  throw new InvalidArgumentError("expected `arguments.<name>`, `output.<name>` or `*`");
}

function parseSeq(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("expected the number of a record");
}
