import type { ActionFacts } from "./action-fact.ts";
import type { Capability } from "./capability.ts";
import type { PresentedTicket } from "./capability-ticket.ts";
import { GatewayError } from "./error.ts";
import { deepFreeze, type Json, type JsonObject } from "./json.ts";
import type { SessionScope } from "./principal.ts";
import type { Role } from "./role.ts";
import type { PastAction, SessionState } from "./session-state.ts";

export const protocols = ["mcp", "http", "shell", "sql", "git", "model"] as const;
export type Protocol = (typeof protocols)[number];

/** The protocols of actions that an agent takes by itself; models are reached through the gateway alone. */
export const directProtocols = ["http", "shell", "sql", "git", "mcp"] as const satisfies readonly Protocol[];
export type DirectProtocol = (typeof directProtocols)[number];

/** `list`: may this tool be seen; `input`: may this action run; `output`: may this answer be returned. */
export const phases = ["list", "input", "output"] as const;
export type Phase = (typeof phases)[number];

/** The target of an action that goes to every upstream. No upstream can bear this name. */
export const everyUpstream = "*";

/**
 * Reasons to withhold a tool's definition. `changed`: it is not the pinned one. `renamed`: it is new, while a pinned tool of its
 * upstream that it resembles is gone. `shadowing`: its name is that of another upstream's tool, or its text gives orders about
 * one. `look_alike`: its name is easily taken for another upstream's. `instructions`: its text addresses the model as an
 * attacker would. `unreviewed`: nobody approved it yet. `denied`: a reviewer denied it. `limit`: it is too large, or one too
 * many.
 */
export const definitionFindings = [
  "changed",
  "renamed",
  "shadowing",
  "look_alike",
  "instructions",
  "unreviewed",
  "denied",
  "limit",
] as const;
export type DefinitionFinding = (typeof definitionFindings)[number];

/** The definition of the tool as the upstream published it when the action was evaluated. */
export interface ToolDefinition {
  readonly digest: string;
  readonly annotations: JsonObject;
  /** The reasons for which the tool is hidden and its calls are blocked until a reviewer approves the definition. */
  readonly findings?: readonly DefinitionFinding[];
  /** These members: in phase `list` only. */
  readonly title?: string;
  readonly description?: string;
  readonly input_schema?: JsonObject;
  readonly output_schema?: JsonObject;
}

export interface ClientIdentity {
  readonly name: string;
  readonly version: string;
  readonly address: string;
}

/**
 * One attempted action, normalized: everything a policy may see, and all that is forwarded.
 * Frozen to its last leaf, so what was judged is what is dispatched.
 */
export interface ActionEnvelope {
  readonly version: 1;
  /** UUIDv7. Every evidence record of this action carries it. */
  readonly id: string;
  /** RFC 3339, milliseconds, UTC. */
  readonly time: string;
  readonly tenant: string;
  readonly principal: { readonly id: string; readonly role: Role; readonly keyId: string };
  readonly session: SessionScope;
  readonly task: string | null;
  readonly protocol: Protocol;
  readonly phase: Phase;
  readonly tool: string;
  readonly target: string;
  readonly capability: Capability;
  readonly arguments: Json;
  /** The client's continuation of an interrupted request (MCP `inputResponses`, `requestState`, passed `_meta`). */
  readonly continuation?: JsonObject;
  /** The upstream's answer; present in phase `output` only. */
  readonly output?: Json;
  readonly tool_definition?: ToolDefinition;
  /** Set where the operator marks this tool as a source of third-party content. */
  readonly untrusted?: true;
  /** The capability ticket that came with it. */
  readonly ticket?: PresentedTicket;
  readonly client: ClientIdentity;
  /** Absent in phase `list` and for models, but for an answer that asks for calls of tools which the operator stated. */
  readonly facts?: ActionFacts;
  readonly session_state?: SessionState;
  /** The session's last actions, the latest first. For packs alone: neither plugins nor reviewers are shown it. */
  readonly history?: readonly PastAction[];
}

/** The members that participants add to an action before policy sees it. */
export type ActionContext = Partial<Pick<ActionEnvelope, "session_state" | "history" | "ticket">>;

const maxName = 512;

/**
 * Checks the bounds of an action's own names (512 characters each). Throws ENVELOPE_BOUND; nothing is ever cut short.
 */
export function checkBounds(draft: ActionEnvelope): ActionEnvelope {
  for (const [field, value] of [
    ["tool", draft.tool],
    ["target", draft.target],
    ["task", draft.task ?? ""],
  ] as const) {
    if (value.length > maxName) {
      throw new GatewayError(
        "ENVELOPE_BOUND",
        `\`${field}\` expected at most ${maxName} characters, got ${value.length}`,
      );
    }
  }
  return draft;
}

/** Checks the bounds of an action and freezes it. */
export function sealEnvelope(draft: ActionEnvelope): ActionEnvelope {
  return deepFreeze(checkBounds(draft));
}

/** The same action with its answer, for the output phase. The id stays: it is still one action. */
export function withOutput(action: ActionEnvelope, output: Json): ActionEnvelope {
  return deepFreeze({ ...action, phase: "output", output });
}

/** Lets others have the thread between two steps of a large action. */
export type Pause = (action: Pick<ActionEnvelope, "tenant" | "principal">) => Promise<void>;

/** Returns the action without the history of its session. */
export function withoutHistory(action: ActionEnvelope): ActionEnvelope {
  const { history: _, ...rest } = action;
  return rest;
}

/**
 * The outcome of an action at its upstream.
 * `unknown`: the action was sent, and no answer can be vouched for (timeout, lost connection, crash).
 */
export type Outcome =
  | { readonly status: "success" | "error"; readonly output: Json }
  | { readonly status: "unknown"; readonly reason: string };
