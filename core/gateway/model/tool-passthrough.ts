import { GatewayError } from "../../action/error.ts";
import { isGiven, isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { ModelApi } from "../../action/model-api.ts";
import { visibleText } from "../../action/visible-text.ts";

/** The tools that a model request may offer. */
export interface ToolPassthrough {
  /** `off`: none on the messages API. `client`: those that the client runs. `all`: also the listed ones of providers. */
  readonly passes: "off" | "client" | "all";
  /** Tools that a provider runs, by type, and members that ask for some: what `all` passes. */
  readonly providerTools: readonly string[];
}

/** Tools of the messages API that its clients run, though the API defines them. */
const clientTypes = /^(?:custom|(?:bash|text_editor|computer|memory)_\d{8})$/;

/** Tools of the responses API that its clients run. */
const responsesTypes: ReadonlySet<string> = new Set([
  "function",
  "custom",
  "local_shell",
  "apply_patch",
  "computer",
  "computer_use_preview",
]);

/** Items of an answer of the responses API that are no work of a tool, or of one that the client runs. */
const responsesItems: ReadonlySet<string> = new Set([
  "message",
  "reasoning",
  "compaction",
  "function_call",
  "custom_tool_call",
  "local_shell_call",
  "shell_call",
  "apply_patch_call",
  "computer_call",
]);

/** Members with which a request has a provider act by itself; the first two are of the messages API. */
const actingMembers = [
  "mcp_servers",
  "container",
  "web_search_options",
  "search_parameters",
  "plugins",
  "data_sources",
  "tool_resources",
] as const;

const toolMembers = ["tools", "tool_choice", "mcp_servers"] as const;
const toolBlock = /tool_(?:use|result)$/;
const maxNamed = 64;

/**
 * Throws TOOLS_DISABLED for a request that offers tools which are not passed on, and on the messages API for one that contains
 * their use; INVALID_REQUEST where its tools are no list of objects. A type that is not known is of a tool that the provider
 * runs: the gateway would not see what it does.
 */
export function refuseTools(passthrough: ToolPassthrough, api: ModelApi, body: JsonObject): void {
  if (api === "messages" && passthrough.passes === "off") refuseAnyTool(body);
  const { passes, providerTools } = passthrough;
  const refused = providerToolsOf(api, body).find((name) => passes !== "all" || !providerTools.includes(name));
  if (refused === undefined) return;
  const name = visibleText(refused.slice(0, maxNamed));
  throw new GatewayError(
    "TOOLS_DISABLED",
    `expected tools that the client runs, got \`${name}\`, which the provider runs; an operator may set ` +
      "`model_gateway.tool_passthrough: all` and list it in `model_gateway.provider_tools`",
  );
}

function refuseAnyTool(body: JsonObject): void {
  const member = toolMembers.find((name) => Object.hasOwn(body, name));
  if (member !== undefined) throw noTools(`\`${member}\``);
  const messages = Array.isArray(body.messages) ? (body.messages as readonly Json[]) : [];
  if (messages.some((message) => isJsonObject(message) && hasBlock(message, isToolBlock)))
    throw noTools("a tool block");
}

function noTools(what: string): GatewayError {
  const remedy = "an operator may set `model_gateway.tool_passthrough: client` for tools that the client runs";
  return new GatewayError("TOOLS_DISABLED", `expected no tools, got ${what}; ${remedy}`);
}

/** The tools that a request has the provider run, by type or by the member that asks for them. */
function providerToolsOf(api: ModelApi, body: JsonObject): readonly string[] {
  const members = actingMembers.filter((name) => isGiven(body[name]) && !isContainerId(name, body[name]));
  const tools = api === "responses" ? [...toolsOf(body), ...toolsOfItems(body)] : toolsOf(body);
  return [...members, ...tools.flatMap((tool) => providerType(api, tool) ?? [])];
}

/** The tools that items of a responses request let the provider run: those they add, and those whose calls they approve. */
function toolsOfItems({ input }: JsonObject): readonly JsonObject[] {
  const items = Array.isArray(input) ? input.filter(isJsonObject) : [];
  return items.flatMap((item) => [
    ...toolsOf(item),
    ...(item.type === "mcp_approval_response" ? [{ type: "mcp" }] : []),
  ]);
}

/** A container by its id is one that an earlier request began; what it may do comes with the tools. */
function isContainerId(name: string, value: Json | undefined): boolean {
  return name === "container" && typeof value === "string";
}

function toolsOf({ tools }: JsonObject): readonly JsonObject[] {
  if (!isGiven(tools)) return [];
  if (Array.isArray(tools) && tools.every(isJsonObject)) return tools;
  throw new GatewayError("INVALID_REQUEST", "expected `tools` to be a list of objects");
}

/** The type of a tool that the provider runs; undefined for one that the client runs. */
function providerType(api: ModelApi, tool: JsonObject): string | undefined {
  const { type } = tool;
  if (api === "responses") return responsesProviderType(tool);
  if (!isGiven(type)) {
    const isOfClient = api === "messages" || isJsonObject(tool.function);
    return isOfClient ? undefined : (Object.keys(tool)[0] ?? "");
  }
  const name = typeof type === "string" ? type : "";
  const isOfClient = api === "messages" ? clientTypes.test(name) : name === "function" || name === "custom";
  return isOfClient ? undefined : name;
}

/** A namespace holds tools of its own; a shell and a search of tools are run by whom they say. */
function responsesProviderType(tool: JsonObject): string | undefined {
  const name = typeof tool.type === "string" ? tool.type : (Object.keys(tool)[0] ?? "");
  if (name === "namespace")
    return toolsOf(tool)
      .map(responsesProviderType)
      .find((type) => type !== undefined);
  const environment = isJsonObject(tool.environment) ? tool.environment.type : undefined;
  if (name === "shell" && environment === "local") return undefined;
  if (name === "tool_search" && tool.execution === "client") return undefined;
  return responsesTypes.has(name) ? undefined : name;
}

/** Throws TOOLS_DISABLED for a response of an API, or a part of one, that contains the use of a tool that is not passed on. */
export function refuseToolUse({ passes }: ToolPassthrough, api: ModelApi, body: JsonObject): void {
  if (api === "chat" || passes === "all") return;
  if (api === "responses" ? hasProviderItem(body) : hasBlock(body, passes === "off" ? isToolBlock : isProviderBlock)) {
    throw new GatewayError("TOOLS_DISABLED", "the model asked for a tool, which is not passed on");
  }
}

function hasProviderItem({ output }: JsonObject): boolean {
  return Array.isArray(output) && output.some((item: Json) => isJsonObject(item) && !isClientItem(item));
}

function isClientItem({ type, execution }: JsonObject): boolean {
  return responsesItems.has(String(type)) || (type === "tool_search_call" && execution === "client");
}

function hasBlock({ content }: JsonObject, isOfKind: (type: string) => boolean): boolean {
  return Array.isArray(content) && content.some((block: Json) => isJsonObject(block) && isOfKind(String(block.type)));
}

function isToolBlock(type: string): boolean {
  return toolBlock.test(type);
}

function isProviderBlock(type: string): boolean {
  return isToolBlock(type) && type !== "tool_use";
}
