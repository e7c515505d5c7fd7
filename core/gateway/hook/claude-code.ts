import type { Capability } from "../../action/capability.ts";
import type { Json, JsonObject } from "../../action/json.ts";
import type { AgentForm, HookCall } from "./agent-form.ts";
import type { DirectAction } from "./direct-action.ts";
import { hookLine, hookTimeout, preToolAnswer, preToolDecision } from "./pre-tool-answer.ts";
import { readToolPayload, serverAction, shellAction, type ToolPayload, toolAction } from "./tool-payload.ts";

const agent = "claude-code";

/** Tools that look at files below the working folder unless told otherwise. */
const searches: ReadonlySet<string> = new Set(["Grep", "Glob", "LS"]);

/** The capabilities of the agent's own tools; every other tool is `execute`. */
const capabilityByTool: Readonly<Record<string, Capability>> = {
  Read: "read",
  Grep: "read",
  Glob: "read",
  LS: "read",
  NotebookRead: "read",
  // These reach nothing outside of the agent.
  AskUserQuestion: "read",
  EnterPlanMode: "read",
  ExitPlanMode: "read",
  TaskCreate: "read",
  TaskGet: "read",
  TaskList: "read",
  TaskUpdate: "read",
  TodoWrite: "read",
  ToolSearch: "read",
  WebSearch: "network",
  Write: "write",
  Edit: "write",
  MultiEdit: "write",
  NotebookEdit: "write",
};

/** The places of paths that no call leaves out. */
const pathsByTool: AgentForm["facts"] = {
  Read: { path: ["file_path"] },
  Write: { path: ["file_path"] },
  Edit: { path: ["file_path"] },
  MultiEdit: { path: ["file_path"] },
  NotebookRead: { path: ["notebook_path"] },
  NotebookEdit: { path: ["notebook_path"] },
  LS: { path: ["path"] },
};

/** The contract of Claude Code: `PreToolUse`, over a command or over HTTP. */
export const claudeCodeForm: AgentForm = {
  read: readClaudeCode,
  // A held call is denied, not asked about: whoever sits at the terminal would otherwise decide in place of the reviewer.
  answer: ({ decision, reason }) => preToolAnswer(decision === "allow" ? "allow" : "deny", reason),
  effectOf: (answer) => {
    const decision = preToolDecision(answer);
    return decision === "allow" || decision === "deny" ? decision : undefined;
  },
  exitCodes: { allow: 0, ask: 2, deny: 0 },
  settings: (place) =>
    settingsOf({
      type: "command",
      command: hookLine(agent, place),
      timeout: hookTimeout(place),
      onFailure: "block",
    }),
  httpSettings: (place) =>
    settingsOf({
      type: "http",
      url: `${place.url}/v1/hooks/${agent}?wait_ms=${place.waitSeconds * 1_000}`,
      headers: { "X-API-Key": "$GATEWAY_API_KEY" },
      allowedEnvVars: ["GATEWAY_API_KEY"],
      timeout: hookTimeout(place),
      onFailure: "block",
    }),
  facts: { ...pathsByTool, Grep: { path: ["path"] }, Glob: { path: ["path"] } },
  offered: {
    capabilities: { ...capabilityByTool, WebFetch: "network" },
    facts: { ...pathsByTool, Bash: { shell: "command" }, WebFetch: { url: ["url"] } },
  },
};

function readClaudeCode(body: Json): HookCall {
  const payload = readToolPayload(body);
  return { action: actionOfTool(payload), session: payload.session };
}

function actionOfTool(payload: ToolPayload): DirectAction {
  const { tool, input, cwd } = payload;
  if (tool === "Bash") return shellAction(payload, agent);
  if (tool === "WebFetch") {
    const { url = null, ...details } = input;
    return toolAction("http", tool, agent, "network", { url, method: "GET", details });
  }
  const usual = Object.hasOwn(capabilityByTool, tool) ? capabilityByTool[tool] : undefined;
  const searched = searches.has(tool) && input.path === undefined && cwd !== undefined ? { path: cwd } : {};
  return serverAction(payload, agent) ?? toolAction("mcp", tool, agent, usual ?? "execute", { ...input, ...searched });
}

function settingsOf(hook: JsonObject): JsonObject {
  return { hooks: { PreToolUse: [{ hooks: [hook] }] } };
}
