import type { Capability } from "../action/capability.ts";
import type { PresentedTicket } from "../action/capability-ticket.ts";
import {
  type ActionEnvelope,
  type ClientIdentity,
  checkBounds,
  type Protocol,
  type ToolDefinition,
} from "../action/envelope.ts";
import { compileGlob, type Glob } from "../action/glob.ts";
import { type Clock, timeText } from "../action/id.ts";
import type { JsonObject } from "../action/json.ts";
import type { Principal, SessionScope } from "../action/principal.ts";
import type { UpstreamSettings } from "../config/gateway-config.ts";

/** The caller of an action and the session it acts in. */
export interface Actor {
  readonly principal: Principal;
  readonly scope: SessionScope;
  readonly client: ClientIdentity;
}

/** A request resolved to the upstream that serves it. */
export interface Attempt {
  /** The upstream's tool name, the MCP method itself, or the kind of a model request. */
  readonly tool: string;
  readonly target: string;
  readonly capability: Capability;
  readonly arguments: JsonObject;
  readonly continuation?: JsonObject | undefined;
  readonly definition?: ToolDefinition | undefined;
  readonly ticket?: PresentedTicket | undefined;
  /** True where the answer may hold text of strangers; absent: as configured for the name of the tool. */
  readonly untrusted?: boolean;
}

/** Finds the task that a session works on; null where none is declared. */
export interface TaskSource {
  taskOf(principal: Principal, scope: SessionScope): string | null;
}

/** The configuration and state that an action is built from beside its request. */
interface ActionSources {
  readonly untrusted: UntrustedSources;
  readonly tasks: TaskSource;
}

/** Makes the envelope of what a caller attempts: the only place where a request becomes an action. */
export class ActionFactory {
  readonly #protocol: Protocol;
  readonly #clock: Clock;
  readonly #newId: () => string;
  readonly #sources: ActionSources;

  constructor(protocol: Protocol, clock: Clock, newId: () => string, sources: ActionSources) {
    this.#protocol = protocol;
    this.#clock = clock;
    this.#newId = newId;
    this.#sources = sources;
  }

  /** Returns true where the operator marked this tool or method as a source of text of strangers. */
  isUntrusted(target: string, tool: string): boolean {
    return this.#sources.untrusted.has(target, tool);
  }

  /** Returns the attempt, sealed when it runs: phase `input`, or `list` for the question whether a tool may be seen. */
  make(actor: Actor, attempt: Attempt, phase: "input" | "list" = "input"): ActionEnvelope {
    const { principal } = actor;
    const untrusted = attempt.untrusted ?? this.#sources.untrusted.has(attempt.target, attempt.tool);
    return checkBounds({
      version: 1,
      id: this.#newId(),
      time: timeText(this.#clock()),
      tenant: principal.tenant,
      principal: { id: principal.id, role: principal.role, keyId: principal.keyId },
      session: actor.scope,
      task: this.#sources.tasks.taskOf(principal, actor.scope),
      protocol: this.#protocol,
      phase,
      tool: attempt.tool,
      target: attempt.target,
      capability: attempt.capability,
      arguments: attempt.arguments,
      ...(attempt.continuation === undefined ? {} : { continuation: attempt.continuation }),
      ...(attempt.definition === undefined ? {} : { tool_definition: attempt.definition }),
      ...(attempt.ticket === undefined ? {} : { ticket: attempt.ticket }),
      ...(untrusted ? { untrusted } : {}),
      client: actor.client,
    });
  }
}

/** The tools and methods that the operator marked as sources of text of strangers, by upstream. */
export class UntrustedSources {
  readonly #globs: ReadonlyMap<string, readonly Glob[]>;

  constructor(upstreams: readonly Pick<UpstreamSettings, "name" | "untrusted">[]) {
    this.#globs = new Map(upstreams.map(({ name, untrusted }) => [name, untrusted.map(compileGlob)]));
  }

  /** `name`: of a tool at the upstream, or of a method. */
  has(upstream: string, name: string): boolean {
    return this.#globs.get(upstream)?.some((glob) => glob.test(name)) ?? false;
  }
}
