import { Command, Option } from "commander";
import { asciiJson } from "../kernel/ascii-json.ts";
import type { JsonObject } from "../kernel/json.ts";
import { visibleText } from "../kernel/visible-text.ts";
import type { SessionDetail, SessionPage, SessionView } from "../session/session-directory.ts";
import { sessionSorts } from "../session/session-ranking.ts";
import { type AdminOptions, adminOption, askAdmin } from "./admin-client.ts";
import { parseCount } from "./count.ts";
import { parseSessionId } from "./session-id.ts";

interface Output extends AdminOptions {
  readonly json?: true;
}

interface ListOptions extends Output {
  readonly sort: string;
  readonly limit: number;
}

interface ResetOptions extends AdminOptions {
  readonly reason: string;
}

const largestPage = 500;

/** `gateway sessions list`, `show` and `reset`: how sessions of a running gateway stand. */
export function sessionStateCommands(): readonly Command[] {
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
    .addOption(adminOption())
    .action(resetSession);
  return [list, show, reset];
}

async function listSessions(options: ListOptions): Promise<void> {
  let [left, cursor] = [options.limit, ""];
  while (left > 0) {
    const query = `sort=${options.sort}&limit=${Math.min(left, largestPage)}${cursor}`;
    const body = await askAdmin(options, `/admin/v1/sessions?${query}`);
    const { items, next } = JSON.parse(body.toString("utf8")) as SessionPage;
    for (const item of items) write(options, item, describeLine);
    if (next === null) return;
    left -= items.length;
    if (left <= 0) process.stderr.write("gateway: there are more; `--limit` says how many are listed\n");
    cursor = `&cursor=${encodeURIComponent(next)}`;
  }
}

async function showSession(session: string, options: Output): Promise<void> {
  const body = await askAdmin(options, `/admin/v1/sessions/${session}`);
  write(options, JSON.parse(body.toString("utf8")) as SessionDetail, describeDetail);
}

async function resetSession(session: string, options: ResetOptions): Promise<void> {
  await askAdmin(options, `/admin/v1/sessions/${session}/reset`, "POST", { reason: options.reason });
  process.stderr.write(`gateway: reset ${session}\n`);
}

function write<T extends SessionView | SessionDetail>({ json }: Output, told: T, describe: (told: T) => string): void {
  process.stdout.write(`${json ? asciiJson(told as unknown as JsonObject) : describe(told)}\n`);
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
