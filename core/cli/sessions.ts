import { Command, InvalidArgumentError, Option } from "commander";
import { asciiJson, type JsonObject } from "../action/json.ts";
import { showText, visibleText } from "../action/visible-text.ts";
import type { Kill, KillTarget } from "../kill/kill.ts";
import { type SessionDetail, type SessionView, sessionSorts } from "../session/session-directory.ts";
import { type AdminOptions, adminOption, askJson, parseSessionId } from "./admin-client.ts";
import { parseCount, printList } from "./list.ts";
import { print, say } from "./print.ts";

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

interface Output extends AdminOptions {
  readonly json?: true;
}

interface ListOptionsSessionState extends Output {
  readonly sort: string;
  readonly limit: number;
}

interface ResetOptions extends Output {
  readonly reason: string;
}

/** `gateway sessions list`, `show` and `reset`: how sessions of a running gateway stand. */
function sessionStateCommands(): readonly Command[] {
  const list = new Command("list")
    .description("print how the sessions of your tenant stand")
    .addOption(
      new Option("--sort <by>", "the highest risk first, or the last action").choices(sessionSorts).default("risk"),
    )
    .option("--limit <count>", "at most so many", parseCount, 50)
    .option("--json", "print JSON, one line each")
    .addOption(adminOption())
    .action(listSessions);
  const show = new Command("show")
    .description("print what a session met, and its last actions")
    .argument("<session-id>", "as `gateway sessions list` shows it", parseSessionId)
    .option("--json", "print JSON")
    .addOption(adminOption())
    .action(showSession);
  const reset = new Command("reset")
    .description("take a session's risk and taints away; a damaged one begins anew")
    .argument("<session-id>", "as `gateway sessions list` shows it", parseSessionId)
    .requiredOption("--reason <text>", "why it is trusted again; goes on record")
    .option("--json", "print JSON")
    .addOption(adminOption())
    .action(resetSession);
  return [list, show, reset];
}

async function listSessions({ sort, limit: most, json, admin }: ListOptionsSessionState): Promise<void> {
  await printList({ admin }, "/admin/v1/sessions", { json, describe: describeLine, most, query: { sort } });
}

async function showSession(session: string, options: Output): Promise<void> {
  const detail = await askJson<SessionDetail>(options, `/admin/v1/sessions/${session}`);
  print(options.json ? asciiJson(detail) : describeDetail(detail));
}

async function resetSession(session: string, { reason, json, admin }: ResetOptions): Promise<void> {
  const answer = await askJson({ admin }, `/admin/v1/sessions/${session}/reset`, "POST", { reason });
  if (json) print(asciiJson(answer));
  say(`reset ${session}`);
}

/** `session-v1-…  active  risk 30  actions 12  reviews 1  tools 4  tainted: untrusted  2026-…` */
function describeLine(view: SessionView): string {
  if (view.state === "damaged") return `${view.session}  damaged`;
  const { session, state, risk, actions, reviews, tools, taints, last_at: last } = view;
  const counts = [`risk ${risk}`, `actions ${actions}`, `reviews ${reviews}`, `tools ${tools}`];
  const tainted = taints.length === 0 ? [] : [`tainted: ${taints.join(", ")}`];
  return [session, state, ...counts, ...tainted, last].join("  ");
}

function describeDetail({ taints, history, ...detail }: SessionDetail): string {
  const names = taints.map(({ name }) => name);
  const met = taints.map(
    ({ name, target, tool, at }) => `taint ${name}  ${at}  from ${visibleText(tool)} on ${visibleText(target)}`,
  );
  const did = history.map(({ at, decision, capability, tool, target }) => {
    const words = [`action  ${at}`, decision, `${capability} ${visibleText(tool)} on ${visibleText(target)}`];
    return words.join("  ");
  });
  return [describeLine({ ...detail, taints: names }), `principal ${detail.principal}`, ...met, ...did].join("\n");
}
