import { canonicalJson } from "../kernel/canonical-json.ts";
import { type Capability, resolveCapability } from "../kernel/capability.ts";
import { contentDigest } from "../kernel/digest.ts";
import { compileGlob } from "../kernel/glob.ts";
import { isJsonObject, type Json, type JsonObject } from "../kernel/json.ts";
import { toolNamePattern } from "../kernel/mcp.ts";
import type { UpstreamSettings } from "../kernel/upstream-config.ts";
import { type ParamHeader, paramHeadersOf } from "./mcp-header.ts";
import { schemaFault } from "./tool-schema.ts";

/** A tool as clients may see and call it. */
export interface ListedTool {
  /** With the upstream's prefix: what clients call. */
  readonly exposedName: string;
  /** What the upstream calls it. */
  readonly name: string;
  readonly upstream: string;
  /** As shown to clients: its `name` is the exposed one. */
  readonly definition: JsonObject;
  /** `sha256:<hex>` over the RFC 8785 bytes of the upstream's own definition. */
  readonly digest: string;
  readonly annotations: JsonObject;
  readonly capability: Capability;
  /** What a stateless client must repeat in headers when it calls the tool. */
  readonly paramHeaders: readonly ParamHeader[];
}

const longestDefinition = 1024 * 1024;
const mostKept = 10_000;
const mostKeptCharacters = 32 * 1024 * 1024;

/** Reads the tool definitions of one upstream, each different text once for all of its sessions. */
export class ToolReader {
  readonly #settings: UpstreamSettings;
  readonly #known: Map<string, ListedTool | string> = new Map();
  #keptCharacters = 0;
  readonly #paramHeaders: Map<string, readonly ParamHeader[]> = new Map();

  constructor(settings: UpstreamSettings) {
    this.#settings = settings;
  }

  /** The tool, or why clients must not see it. */
  read(definition: JsonObject): ListedTool | string {
    const text = JSON.stringify(definition);
    if (text.length > longestDefinition) return `its definition is longer than ${longestDefinition} characters`;
    const key = contentDigest(text);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const read = this.#judge(definition);
    this.#keptCharacters += text.length;
    if (this.#known.size >= mostKept || this.#keptCharacters > mostKeptCharacters) {
      this.#known.clear();
      this.#keptCharacters = text.length;
    }
    this.#known.set(key, read);
    return read;
  }

  /** What the stateless revision wants repeated in headers when this tool is called. */
  paramHeaders(tool: string): readonly ParamHeader[] {
    return this.#paramHeaders.get(tool) ?? [];
  }

  #judge(definition: JsonObject): ListedTool | string {
    const { name, inputSchema, outputSchema } = definition;
    const { name: upstream, toolPrefix, trustAnnotations } = this.#settings;
    const exposedName = `${toolPrefix}${String(name)}`;
    if (typeof name !== "string" || !toolNamePattern.test(name) || !toolNamePattern.test(exposedName)) {
      return "its name is not 1 to 128 letters, digits, `_`, `-` or `.`";
    }
    if (!isJsonObject(inputSchema)) return "it has no input schema";
    const fault = schemaFault(inputSchema) ?? (outputSchema === undefined ? undefined : schemaFault(outputSchema));
    if (fault !== undefined) return fault;
    const annotations = isJsonObject(definition.annotations) ? definition.annotations : {};
    if (this.#paramHeaders.size >= mostKept) this.#paramHeaders.clear();
    const paramHeaders = paramHeadersOf(inputSchema);
    this.#paramHeaders.set(name, paramHeaders);
    return {
      exposedName,
      name,
      upstream,
      definition: toolPrefix === "" ? definition : { ...definition, name: exposedName },
      digest: contentDigest(canonicalJson(definition)),
      annotations,
      capability: resolveCapability({
        configured: this.#configured(name),
        annotations: hints(annotations),
        trustAnnotations,
      }),
      paramHeaders,
    };
  }

  /** The exact name before any glob, the longest glob before others. */
  #configured(name: string): Capability | undefined {
    const { capabilities } = this.#settings;
    if (Object.hasOwn(capabilities, name)) return capabilities[name];
    let best: string | undefined;
    for (const pattern of Object.keys(capabilities)) {
      if (compileGlob(pattern).test(name) && pattern.length > (best?.length ?? -1)) best = pattern;
    }
    return best === undefined ? undefined : capabilities[best];
  }
}

function hints(annotations: JsonObject): { readonly readOnlyHint?: boolean; readonly destructiveHint?: boolean } {
  const flag = (value: Json | undefined): boolean | undefined => (typeof value === "boolean" ? value : undefined);
  const readOnlyHint = flag(annotations.readOnlyHint);
  const destructiveHint = flag(annotations.destructiveHint);
  return {
    ...(readOnlyHint === undefined ? {} : { readOnlyHint }),
    ...(destructiveHint === undefined ? {} : { destructiveHint }),
  };
}
