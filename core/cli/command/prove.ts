import { Argument, Option } from "commander";
import {
  addFieldPattern,
  addPublicKey,
  addText,
  adminOption,
  jsonOption,
  parsePastTime,
  parseSeconds,
  parseSeq,
  parseSession,
  parseText,
} from "./argument.ts";
import type { CommandDescription } from "./description.ts";

const session = "session-v1-4f2a9c";
const publicKey = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

const sessionName = new Argument("<session>", "label of the session, its id, or the beginning of that").argParser(
  parseSession,
);

const exportOptions: readonly Option[] = [
  new Option("--file <path>", "new file to write").makeOptionMandatory(),
  new Option("--redact <seq.member.field>", "withhold a field: `12.arguments.password`; repeatable")
    .argParser(addText)
    .default([]),
  adminOption,
  new Option("--json", "print JSON: the file, its size and its digest"),
];

/** The data folder whose evidence is changed; a gateway that serves is asked without it. */
const changeOptions: readonly Option[] = [
  new Option("-d, --data <folder>", "in a data folder; no gateway may run on it"),
  new Option("--tenant <name>", "with --data: tenant of the evidence (default: the tenant of the API key)"),
];

const offlineByOption = new Option(
  "--by <name>",
  "with --data: person or process that asked for it; recorded (default: the current user)",
).argParser(parseText);

/** Commands for those who keep and verify evidence. */
export const proveCommands: readonly CommandDescription[] = [
  {
    name: "evidence",
    summary: "Verify, export and manage evidence",
    commands: [
      {
        name: "verify",
        summary:
          "Verify an exported bundle or a data folder; exit 0 witnessed, 10 self-attested, 20 stale, 30 diverged, 40 invalid, 50 incomplete",
        arguments: [new Argument("[bundle]", "file from `gateway evidence export`")],
        options: [
          new Option("-d, --data <folder>", "data folder; no gateway may run on it"),
          new Option("--tenant <name>", "only this tenant (default: all)"),
          new Option("--key <base64>", "first public key of a chain, as its operator published it; repeatable")
            .argParser(addPublicKey)
            .default([]),
          new Option("--witness <place>", "notes of a witness: a folder or URL, for a bundle also a file; repeatable")
            .argParser(addText)
            .default([]),
          new Option("--max-age <seconds>", "age at which the latest checkpoint is stale").argParser(parseSeconds),
          jsonOption,
        ],
        examples: `
# an exported file, with the key that its operator published
gateway evidence verify session.tar --key ${publicKey}
# the data folder of a stopped gateway, against a witness
gateway evidence verify --data /var/lib/gateway --witness /mnt/vault/evidence`,
        load: async () => (await import("../evidence-verify.ts")).verifyEvidence,
      },
      {
        name: "export",
        summary: "Export the evidence of a session, with all that verification needs, to one file",
        arguments: [sessionName],
        options: exportOptions,
        examples: `
# a file that anyone can verify
gateway evidence export ${session} --file session.tar
# the same without one argument
gateway evidence export ${session} --file session.tar --redact 12.arguments.password`,
        load: async () => (await import("../evidence-export.ts")).exportSession,
      },
      {
        name: "report",
        summary: "Write a readable report of a session",
        arguments: [sessionName],
        options: [
          new Option("--format <format>", "format of the report").choices(["md", "html", "json"]).default("md"),
          ...exportOptions,
        ],
        examples: `
# as a page for the browser
gateway evidence report ${session} --file session.html --format html`,
        load: async () => (await import("../evidence-export.ts")).reportSession,
      },
      {
        name: "keys",
        summary: "List and rotate the keys that sign evidence",
        commands: [
          {
            name: "list",
            isDefault: true,
            summary: "List the public keys and the records that each signed; verifiers need the first one",
            options: [
              new Option("-d, --data <folder>", "every tenant of a data folder; no gateway may run on it"),
              adminOption,
              jsonOption,
            ],
            examples: `
# the keys to publish for verifiers
gateway evidence keys list`,
            load: async () => (await import("../evidence-keys.ts")).listKeys,
          },
          {
            name: "rotate",
            summary: "Rotate the signing key of a tenant; the old key and the new one both sign the handover",
            options: [
              new Option("-d, --data <folder>", "in a data folder; no gateway may run on it"),
              new Option("--tenant <name>", "with --data: tenant of the chain (default: the tenant of the API key)"),
              adminOption,
              jsonOption,
            ],
            examples: `
# sign with a new key from now on
gateway evidence keys rotate`,
            load: async () => (await import("../evidence-keys.ts")).rotateKey,
          },
        ],
      },
      {
        name: "erase",
        summary: "Erase stored arguments and outputs permanently; records, proofs and checkpoints stay valid",
        options: [
          ...changeOptions,
          new Option("--session <name>", "in every record of this session; with --data by its whole id")
            .argParser(parseSession)
            .conflicts("seq"),
          new Option("--seq <number>", "in this record only").argParser(parseSeq),
          new Option(
            "--field <pattern>",
            "`arguments.<name>`, `output.<name>`, `facts.<name>`, with `*` for any characters, or `*`; repeatable",
          )
            .argParser(addFieldPattern)
            .makeOptionMandatory(),
          new Option("--reason <text>", "reason; recorded").argParser(parseText).makeOptionMandatory(),
          offlineByOption,
          adminOption,
          jsonOption,
        ],
        examples: `
# a person's data, in every record of a session
gateway evidence erase --session ${session} --field arguments.email --reason "request 42"
# the same in the data folder of a stopped gateway
gateway evidence erase --data /var/lib/gateway --tenant acme --session ${session} --field arguments.email --reason "request 42"`,
        load: async () => (await import("../evidence-change.ts")).eraseFields,
      },
      {
        name: "prune",
        summary: "Delete the records of a tenant that are past their retention; the rest still verifies",
        options: [
          ...changeOptions,
          new Option("--before <time>", "keep records of this RFC 3339 time and later")
            .argParser(parsePastTime)
            .makeOptionMandatory(),
          new Option("--reason <text>", "reason; recorded").argParser(parseText),
          offlineByOption,
          adminOption,
          jsonOption,
        ],
        examples: `
# delete older records while the gateway serves, with proof of what they were
gateway evidence prune --before 2026-01-31T00:00:00Z --reason "retention of a year"
# the same in the data folder of a stopped gateway
gateway evidence prune --data /var/lib/gateway --tenant acme --before 2026-01-31T00:00:00Z`,
        load: async () => (await import("../evidence-change.ts")).pruneRecords,
      },
    ],
  },
];
