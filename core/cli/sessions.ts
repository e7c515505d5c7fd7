import { Command, InvalidArgumentError } from "commander";
import { asciiJson } from "../kernel/ascii-json.ts";
import type { JsonObject } from "../kernel/json.ts";
import { showText } from "../policy/display.ts";
import type { Kill, KillTarget } from "../session/kill.ts";
import { type AdminOptions, adminOption, askJson } from "./admin-client.ts";
import { printList } from "./list.ts";
import { print, say } from "./print.ts";
import { parseSessionId } from "./session-id.ts";
import { sessionStateCommands } from "./session-state.ts";

interface TargetOptions extends AdminOptions {
  readonly principal?: string;
  readonly tenant?: true;
  readonly gateway?: true;
  readonly json?: true;
}

interface KillOptions extends TargetOptions {
  readonly note?: string;
}

interface ReleaseOptions extends TargetOptions {
  readonly reason: string;
}

interface ListOptions extends AdminOptions {
  readonly json?: true;
}

/** `gateway sessions`: the kill switch of a running gateway. */
export function sessionsCommand(): Command {
  const sessions = new Command("sessions").description("stop sessions of agents, and let them go on");
  takeTarget(sessions.command("kill"), "as `GET /admin/v1/evidence/sessions` lists it")
    .description("stop a session, or more: nothing it asks for is dispatched until it is released")
    .option("--note <text>", "why; goes on record")
    .addOption(adminOption())
    .action(kill);
  takeTarget(sessions.command("release"), "as `gateway sessions killed` lists it")
    .description("let what is stopped go on")
    .requiredOption("--reason <text>", "why it may go on; goes on record")
    .addOption(adminOption())
    .action(release);
  sessions
    .command("killed")
    .description("print what is stopped in your tenant")
    .option("--json", "print JSON")
    .addOption(adminOption())
    .action(listKilled);
  for (const command of sessionStateCommands()) sessions.addCommand(command);
  return sessions;
}

function takeTarget(command: Command, listed: string): Command {
  return command
    .argument("[session-id]", listed, parseSessionId)
    .option("--principal <id>", "all that this principal asks for, in place of one session", parsePrincipal)
    .option("--tenant", "all that your tenant asks for")
    .option("--gateway", "all that anybody asks for; for admins of `sessions.gateway_tenant`")
    .option("--json", "print the answer as JSON");
}

async function kill(session: string | undefined, options: KillOptions, command: Command): Promise<void> {
  const more = options.note === undefined ? {} : { note: options.note };
  await send(readTarget(session, options, command), options, { path: "/admin/v1/kills", done: "stopped", more });
}

async function release(session: string | undefined, options: ReleaseOptions, command: Command): Promise<void> {
  const more = { reason: options.reason };
  const order = { path: "/admin/v1/kills/release", done: "released", more };
  await send(readTarget(session, options, command), options, order);
}

interface Order {
  readonly path: string;
  /** What is said when it is done. */
  readonly done: string;
  readonly more: JsonObject;
}

async function send(target: KillTarget, options: TargetOptions, { path, done, more }: Order): Promise<void> {
  const answer = await askJson(options, path, "POST", {
    scope: target.scope,
    ...(target.subject === null ? {} : { subject: target.subject }),
    ...more,
  });
  if (options.json) print(asciiJson(answer));
  say(`${done} ${nameOf(target)}`);
}

/** What is named; where that is nothing, or more than one thing, the command line cannot be understood. */
function readTarget(session: string | undefined, options: TargetOptions, command: Command): KillTarget {
  const { principal, tenant, gateway } = options;
  const named: KillTarget[] = [
    ...(session === undefined ? [] : [{ scope: "session", subject: session } as const]),
    ...(principal === undefined ? [] : [{ scope: "principal", subject: principal } as const]),
    ...(tenant === undefined ? [] : [{ scope: "tenant", subject: null } as const]),
    ...(gateway === undefined ? [] : [{ scope: "gateway", subject: null } as const]),
  ];
  const [target] = named;
  if (target !== undefined && named.length === 1) return target;
  const got = named.length === 0 ? "none" : named.map(({ scope }) => scope).join(" and ");
  return command.error(
    `error: expected one of a session's id, \`--principal\`, \`--tenant\` and \`--gateway\`, got ${got}`,
  );
}

async function listKilled(options: ListOptions): Promise<void> {
  await printList(options, "/admin/v1/kills", { json: options.json, describe });
}

function describe(kill: Kill): string {
  const { reason, by, note, killed_at } = kill;
  const who = by === null ? reason : `${reason} ${by}`;
  return `${nameOf(kill)}  ${killed_at}  ${who}${note === null ? "" : `  ${showText(note)}`}`;
}

/** Ids say what they are of. */
function nameOf({ scope, subject }: KillTarget): string {
  return subject ?? `the whole ${scope}`;
}

function parsePrincipal(text: string): string {
  if (/^principal-v1-[0-9a-f]{64}$/.test(text)) return text;
  throw new InvalidArgumentError("expected a principal's id, like `principal-v1-…`");
}
