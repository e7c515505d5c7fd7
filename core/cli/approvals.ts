import { setTimeout as sleep } from "node:timers/promises";
import { Command, Option } from "commander";
import { type Approval, approvalScopes } from "../action/approval.ts";
import { GatewayError } from "../action/error.ts";
import { asciiJson, type JsonObject } from "../action/json.ts";
import type { ApprovalView } from "../approval/view.ts";
import { type AdminOptions, adminOption, askJson } from "./admin-client.ts";
import { approvalLine, approvalsPath, describeView, parseApprovalId, timeLeft } from "./approval-text.ts";
import { askItems, parseCount, printList } from "./list.ts";
import { print, say } from "./print.ts";

interface Output {
  readonly json?: true;
}

interface ListOptions extends AdminOptions, Output {
  readonly state?: string;
  readonly limit: number;
}

interface AnswerOptions extends AdminOptions, Output {
  readonly comment?: string;
}

interface ApproveOptions extends AnswerOptions {
  readonly scope: string;
  readonly breakGlass?: string;
}

/** By what the gateway answered. */
const nextSteps: ReadonlyMap<number, string> = new Map([
  [404, "`gateway approvals list` says what waits"],
  [409, "`gateway approvals show ID` says how it stands"],
]);

/** `gateway approvals`. */
export function approvalsCommand(): Command {
  const approvals = new Command("approvals").description("what agents wait for, and what people say of it");
  approvals.addCommand(listCommand("list", "list what waits for a reviewer, or may be used", ["pending", "approved"]));
  approvals.addCommand(
    listCommand("history", "list what is over, the latest first", ["denied", "expired", "consumed"]),
  );
  answering("show", "show all that is needed to decide").action(showApproval);
  answering("approve", "say yes: the action may be repeated, and then runs once")
    .option("--comment <text>", "kept with the answer, in evidence")
    .addOption(
      new Option("--scope <scope>", "`task`: whatever values its arguments have")
        .choices(approvalScopes)
        .default("exact"),
    )
    .option("--break-glass <reason>", "as an admin, alone and at once; a post-mortem is owed")
    .action(approve);
  answering("deny", "say no, for good").option("--comment <text>", "kept with the answer, in evidence").action(deny);
  approvals
    .command("watch")
    .description("print each action as it begins to wait, until interrupted")
    .addOption(adminOption())
    .option("--json", "print JSON, one line each")
    .action(watchPending);
  return approvals;

  function answering(name: string, description: string): Command {
    return approvals
      .command(name)
      .description(description)
      .argument("<id>", "as `gateway approvals list` shows it", parseApprovalId)
      .addOption(adminOption())
      .option("--json", "print JSON");
  }
}

function listCommand(name: string, description: string, states: readonly string[]): Command {
  return new Command(name)
    .description(description)
    .addOption(new Option("--state <state>", "only these").choices(states))
    .option("--limit <count>", "at most so many", parseCount, 50)
    .addOption(adminOption())
    .option("--json", "print JSON, one line each")
    .action((options: ListOptions) => list(options, name === "history" ? `${approvalsPath}/history` : approvalsPath));
}

async function list({ state, limit: most, json, admin }: ListOptions, path: string): Promise<void> {
  const query = state === undefined ? {} : { state };
  const describe = (approval: Approval): string => approvalLine(approval, Date.now());
  await printList({ admin }, path, { json, describe, most, query });
}

async function showApproval(id: string, options: AdminOptions & Output, command: Command): Promise<void> {
  const view = await askAbout(id, () => askJson<ApprovalView>(options, `${approvalsPath}/${id}`));
  const where = command.getOptionValueSource("admin") === "cli" ? ` --admin ${options.admin}` : "";
  process.stdout.write(options.json ? `${asciiJson(view)}\n` : describeView(view, Date.now(), where));
}

async function approve(id: string, options: ApproveOptions): Promise<void> {
  const { comment, scope, breakGlass } = options;
  const said = comment === undefined ? {} : { comment };
  const glass = breakGlass === undefined ? {} : { break_glass: breakGlass };
  const approval = await answer(id, "approve", { scope, ...said, ...glass }, options);
  if (approval.state === "pending") {
    say(`${approval.endorsements.length} of ${approval.required} have said yes to ${id}`);
    return;
  }
  say(
    `approved ${id} for one use: whoever asked has ${timeLeft(approval, Date.now())} to repeat exactly the same call`,
  );
  if (breakGlass !== undefined) say(`once it is over, \`gateway break-glass close ${id}\` says what happened`);
}

async function deny(id: string, options: AnswerOptions): Promise<void> {
  const { comment } = options;
  await answer(id, "deny", comment === undefined ? {} : { comment }, options);
  say(`denied ${id}`);
}

async function answer(id: string, what: string, message: JsonObject, options: AnswerOptions): Promise<Approval> {
  const ask = (): Promise<{ approval: Approval }> =>
    askJson(options, `${approvalsPath}/${id}/${what}`, "POST", message);
  const { approval } = await askAbout(id, ask);
  if (options.json) print(asciiJson(approval));
  return approval;
}

/** What `ask` resolves with; a refusal names the command to type next. */
async function askAbout<T>(id: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (cause) {
    const { code, detail, data } = GatewayError.from(cause);
    const next = nextSteps.get(Number(data?.status));
    throw next === undefined
      ? cause
      : new GatewayError(code, `${detail}; ${next.replace("ID", id)}`, { cause, data: { ...data } });
  }
}

const everyMs = 2_000;

/**
 * Prints each approval once, as it begins to wait for a reviewer, until SIGINT or SIGTERM. A gateway that does not answer
 * from the start is an error; one that goes away later is waited for.
 */
async function watchPending(options: AdminOptions & { readonly json?: true }): Promise<void> {
  // At once, whatever is being waited for; and when nobody reads any more.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(0));
  process.stdout.once("error", () => process.exit(0));
  let seen: ReadonlySet<string> | undefined;
  let isAway = false;
  for (;;) {
    try {
      const pending = await readPending(options);
      if (isAway) say("it answers again");
      isAway = false;
      for (const approval of pending.filter(({ id }) => !seen?.has(id))) {
        print(options.json ? asciiJson(approval) : approvalLine(approval, Date.now()));
      }
      seen = new Set(pending.map(({ id }) => id));
    } catch (error) {
      if (seen === undefined || !isPassing(GatewayError.from(error))) throw error;
      if (!isAway) say("no answer; waiting for it to come back");
      isAway = true;
    }
    await sleep(everyMs);
  }
}

/** All that wait: ids made in one millisecond are in no order, so none can be skipped by those before it. */
async function readPending(options: AdminOptions): Promise<readonly Approval[]> {
  const pending: Approval[] = [];
  for await (const approval of askItems<Approval>(options, approvalsPath)) pending.push(approval);
  return pending;
}

/** Nobody answers, or somebody who says that it is not for long. */
function isPassing({ code, data }: GatewayError): boolean {
  return code === "GATEWAY_UNREACHABLE" || Number(data?.status) >= 500;
}
