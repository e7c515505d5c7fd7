import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import type { Approval } from "../action/approval.ts";
import { GatewayError } from "../action/error.ts";
import { asciiJson } from "../action/json.ts";
import { approvalOperations } from "../approval/operation.ts";
import { type AdminOptions, callAdmin } from "./admin-client.ts";
import { print, say } from "./print.ts";

interface CloseOptions extends AdminOptions {
  readonly postMortem?: string;
  readonly file?: string;
  readonly json?: true;
}

/** `gateway break-glass close`. */
export async function closeBreakGlass(id: string, options: CloseOptions, command: Command): Promise<void> {
  const { postMortem, file, json } = options;
  if (postMortem === undefined && file === undefined) {
    return command.error("error: expected `--post-mortem <text>` or `--file <path>`");
  }
  const text = postMortem ?? (await readText(file as string));
  const body = { id, post_mortem: text };
  const { approval } = await callAdmin<{ approval: Approval }>(options, approvalOperations.closeBreakGlass, body);
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
