import { Command, Option } from "commander";
import { asciiJson } from "../kernel/ascii-json.ts";
import { visibleText } from "../kernel/visible-text.ts";
import type { SessionDetail, SessionView } from "../session/session-directory.ts";
import { sessionSorts } from "../session/session-ranking.ts";
import { type AdminOptions, adminOption, askJson } from "./admin-client.ts";
import { parseCount } from "./count.ts";
import { printList } from "./list.ts";
import { print, say } from "./print.ts";
import { parseSessionId } from "./session-id.ts";

interface Output extends AdminOptions {
  readonly json?: true;
}

interface ListOptions extends Output {
  readonly sort: string;
  readonly limit: number;
}

interface ResetOptions extends Output {
  readonly reason: string;
}

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
    .option("--json", "print JSON")
    .addOption(adminOption())
    .action(resetSession);
  return [list, show, reset];
}

async function listSessions({ sort, limit: most, json, admin }: ListOptions): Promise<void> {
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
