import { Command } from "commander";
import type { ActivePolicy } from "../action/policy.ts";
import { showText } from "../action/visible-text.ts";
import type { ShadowLogEntry } from "../observe/shadow-log.ts";
import { type AdminOptions, adminOption } from "./admin-client.ts";
import { type Column, printList, printWhole } from "./list.ts";

interface Output extends AdminOptions {
  readonly json?: true;
}

const done = { review: "held", block: "blocked" } as const;

const columns: readonly Column<ActivePolicy>[] = [
  { title: "kind", of: ({ kind }) => kind },
  { title: "name", of: ({ name }) => name },
  { title: "version", of: ({ version }) => version },
  { title: "mode", of: ({ mode }) => mode },
  { title: "signed by", of: ({ kind, signer }) => signer ?? (kind === "session" ? "built in" : "nobody") },
  { title: "digest", of: ({ digest }) => digest },
];

/** `gateway policies`: what the policies of a running gateway do. */
export function policiesCommand(): Command {
  const policies = new Command("policies").description("what the policies of a running gateway do");
  policies
    .command("list")
    .description("print the policies in force, and who signed each")
    .addOption(adminOption())
    .option("--json", "print JSON, one line each")
    .action(({ json, admin }: Output) => printWhole({ admin }, "/admin/v1/policies", { json, columns }));
  policies
    .command("would-have")
    .description("print what rules in shadow mode would have held or blocked, since the gateway started")
    .option("--json", "print JSON")
    .addOption(adminOption())
    .action(listTrials);
  return policies;
}

/** `gateway plugin list`: those of them that are plugins. */
export function listPluginsCommand(): Command {
  return new Command("list")
    .description("print the plugins in force in a running gateway, and who signed each")
    .addOption(adminOption())
    .option("--json", "print JSON, one line each")
    .action(({ json, admin }: Output) =>
      printWhole({ admin }, "/admin/v1/plugins", { json, columns: columns.slice(1) }),
    );
}

async function listTrials(options: Output): Promise<void> {
  await printList(options, "/admin/v1/shadow-decisions", { json: options.json, describe });
}

function describe({ rule, decision, count, last_time, last_decision }: ShadowLogEntry): string {
  return `${showText(rule)}  would have ${done[decision]} ${count}, last ${last_decision} at ${last_time}`;
}
