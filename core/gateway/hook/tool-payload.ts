import type { Capability } from "../../action/capability.ts";
import type { DirectProtocol } from "../../action/envelope.ts";
import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { checkArguments, type DirectAction } from "./direct-action.ts";

/** The payload of a hook before a tool call, as Claude Code and Codex send it. Further members are ignored. */
export interface ToolPayload {
  readonly session: string;
  readonly cwd: string | undefined;
  readonly tool: string;
  readonly input: JsonObject;
}

const maxName = 512;
const label = /^[\x21-\x7e]{1,128}$/;

/** Throws INVALID_PARAMS that names what was expected. */
export function readToolPayload(payload: Json): ToolPayload {
  if (!isJsonObject(payload)) throw expected("the payload", "an object");
  const { hook_event_name: event, session_id: session, tool_name: tool, tool_input: input, cwd } = payload;
  if (event !== "PreToolUse") throw expected("`hook_event_name`", "`PreToolUse`: the hook is set for another event");
  if (typeof tool !== "string" || tool === "" || tool.length > maxName) throw expected("`tool_name`", "a tool's name");
  if (!isJsonObject(input)) throw expected("`tool_input`", "an object");
  if (cwd !== undefined && typeof cwd !== "string") throw expected("`cwd`", "a path");
  return { session: readLabel(session), cwd, tool, input };
}

/** Reads an agent's name for its session. Throws INVALID_PARAMS. */
export function readLabel(value: Json | undefined): string {
  if (typeof value === "string" && label.test(value)) return value;
  throw expected("`session_id`", "1 to 128 visible ASCII characters");
}

/** An action of an agent's tool with arguments of its protocol. Throws INVALID_PARAMS for others. */
export function toolAction(
  protocol: DirectProtocol,
  tool: string,
  target: string,
  usual: Capability,
  args: JsonObject,
): DirectAction {
  checkArguments(protocol, args);
  return { protocol, tool, target, arguments: args, claimed: undefined, usual, waitMs: 0 };
}

/** The action of a tool that runs its input's `command` in a shell. `description` is what the model says of it: a retry may say it otherwise. */
export function shellAction({ cwd, tool, input }: ToolPayload, target: string): DirectAction {
  const { command = null, description: _, ...details } = input;
  const more = Object.keys(details).length === 0 ? {} : { details };
  return toolAction("shell", tool, target, "execute", { command, ...(cwd === undefined ? {} : { cwd }), ...more });
}

/**
 * The action of a tool of an MCP server that the agent runs itself, `mcp__<server>__<tool>`; undefined for another name. The
 * target begins with the agent's name: who sets up the server chooses its name, and must not be able to choose that of one
 * behind the gateway, for which rules allow more.
 */
export function serverAction({ tool, input }: ToolPayload, agent: string): DirectAction | undefined {
  const [, server, name] = /^mcp__(.+?)__(.+)$/s.exec(tool) ?? [];
  if (server === undefined || name === undefined) return undefined;
  return toolAction("mcp", name, `${agent}/${server}`, "execute", input);
}

function expected(what: string, wanted: string): GatewayError {
  return new GatewayError("INVALID_PARAMS", `expected ${what} of the hook to be ${wanted}`);
}
