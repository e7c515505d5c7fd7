import type { Decision } from "../../core/action/decision.ts";
import { refusalMetaKey } from "../../core/http/refusal.ts";
import type { Acknowledged, AskedChange, Errand } from "./acknowledged.ts";
import { Agent, type Answer } from "./agent.ts";
import type { LoadPerson, LoadWorld } from "./load-world.ts";

/** The steps that a load consists of. `prune` and `backup` last until they are complete. */
export const loadSteps = [
  "call",
  "blocked call",
  "hold",
  "review",
  "retry",
  "kill",
  "release",
  "issue",
  "use",
  "revoke",
  "stream",
  "prune",
  "backup",
] as const;
export type LoadStep = (typeof loadSteps)[number];

/** Called when a step begins, and when it was answered whole. */
export type StepObserver = (step: LoadStep, on: "asked" | "answered") => void;

/** The answer to a call. `cancelled`: the kill switch ended it, and nobody knows what the upstream did. */
export type CallEnd =
  | { readonly kind: "served" | "cancelled" }
  | { readonly kind: "refused"; readonly approval: { readonly id: string; readonly state: string } | null };

/** Calls a tool with arguments that hold a mark, by which the upstream's log names the call. */
export type LoadCall = (
  step: LoadStep,
  tool: string,
  args: { readonly mark: string } & Readonly<Record<string, string | number>>,
) => Promise<CallEnd>;

/** Asks again where a request was not read in time, or its upstream still starts, as on an overloaded machine: nothing came of it. */
async function untilRead<T extends Pick<Answer, "error" | "status">>(request: () => Promise<T>): Promise<T> {
  for (;;) {
    const answer = await request();
    if (answer.status !== 408 && answer.error?.data?.code !== "UPSTREAM_STARTING") return answer;
  }
}

/** The end of whatever is asked of a gateway that is killed meanwhile. */
export class GatewayKilled extends Error {}

/** Asks one gateway as several people, and remembers what was answered whole. Rejects with GatewayKilled once it is killed. */
export class LoadClient {
  readonly #world: LoadWorld;
  readonly #acknowledged: Acknowledged;
  readonly #onStep: StepObserver;
  readonly #agents: Agent[] = [];

  constructor(world: LoadWorld, acknowledged: Acknowledged, onStep: StepObserver = () => undefined) {
    this.#world = world;
    this.#acknowledged = acknowledged;
    this.#onStep = onStep;
  }

  /** An agent in a session, on a connection of its own. */
  agent(person: LoadPerson, label: string, ticket?: string): LoadCall {
    const agent = new Agent(this.#world.gateway.url, this.#world.key(person), label, ticket);
    this.#agents.push(agent);
    const errand = this.#acknowledged.errand(label);
    return async (step, tool, args) => {
      errand.sent++;
      const answer = await this.during(step, () => untilRead(() => agent.call(tool, args)));
      return remember(errand, answer);
    };
  }

  /** Asks a model, and reads the stream to its end. */
  async stream(person: LoadPerson, label: string, mark: string): Promise<void> {
    const errand = this.#acknowledged.errand(label);
    errand.sent++;
    const read = async (): Promise<{ readonly status: number; readonly body: string }> => {
      const response = await fetch(`${this.#world.gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: {
          "x-api-key": this.#world.key(person),
          "content-type": "application/json",
          "x-gateway-session-id": label,
        },
        body: JSON.stringify({ model: "usual", stream: true, messages: [{ role: "user", content: mark }] }),
      });
      return { status: response.status, body: await response.text() };
    };
    const { status, body } = await this.during("stream", () => untilRead(read));
    if (status !== 200 || !body.trimEnd().endsWith("data: [DONE]"))
      throw new Error(`expected a whole stream, got ${status}: ${body}`);
    errand.served++;
  }

  /** Asks for a change over the admin port, and remembers its answer. */
  async change<T>(
    change: AskedChange,
    person: LoadPerson,
    [method, path]: readonly ["POST" | "DELETE", string],
    body?: object,
  ): Promise<T> {
    const answer = await this.ask<T>(person, method, path, body);
    change.isAnswered = true;
    return answer;
  }

  /** Asks the admin port. Throws for every answer but 2xx. */
  async ask<T>(person: LoadPerson, method: "GET" | "POST" | "DELETE", path: string, body?: object): Promise<T> {
    const send = async (): Promise<{ readonly status: number; readonly text: string }> => {
      const response = await fetch(`${this.#world.gateway.adminUrl}/admin/v1/${path}`, {
        method,
        headers: { "x-api-key": this.#world.key(person), "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: response.status, text: await response.text() };
    };
    const { status, text } = await this.#reach(() => untilRead(send));
    if (status >= 200 && status < 300) return JSON.parse(text) as T;
    throw new Error(`expected 2xx of ${method} ${path}, got ${status}: ${text}`);
  }

  /** Makes a request that is a step of the load. */
  async during<T>(step: LoadStep, request: () => Promise<T>): Promise<T> {
    this.#onStep(step, "asked");
    const answer = await this.#reach(request);
    this.#onStep(step, "answered");
    return answer;
  }

  async hangUp(): Promise<void> {
    await Promise.all(this.#agents.splice(0).map((agent) => agent.hangUp()));
  }

  async #reach<T>(request: () => Promise<T>): Promise<T> {
    try {
      return await request();
    } catch (error) {
      throw this.#world.isKilled ? new GatewayKilled() : error;
    }
  }
}

/** Waits for all of them, then returns what they resolve with, or throws what the first of them rejects with. */
export async function whenAllEnd<T>(running: readonly Promise<T>[]): Promise<readonly T[]> {
  await Promise.allSettled(running);
  return Promise.all(running);
}

/** What a refusal says to machines. */
interface RefusalData {
  readonly action_id: string;
  readonly decision: Decision;
  readonly executed: boolean;
  readonly approval?: { readonly id: string; readonly state: string } | null;
}

function remember(errand: Errand, answer: Answer): CallEnd {
  const { status, result, error } = answer;
  if (result !== undefined && result.isError !== true) {
    errand.served++;
    return { kind: "served" };
  }
  const meta = (result as { readonly _meta?: unknown } | undefined)?._meta ?? error?.data;
  const refusal = (meta as Readonly<Record<string, RefusalData>> | undefined)?.[refusalMetaKey];
  if (refusal?.executed === false) {
    errand.refused.set(refusal.action_id, refusal.decision);
    return { kind: "refused", approval: refusal.approval ?? null };
  }
  if (error?.data?.code === "SESSION_KILLED") return { kind: "cancelled" };
  throw new Error(`expected an answer or a refusal, got ${status} ${JSON.stringify(result ?? error)}`);
}
