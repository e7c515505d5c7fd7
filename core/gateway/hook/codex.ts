import type { Json } from "../../action/json.ts";
import type { AgentForm, HookCall } from "./agent-form.ts";
import type { DirectAction } from "./direct-action.ts";
import { hookLine, hookTimeout, preToolAnswer, preToolDecision } from "./pre-tool-answer.ts";
import { readToolPayload, serverAction, shellAction, type ToolPayload, toolAction } from "./tool-payload.ts";

const agent = "codex";

/**
 * The contract of Codex: `PreToolUse`, over a command. It understands a denial with a reason, and silence as permission; an
 * answer that says `allow` or `ask`, or has a member that it does not know, counts as a failed hook, after which the tool runs.
 */
export const codexForm: AgentForm = {
  read: readCodex,
  answer: ({ decision, reason }) => (decision === "allow" ? {} : preToolAnswer("deny", reason)),
  effectOf: (answer) => {
    if (Object.keys(answer).length === 0) return "allow";
    return preToolDecision(answer) === "deny" ? "deny" : undefined;
  },
  exitCodes: { allow: 0, ask: 2, deny: 0 },
  settings: (place) => ({
    hooks: {
      PreToolUse: [{ hooks: [{ type: "command", command: hookLine(agent, place), timeout: hookTimeout(place) }] }],
    },
  }),
  facts: { apply_patch: { path: ["paths"] } },
  offered: {
    // A patch may delete files, and what is written to a running program may be a command.
    capabilities: { apply_patch: "delete", write_stdin: "execute", update_plan: "read", view_image: "read" },
    facts: {
      shell: { shell: "command" },
      shell_command: { shell: "command" },
      local_shell: { shell: "command" },
      exec_command: { shell: "cmd" },
      view_image: { path: ["path"] },
    },
  },
};

function readCodex(body: Json): HookCall {
  const payload = readToolPayload(body);
  return { action: actionOfTool(payload), session: payload.session };
}

function actionOfTool(payload: ToolPayload): DirectAction {
  const { tool, input } = payload;
  if (tool === "Bash") return shellAction(payload, agent);
  if (tool === "apply_patch") return patchAction(payload);
  return serverAction(payload, agent) ?? toolAction("mcp", tool, agent, "execute", input);
}

const patchedPath = /^\s*\*\*\* (Add File|Update File|Delete File|Move to): (.*)$/gm;

/** The action of a patch, with the paths that it names. One that deletes a file is a deletion. */
function patchAction({ tool, input, cwd }: ToolPayload): DirectAction {
  const { command } = input;
  const found = typeof command === "string" ? [...command.matchAll(patchedPath)] : [];
  const paths = found.map(([, , path = ""]) => path.trim());
  const deletes = found.some(([, verb]) => verb === "Delete File");
  const folder = cwd === undefined ? {} : { cwd };
  return toolAction("mcp", tool, agent, deletes ? "delete" : "write", { ...input, paths, ...folder });
}
