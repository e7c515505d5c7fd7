import type { Attributes } from "@opentelemetry/api";
import type { ActionEnvelope } from "../../kernel/envelope.ts";
import type { Evaluation } from "../../kernel/evaluation.ts";
import { toolNamePattern } from "../../kernel/mcp.ts";
import type { TokenUsage } from "../../kernel/token-usage.ts";

// All that a span ever says is made in this file. None of it is an argument, an answer, a key or a session's id.

/** The vendors' names by the names of their providers in the configuration. */
export type ProviderTypes = ReadonlyMap<string, string>;

/** What an action is called, and what the conventions say of it. */
export interface Description {
  readonly name: string;
  readonly attributes: Attributes;
}

/**
 * A tool's name is one that an upstream lists, a model's one that a route names: both come from a bounded set, in
 * characters that mean nothing to a terminal or a page.
 */
export function describeAction(action: ActionEnvelope, method: string, providers: ProviderTypes): Description {
  if (action.protocol === "model") return describeModel(action, providers);
  const isTool = toolNamePattern.test(action.tool);
  const tool = isTool ? { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": action.tool } : {};
  return {
    name: isTool ? `${method} ${action.tool}` : method,
    attributes: { ...commonOf(action), "mcp.method.name": method, ...tool },
  };
}

function describeModel(action: ActionEnvelope, providers: ProviderTypes): Description {
  const [provider = "", ...rest] = action.target.split("/");
  const model = rest.join("/");
  return {
    name: `chat ${model}`,
    attributes: { ...commonOf(action), ...modelAttributes(providers.get(provider) ?? provider, model) },
  };
}

/** Of a request to a model, in spans and in metrics. */
function modelAttributes(provider: string, model: string): Attributes {
  return { "gen_ai.operation.name": "chat", "gen_ai.provider.name": provider, "gen_ai.request.model": model };
}

function commonOf({ id, tenant, target }: ActionEnvelope): Attributes {
  return { "gateway.action.id": id, "gateway.tenant": tenant, "gateway.target": target };
}

const rulePattern = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$/;
const mostRules = 8;

/** What was decided, and the rules that made it so. What a rule says of it may repeat the arguments, and stays here. */
export function evaluationAttributes({ id, decision, determining }: Evaluation): Attributes {
  const rules = [...new Set(determining.map(({ rule }) => rule))].filter((rule) => rulePattern.test(rule));
  return { "gateway.evaluation.id": id, "gateway.decision": decision, "gateway.rule": rules.slice(0, mostRules) };
}

export function usageAttributes({ inputTokens, outputTokens }: TokenUsage): Attributes {
  return { "gen_ai.usage.input_tokens": inputTokens, "gen_ai.usage.output_tokens": outputTokens };
}
