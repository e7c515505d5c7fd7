import { Command } from "commander";
import { showText } from "../policy/display.ts";
import type { Kill } from "../session/kill.ts";
import { type AdminOptions, adminOption, askAdmin } from "./admin-client.ts";
import { parseSessionId } from "./session-id.ts";
import { sessionStateCommands } from "./session-state.ts";

interface KillOptions extends AdminOptions {
  readonly note?: string;
}

interface ReleaseOptions extends AdminOptions {
  readonly reason: string;
}

interface ListOptions extends AdminOptions {
  readonly json?: true;
}

interface KillPage {
  readonly items: readonly Kill[];
  readonly next: string | null;
}

/** `gateway sessions`: stopping sessions of a running gateway. */
export function sessionsCommand(): Command {
  const sessions = new Command("sessions").description("stop sessions of agents, and let them go on");
  sessions
    .command("kill")
    .description("stop a session: nothing it asks for is dispatched until it is released")
    .argument("<session-id>", "as `GET /admin/v1/evidence/sessions` lists it", parseSessionId)
    .option("--note <text>", "why; goes on record")
    .addOption(adminOption())
    .action(killSession);
  sessions
    .command("release")
    .description("let a stopped session go on")
    .argument("<session-id>", "as `gateway sessions killed` lists it", parseSessionId)
    .requiredOption("--reason <text>", "why it may go on; goes on record")
    .addOption(adminOption())
    .action(releaseSession);
  sessions
    .command("killed")
    .description("print the stopped sessions of your tenant")
    .option("--json", "print JSON")
    .addOption(adminOption())
    .action(listKilled);
  for (const command of sessionStateCommands()) sessions.addCommand(command);
  return sessions;
}

async function killSession(session: string, options: KillOptions): Promise<void> {
  const order = options.note === undefined ? {} : { note: options.note };
  await askAdmin(options, `/admin/v1/sessions/${session}/kill`, "POST", order);
  process.stderr.write(`gateway: stopped ${session}\n`);
}

async function releaseSession(session: string, options: ReleaseOptions): Promise<void> {
  await askAdmin(options, `/admin/v1/sessions/${session}/release`, "POST", { reason: options.reason });
  process.stderr.write(`gateway: released ${session}\n`);
}

async function listKilled(options: ListOptions): Promise<void> {
  let cursor = "";
  for (;;) {
    const body = await askAdmin(options, `/admin/v1/sessions/killed?limit=500${cursor}`);
    const { items, next } = JSON.parse(body.toString("utf8")) as KillPage;
    for (const kill of items) process.stdout.write(options.json ? `${JSON.stringify(kill)}\n` : describe(kill));
    if (next === null) return;
    cursor = `&cursor=${encodeURIComponent(next)}`;
  }
}

function describe({ session, reason, by, note, killed_at }: Kill): string {
  const who = by === null ? reason : `${reason} ${by}`;
  return `${session}  ${killed_at}  ${who}${note === null ? "" : `  ${showText(note)}`}\n`;
}
