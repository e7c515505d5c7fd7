import { AuthorizedAction } from "../../action/authorized-action.ts";
import { everyUpstream, type ToolDefinition } from "../../action/envelope.ts";
import { GatewayError } from "../../action/error.ts";
import type { Evaluation } from "../../action/evaluation.ts";
import { isJsonObject, type JsonObject } from "../../action/json.ts";
import type { JsonRpcRequest, JsonRpcResponse } from "../../action/json-rpc.ts";
import type { DefinitionStore } from "../../definition/definition-store.ts";
import type { Standing } from "../../definition/published-tool.ts";
import type { ActionFactory, Attempt } from "../../road/action-factory.ts";
import type { Answer } from "../../road/dispatch.ts";
import { evaluateAction, type Road, runAction } from "../../road/run.ts";
import type { ListedItem } from "../../upstream/catalog.ts";
import type { UpstreamFleet } from "../../upstream/fleet.ts";
import type { HiddenTool } from "../../upstream/hidden-tools.ts";
import type { ListedTool } from "../../upstream/tool-reader.ts";
import { answerOfResult, replyOf } from "./answer.ts";
import type { Caller } from "./caller.ts";

export interface ListParts {
  readonly definitions: DefinitionStore;
  readonly fleet: UpstreamFleet;
  readonly road: Road;
  readonly actions: ActionFactory;
}

/**
 * Serves a list method with the items of all upstreams, in one page. A tool is listed only where policy allows it in phase
 * `list`. The result depends on the caller: it must not be cached for others.
 */
export async function serveList(parts: ListParts, caller: Caller, request: JsonRpcRequest): Promise<JsonRpcResponse> {
  const action = parts.actions.make(caller, {
    tool: request.method,
    target: everyUpstream,
    capability: "read",
    arguments: {},
  });
  const reply = replyOf(await runAction(parts.road, action, (permission) => collect(parts, permission, caller)));
  return { jsonrpc: "2.0", id: request.id, ...reply };
}

async function collect(
  parts: ListParts,
  permission: AuthorizedAction,
  caller: Caller,
): Promise<Answer<{ readonly result: JsonObject }>> {
  const { tool: method } = AuthorizedAction.spend(permission);
  const items = await definitions(parts, method, caller);
  const cache = caller.era.era === "modern" ? { resultType: "complete", ttlMs: 0, cacheScope: "private" } : {};
  return answerOfResult({ ...items, ...cache });
}

async function definitions(parts: ListParts, method: string, caller: Caller): Promise<JsonObject> {
  const { group } = caller;
  if (method === "tools/list") return { tools: await visibleTools(parts, caller) };
  if (method === "prompts/list") return { prompts: (await group.prompts()).map(definitionOf) };
  if (method === "resources/list") return { resources: (await group.resources()).map(definitionOf) };
  if (method === "resources/templates/list") {
    return { resourceTemplates: (await group.resourceTemplates()).map(definitionOf) };
  }
  throw new GatewayError("METHOD_UNKNOWN", `\`${method}\``);
}

async function visibleTools(parts: ListParts, caller: Caller): Promise<JsonObject[]> {
  const visible: JsonObject[] = [];
  const { tenant, role } = caller.principal;
  const taken = new Set<string>();
  await caller.group.tools();
  const tools = caller.group.toolClaims;
  await parts.definitions.judge(caller.principal, tools);
  for (const tool of tools) {
    const { marks } = tool.standings.get(tenant) as Standing;
    // A name that two claim belongs to the first whose definition is not withheld.
    if (taken.has(tool.exposedName) && marks.findings === undefined) continue;
    if (marks.findings === undefined) taken.add(tool.exposedName);
    const { evaluation } = await evaluateAction(parts.road, parts.actions.make(caller, seeing(tool, marks), "list"));
    const isShown = evaluation.decision === "allow";
    if (isShown) visible.push(tool.definition);
    const from = { tenant, role, upstream: tool.upstream, tool: tool.name };
    parts.fleet.hiddenTools.update(from, isShown ? null : hiddenBy(evaluation));
  }
  return visible;
}

/** The rule that hides a tool, and its message. */
function hiddenBy({ determining: [first], byDefault }: Evaluation): Pick<HiddenTool, "rule" | "reason"> {
  if (first !== undefined) return { rule: first.rule, reason: first.message };
  return { rule: null, reason: byDefault ? "no rule allows it" : "policy could not be evaluated" };
}

function seeing(tool: ListedTool, marks: Standing["marks"]): Attempt {
  return {
    tool: tool.name,
    target: tool.upstream,
    capability: tool.capability,
    arguments: {},
    definition: { ...wholeDefinition(tool), ...marks },
  };
}

/** The definition with every member that policy may judge. */
function wholeDefinition({ digest, annotations, definition }: ListedTool): ToolDefinition {
  const { title = annotations.title, description, inputSchema, outputSchema } = definition;
  return {
    digest,
    annotations,
    ...(typeof title === "string" ? { title } : {}),
    ...(typeof description === "string" ? { description } : {}),
    ...(isJsonObject(inputSchema) ? { input_schema: inputSchema } : {}),
    ...(isJsonObject(outputSchema) ? { output_schema: outputSchema } : {}),
  };
}

function definitionOf(item: ListedItem): JsonObject {
  return item.definition;
}
