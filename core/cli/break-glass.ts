import { readFile } from "node:fs/promises";
import { Command, Option } from "commander";
import type { Approval } from "../action/approval.ts";
import { GatewayError } from "../action/error.ts";
import { asciiJson } from "../action/json.ts";
import { quoteVisible } from "../action/visible-text.ts";
import { type AdminOptions, adminOption, askJson } from "./admin-client.ts";
import { actionWords, parseApprovalId } from "./approval-text.ts";
import { askWhole } from "./list.ts";
import { print, say } from "./print.ts";

interface ListOptions extends AdminOptions {
  readonly json?: true;
}

interface CloseOptions extends ListOptions {
  readonly postMortem?: string;
  readonly file?: string;
}

const path = "/admin/v1/break-glass";

/** `gateway break-glass`. */
export function breakGlassCommand(): Command {
  const glass = new Command("break-glass").description("approvals given against the rules of review");
  glass
    .command("list")
    .description("list those that nobody has accounted for")
    .addOption(adminOption())
    .option("--json", "print JSON, one line each")
    .action(listOpen);
  glass
    .command("close")
    .description("say what happened; the text is kept in evidence")
    .argument("<id>", "as `gateway break-glass list` shows it", parseApprovalId)
    .addOption(new Option("--post-mortem <text>", "20 to 20,000 characters").conflicts("file"))
    .option("--file <path>", "the same, from a file")
    .addOption(adminOption())
    .option("--json", "print JSON")
    .action(close);
  return glass;
}

async function listOpen(options: ListOptions): Promise<void> {
  for (const approval of await askWhole<Approval>(options, path))
    print(options.json ? asciiJson(approval) : describe(approval));
}

function describe({ id, state, action, break_glass: use }: Approval): string {
  return `${id}  ${state}  ${use?.at}  ${actionWords(action)}  ${quoteVisible(use?.reason ?? "")}`;
}

async function close(id: string, options: CloseOptions, command: Command): Promise<void> {
  const { postMortem, file, json } = options;
  if (postMortem === undefined && file === undefined) {
    return command.error("error: expected `--post-mortem <text>` or `--file <path>`");
  }
  const text = postMortem ?? (await readText(file as string));
  const message = { post_mortem: text };
  const { approval } = await askJson<{ readonly approval: Approval }>(options, `${path}/${id}/close`, "POST", message);
  if (json) print(asciiJson(approval));
  say(`closed ${id}`);
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw new GatewayError("INVALID_REQUEST", `\`${file}\` cannot be read; name another --file`, { cause });
  }
}
