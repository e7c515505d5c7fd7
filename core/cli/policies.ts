import { Command } from "commander";
import type { Trial, TrialPage } from "../observe/trial-log.ts";
import { showText } from "../policy/display.ts";
import { type AdminOptions, adminOption, askAdmin } from "./admin-client.ts";

interface TrialOptions extends AdminOptions {
  readonly json?: true;
}

const done = { review: "held", block: "blocked" } as const;

/** `gateway policies`: what the policies of a running gateway do. */
export function policiesCommand(): Command {
  const policies = new Command("policies").description("what the policies of a running gateway do");
  policies
    .command("would-have")
    .description("print what rules in shadow mode would have held or blocked, since the gateway started")
    .option("--json", "print JSON")
    .addOption(adminOption())
    .action(listTrials);
  return policies;
}

async function listTrials(options: TrialOptions): Promise<void> {
  let cursor = "";
  for (;;) {
    const body = await askAdmin(options, `/admin/v1/would-have?limit=500${cursor}`);
    const { items, next } = JSON.parse(body.toString("utf8")) as TrialPage;
    for (const trial of items) process.stdout.write(options.json ? `${JSON.stringify(trial)}\n` : describe(trial));
    if (next === null) return;
    cursor = `&cursor=${encodeURIComponent(next)}`;
  }
}

function describe({ rule, decision, count, last_time, last_decision }: Trial): string {
  return `${showText(rule)}  would have ${done[decision]} ${count}, last ${last_decision} at ${last_time}\n`;
}
