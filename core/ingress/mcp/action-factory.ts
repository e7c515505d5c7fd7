import type { Capability } from "../../kernel/capability.ts";
import { type ActionEnvelope, sealEnvelope, type ToolDefinition } from "../../kernel/envelope.ts";
import type { JsonObject } from "../../kernel/json.ts";
import type { Clock } from "../../kernel/port.ts";
import type { Caller } from "./caller.ts";

/** The target of an action that goes to every upstream. No upstream can bear this name. */
export const everyUpstream = "*";

/** What an MCP message asks for, once its owner is known. */
export interface Attempt {
  /** The upstream's tool name, or the MCP method itself. */
  readonly tool: string;
  readonly target: string;
  readonly capability: Capability;
  readonly arguments: JsonObject;
  readonly continuation?: JsonObject | undefined;
  readonly definition?: ToolDefinition | undefined;
}

/** Makes the envelope of what a caller attempts: the only place where MCP becomes an action. */
export class ActionFactory {
  readonly #clock: Clock;
  readonly #newId: () => string;

  constructor(clock: Clock, newId: () => string) {
    this.#clock = clock;
    this.#newId = newId;
  }

  /** The sealed envelope, phase `input`, or `list` for the question whether a tool may be seen. */
  make(caller: Caller, attempt: Attempt, phase: "input" | "list" = "input"): ActionEnvelope {
    const { principal } = caller;
    return sealEnvelope({
      version: 1,
      id: this.#newId(),
      time: new Date(this.#clock()).toISOString(),
      tenant: principal.tenant,
      principal: { id: principal.id, role: principal.role, keyId: principal.keyId },
      session: caller.scope,
      task: null,
      protocol: "mcp",
      phase,
      tool: attempt.tool,
      target: attempt.target,
      capability: attempt.capability,
      arguments: attempt.arguments,
      ...(attempt.continuation === undefined ? {} : { continuation: attempt.continuation }),
      ...(attempt.definition === undefined ? {} : { tool_definition: attempt.definition }),
      client: caller.client,
    });
  }
}
