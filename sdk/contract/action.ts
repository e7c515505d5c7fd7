import type { Json, JsonObject } from "./json.ts";

export type Protocol = "mcp" | "http" | "shell" | "sql" | "git" | "model";
/** `list`: may this tool be seen; `input`: may this action run; `output`: may this answer be returned. */
export type Phase = "list" | "input" | "output";
export type Capability = "read" | "generate" | "network" | "write" | "execute" | "approve" | "deploy" | "delete";
export type Role = "admin" | "operator" | "viewer";

/** One attempted action, as every policy sees it: what a plugin judges. */
export interface ActionEnvelope {
  readonly version: 1;
  /** UUIDv7; the same in all phases of one action. */
  readonly id: string;
  /** RFC 3339, milliseconds, UTC. */
  readonly time: string;
  readonly tenant: string;
  readonly principal: { readonly id: string; readonly role: Role; readonly keyId: string };
  readonly session: { readonly id: string; readonly transport: "http" | "sse"; readonly label?: string };
  readonly task: string | null;
  readonly protocol: Protocol;
  readonly phase: Phase;
  readonly tool: string;
  /** The upstream's name. */
  readonly target: string;
  readonly capability: Capability;
  readonly arguments: Json;
  /** What a client sends to continue an interrupted request. */
  readonly continuation?: JsonObject;
  /** The upstream's answer; in phase `output` only. */
  readonly output?: Json;
  /** The tool as its upstream described it. */
  readonly tool_definition?: { readonly digest: string; readonly annotations: JsonObject };
  /** What the client says of itself, and where it came from. */
  readonly client: { readonly name: string; readonly version: string; readonly address: string };
}

/** What `evaluate` reads. */
export interface PluginInput {
  /** The author's defaults with the operator's values in their place. */
  readonly settings: JsonObject;
  readonly action: ActionEnvelope;
}
