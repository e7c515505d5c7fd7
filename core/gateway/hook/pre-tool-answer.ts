import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { HookPlace } from "./agent-form.ts";

/** The answer that Claude Code and Codex understand as a decision about a tool call. */
export function preToolAnswer(permissionDecision: "allow" | "deny", reason: string): JsonObject {
  return {
    hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision, permissionDecisionReason: reason },
  };
}

/** Returns the decision in such an answer; undefined where the agent would read none. */
export function preToolDecision({ hookSpecificOutput: output }: JsonObject): Json | undefined {
  if (!isJsonObject(output) || output.hookEventName !== "PreToolUse") return undefined;
  const { permissionDecision, permissionDecisionReason: reason } = output;
  return typeof reason === "string" && reason.trim() !== "" ? permissionDecision : undefined;
}

/** Seconds that an agent gives the hook beyond the wait for a review. */
const spareSeconds = 20;

/** The time after which an agent may give up its hook, in seconds: the hook itself ends before. */
export function hookTimeout({ waitSeconds }: HookPlace): number {
  return waitSeconds + spareSeconds;
}

/** The shell line of a hook. However it fails, it ends with 2: agents go on after every other code but 0. */
export function hookLine(agent: string, { url, waitSeconds }: HookPlace): string {
  const command = `gateway hook ${agent} --url '${url}' --wait ${waitSeconds}`;
  return `${command} || { echo 'the hook of the gateway failed: the tool does not run' >&2; exit 2; }`;
}
