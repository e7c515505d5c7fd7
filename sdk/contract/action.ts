import type { Json, JsonObject } from "./json.ts";

export type Protocol = "mcp" | "http" | "shell" | "sql" | "git" | "model";
/** `list`: may this tool be seen; `input`: may this action run; `output`: may this answer be returned. */
export type Phase = "list" | "input" | "output";
export type Capability = "read" | "generate" | "network" | "write" | "execute" | "approve" | "deploy" | "delete";
export type Role = "admin" | "operator" | "viewer";

/** The status of the ticket presented with an action; all but `valid` are reasons for refusing it. */
export type TicketStanding =
  | "valid"
  | "forged"
  | "unknown"
  | "expired"
  | "not_yet"
  | "other_principal"
  | "other_tenant"
  | "out_of_scope"
  | "revoked"
  | "used_up"
  | "replayed";

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
  /** The client's continuation of an interrupted request. */
  readonly continuation?: JsonObject;
  /** The upstream's answer; in phase `output` only. */
  readonly output?: Json;
  /** The tool as its upstream described it. */
  readonly tool_definition?: ToolDefinition;
  /** True where the operator marked the tool as a source of untrusted content. */
  readonly untrusted?: true;
  /** The capability ticket that came with it. */
  readonly ticket?: { readonly id: string | null; readonly standing: TicketStanding };
  /** The client's self-declared name and version, and its address. */
  readonly client: { readonly name: string; readonly version: string; readonly address: string };
  /** The hosts and paths that its arguments reach. Absent for model requests, which reach nowhere by themselves. */
  readonly facts?: ActionFacts;
  /** The state of its session before it. */
  readonly session_state?: SessionState;
}

/** The tool as its upstream described it: whole in phase `list`, else digest and annotations alone. */
export interface ToolDefinition {
  /** `sha256:<hex>` over the RFC 8785 bytes of the definition. */
  readonly digest: string;
  readonly annotations: JsonObject;
  readonly title?: string;
  readonly description?: string;
  readonly input_schema?: JsonObject;
  readonly output_schema?: JsonObject;
}

/** The effect of an action, weakest first. `unknown`: nobody can tell. */
export type ActionEffect = "read" | "write" | "delete" | "execute" | "network" | "unknown";

/** At most 20 hosts and paths, and whether there are more. */
export interface ActionFacts {
  /** The one of its strictest part, or of its capability where nothing else is known. */
  readonly effect: ActionEffect;
  /** Hosts of URLs, with the port where one is written. */
  readonly hosts: readonly string[];
  /** Absolute and home-relative paths, and those that climb. */
  readonly paths: readonly string[];
  readonly more: boolean;
}

export interface SessionState {
  /** Whole points; they drain with time. */
  readonly risk: number;
  /** Actions before this one that were let through, and those that are being judged beside it. */
  readonly actions: number;
  /** New reviews it asked for. */
  readonly reviews: number;
  /** The number of different tools it used; `new_tool`: this action's is not among them. */
  readonly tools: number;
  readonly new_tool: boolean;
  readonly taints: readonly Taint[];
}

/** Content that the session read, which may influence everything after it. */
export interface Taint {
  /** `untrusted`, or the word of the rule that found it. */
  readonly name: string;
  /** The upstream, its tool, and the action it came with. */
  readonly target: string;
  readonly tool: string;
  readonly action: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** The input of `evaluate`. */
export interface PluginInput {
  /** The author's defaults with the operator's values applied. */
  readonly settings: JsonObject;
  readonly action: ActionEnvelope;
}
