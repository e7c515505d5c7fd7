import type { Json, JsonObject } from "./json.ts";

export type Protocol = "mcp" | "http" | "shell" | "sql" | "git" | "model";
/** `list`: may this tool be seen; `input`: may this action run; `output`: may this answer be returned. */
export type Phase = "list" | "input" | "output";
export type Capability = "read" | "generate" | "network" | "write" | "execute" | "approve" | "deploy" | "delete";
export type Role = "admin" | "operator" | "viewer";

/** Whether a ticket permits the action it came with; all but `valid` are reasons why not. */
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
  /** What a client sends to continue an interrupted request. */
  readonly continuation?: JsonObject;
  /** The upstream's answer; in phase `output` only. */
  readonly output?: Json;
  /** The tool as its upstream described it. */
  readonly tool_definition?: { readonly digest: string; readonly annotations: JsonObject };
  /** Whether the operator says that this tool brings in what strangers wrote. */
  readonly untrusted?: true;
  /** The capability ticket that came with it. */
  readonly ticket?: { readonly id: string | null; readonly standing: TicketStanding };
  /** What the client says of itself, and where it came from. */
  readonly client: { readonly name: string; readonly version: string; readonly address: string };
  /** Where its arguments reach to. Absent for model requests, which reach nowhere by themselves. */
  readonly facts?: ActionFacts;
  /** What its session did and met before it. */
  readonly session_state?: SessionState;
}

/** At most 20 of each, and whether there are more. */
export interface ActionFacts {
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
  /** Different tools it used, and whether this action's is not among them. */
  readonly tools: number;
  readonly new_tool: boolean;
  readonly taints: readonly Taint[];
}

/** Something a session met that everything it does afterwards may be due to. */
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

/** What `evaluate` reads. */
export interface PluginInput {
  /** The author's defaults with the operator's values in their place. */
  readonly settings: JsonObject;
  readonly action: ActionEnvelope;
}
