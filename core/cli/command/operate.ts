import { Argument, Option } from "commander";
import { decisions } from "../../action/decision.ts";
import { usageDimensions } from "../../usage/usage-report.ts";
import { adminCommand } from "./admin-command.ts";
import {
  addPublicKey,
  adminOption,
  byOption,
  jsonOption,
  parseCount,
  parseDay,
  parseDefinitionId,
  parseDimensions,
  parseJsonObject,
  parseLabel,
  parseMessageId,
  parseText,
  urlOption,
  witnessOption,
} from "./argument.ts";
import type { CommandDescription } from "./description.ts";

// Loaded with the command that calls one of them.
const backupOperations = async () => (await import("../../backup/operation.ts")).backupOperations;
const definitionOperations = async () => (await import("../../definition/operation.ts")).definitionOperations;
const notifyOperations = async () => (await import("../../notify/operation.ts")).notifyOperations;
const providerOperations = async () => (await import("../../provider/operation.ts")).providerOperations;
const upstreamOperations = async () => (await import("../../upstream/operation.ts")).upstreamOperations;

const definition = "def_0123456789abcdef0123456789abcdef";
const definitionId = new Argument("<id>", "id of the definition, from `gateway definitions list`").argParser(
  parseDefinitionId,
);
const comment = new Option("--comment <text>", "comment, recorded with the review");
const withheldHint = "`gateway definitions list` lists those that are withheld now";
const definitionHints = { 404: withheldHint, 409: withheldHint };

const backupFile = new Argument("<file>", "backup file, as the gateway wrote it");

/** Commands for those who operate a running gateway. */
export const operateCommands: readonly CommandDescription[] = [
  {
    name: "call",
    summary: "Call a tool through the gateway, as an agent does; exit 1 if it is held, blocked or fails",
    arguments: [new Argument("<tool>", "name of the tool, as agents are shown it").argParser(parseText)],
    options: [
      new Option("--args <json>", "its arguments, a JSON object (default: none)").argParser(parseJsonObject),
      new Option("--session <label>", "session of the call (default: the one without a label)").argParser(parseLabel),
      urlOption,
      new Option("--json", "print JSON: the outcome, the result, the refusal and the next commands"),
    ],
    examples: `
# what an agent with this key gets
GATEWAY_API_KEY=$(cat data/agent.key) gateway call read_note --args '{"title":"welcome"}'
# in a session of its own
gateway call list_notes --session try-out`,
    load: async () => (await import("../call.ts")).callTool,
  },
  {
    name: "tail",
    summary: "Print decisions and approvals of your tenant as they are made, until interrupted",
    options: [
      new Option("--decision <decision>", "only actions decided so; leaves approvals out").choices(decisions),
      new Option("--tool <name>", "only this tool; `*` stands for any characters").argParser(parseText),
      new Option("--label <label>", "only sessions with this label; leaves approvals out").argParser(parseLabel),
      new Option("--limit <count>", "end after so many").argParser(parseCount),
      urlOption,
      new Option("--json", "print JSON, one line for each event"),
    ],
    examples: `
# everything
gateway tail
# what is blocked, for another program
gateway tail --decision block --json`,
    load: async () => (await import("../tail.ts")).tail,
  },
  {
    name: "usage",
    summary: "Report the model usage of your tenant: requests and tokens",
    options: [
      new Option("--from <day>", "first day, like 2026-11-01, in UTC (default: 30 days before the last)").argParser(
        parseDay,
      ),
      new Option("--to <day>", "last day (default: today)").argParser(parseDay),
      new Option("--by <dimensions>", `group by some of ${usageDimensions.join(",")}`)
        .argParser(parseDimensions)
        .default(usageDimensions),
      adminOption,
      new Option("--json", "print JSON, all in one object"),
    ],
    examples: `
# November, by model
gateway usage --from 2026-11-01 --to 2026-11-30 --by model
# for a bill
gateway usage --by principal --json`,
    load: async () => (await import("../usage.ts")).printUsage,
  },
  {
    name: "upstreams",
    summary: "Inspect the MCP servers of a running gateway",
    commands: [
      adminCommand({
        name: "list",
        summary: "List the MCP servers, their health, and the tools that policy hides from agents",
        operation: async () => (await upstreamOperations()).listUpstreams,
        examples: `
# every MCP server and its state; below it each tool that is hidden from agents, and the rule that hides it
gateway upstreams list`,
        view: async () => (await import("../view/fleet.ts")).upstreamTable,
      }),
    ],
  },
  {
    name: "definitions",
    summary: "Review the tool definitions that are withheld from agents",
    commands: [
      adminCommand({
        name: "list",
        summary: "List withheld definitions, and why they are",
        operation: async () => (await definitionOperations()).listDefinitions,
        options: [
          new Option("--state <state>", "only this state").choices(["pending", "denied"]).default("pending"),
          new Option("--limit <count>", "list at most so many").argParser(parseCount).default(50),
        ],
        examples: `
# what waits for a reviewer
gateway definitions list`,
        view: async () => (await import("../view/definition.ts")).definitionList,
      }),
      adminCommand({
        name: "show",
        summary: "Show a withheld definition, whole, and how it differs from the pinned one",
        operation: async () => (await definitionOperations()).getDefinition,
        arguments: [definitionId],
        hints: definitionHints,
        examples: `
# the reasons, the changes and the definition
gateway definitions show ${definition}`,
        view: async () => (await import("../view/definition.ts")).definitionDetail,
      }),
      adminCommand({
        name: "approve",
        summary: "Pin a withheld definition, so that agents are shown it",
        operation: async () => (await definitionOperations()).approveDefinition,
        arguments: [definitionId],
        options: [comment],
        hints: definitionHints,
        examples: `
# after a look at the changes
gateway definitions approve ${definition} --comment "as in the release notes"`,
        view: async () => (await import("../view/definition.ts")).approvedDefinition,
      }),
      adminCommand({
        name: "deny",
        summary: "Deny a withheld definition; it stays withheld",
        operation: async () => (await definitionOperations()).denyDefinition,
        arguments: [definitionId],
        options: [comment],
        hints: definitionHints,
        examples: `
# nobody is asked about it again
gateway definitions deny ${definition} --comment "it sends files elsewhere"`,
        view: async () => (await import("../view/definition.ts")).deniedDefinition,
      }),
    ],
  },
  {
    name: "providers",
    summary: "Inspect the model providers of a running gateway",
    commands: [
      adminCommand({
        name: "list",
        summary: "List the model providers, their health and their models",
        operation: async () => (await providerOperations()).listProviders,
        examples: `
# every provider and its state
gateway providers list`,
        view: async () => (await import("../view/fleet.ts")).providerTable,
      }),
    ],
  },
  {
    name: "webhooks",
    summary: "Inspect and redeliver failed webhook messages",
    commands: [
      adminCommand({
        name: "dead-letters",
        summary: "List undelivered webhook messages, newest first",
        operation: async () => (await notifyOperations()).listDeadLetters,
        examples: `
# every undelivered message
gateway webhooks dead-letters`,
        view: async () => (await import("../view/fleet.ts")).deadLetterList,
      }),
      adminCommand({
        name: "redeliver",
        summary: "Redeliver a webhook message",
        operation: async () => (await notifyOperations()).redeliver,
        arguments: [
          new Argument("<id>", "id of the message, from `gateway webhooks dead-letters`").argParser(parseMessageId),
        ],
        examples: `
# when the receiver is back
gateway webhooks redeliver msg_01890a5d-ac96-774b-bcce-b302099a8057`,
        view: async () => (await import("../view/fleet.ts")).redelivery,
      }),
    ],
  },
  {
    name: "store",
    summary: "Move the state and the evidence between a data folder and a database",
    commands: [
      {
        name: "migrate",
        summary:
          "Take the whole store into a database that replicas share, or back; verifies both sides, and goes on where it was interrupted",
        options: [
          new Option("-c, --config <file>", "configuration with `store.engine: postgres`").makeOptionMandatory(),
          new Option("--to <engine>", "where the store goes on").choices(["postgres", "leveldb"]).makeOptionMandatory(),
          jsonOption,
        ],
        examples: `
# with the gateway stopped: from the data folder into an empty database
gateway store migrate --config gateway.yaml --to postgres
# with every replica stopped: back into the data folder
gateway store migrate --config gateway.yaml --to leveldb`,
        load: async () => (await import("../store-migrate.ts")).migrateStore,
      },
    ],
  },
  {
    name: "backup",
    summary: "Create, list and verify backups",
    commands: [
      {
        name: "create",
        summary: "Create a backup of all state but the keys, and wait until it is complete and verified",
        options: [adminOption, jsonOption],
        examples: `
# while the gateway serves
gateway backup create`,
        load: async () => (await import("../backup.ts")).createBackup,
      },
      adminCommand({
        name: "list",
        summary: "List backups, newest first",
        operation: async () => (await backupOperations()).listBackups,
        examples: `
# every backup and its state
gateway backup list`,
        view: async () => (await import("../view/fleet.ts")).backupList,
      }),
      {
        name: "verify",
        summary:
          "Verify the seal of a backup and every chain in it; exit 1 if the file is not sound, else as `gateway evidence verify`",
        arguments: [backupFile],
        options: [
          new Option("--key <base64>", "public key of the backed-up data folder; repeatable")
            .argParser(addPublicKey)
            .default([]),
          witnessOption,
          jsonOption,
        ],
        examples: `
# check that it is whole
gateway backup verify /srv/backups/gateway/backup.jsonl`,
        load: async () => (await import("../backup.ts")).verifyBackup,
      },
    ],
  },
  {
    name: "restore",
    summary: "Restore a backup into a data folder; on any fault the folder is unchanged",
    arguments: [backupFile],
    options: [
      new Option(
        "-d, --data <folder>",
        "data folder with the `keys` folder of the backup's gateway, and no state",
      ).makeOptionMandatory(),
      witnessOption,
      new Option("--accept-rollback <reason>", "restore an older state than a witness has seen; recorded").argParser(
        parseText,
      ),
      new Option("--replace", "move existing state aside; no gateway may run on it"),
      byOption,
      jsonOption,
    ],
    examples: `
# into a folder that holds the keys, and no state
gateway restore /srv/backups/gateway/backup.jsonl --data /var/lib/gateway
# replacing existing state
gateway restore /srv/backups/gateway/backup.jsonl --data /var/lib/gateway --replace`,
    load: async () => (await import("../restore.ts")).restore,
  },
];
