import type { AgentForm } from "./agent-form.ts";
import { claudeCodeForm } from "./claude-code.ts";
import { codexForm } from "./codex.ts";
import { genericForm } from "./generic.ts";

export const hookAgents = ["claude-code", "codex", "generic"] as const;
export type HookAgent = (typeof hookAgents)[number];

export const agentForms: Readonly<Record<HookAgent, AgentForm>> = {
  "claude-code": claudeCodeForm,
  codex: codexForm,
  generic: genericForm,
};

/** Returns the form of an agent; undefined for an unknown one. */
export function agentForm(name: string): AgentForm | undefined {
  return Object.hasOwn(agentForms, name) ? agentForms[name as HookAgent] : undefined;
}
