import type { ToolDefinition } from "../action/envelope.ts";
import type { JsonObject } from "../action/json.ts";

/** The state of a tool for one tenant, as of one generation of the definitions. */
export interface Standing {
  readonly generation: number;
  /** Members for the definition that policies judge: findings where the tool is withheld, else none. */
  readonly marks: Pick<ToolDefinition, "findings">;
}

/** A tool as its upstream publishes it. */
export interface PublishedTool {
  readonly upstream: string;
  /** The upstream's own name for it. */
  readonly name: string;
  /** The name that clients call. */
  readonly exposedName: string;
  /** As shown to clients: its `name` is the exposed one. */
  readonly definition: JsonObject;
  /** `sha256:<hex>` over the RFC 8785 bytes of the upstream's own definition. */
  readonly digest: string;
  /** By tenant. Written by the definition store only. */
  readonly standings: Map<string, Standing>;
}
