import type { JsonObject } from "../../../core/action/json.ts";
import { Reviewer } from "../client/reviewer.ts";
import { openWorld, type World } from "../client/world.ts";

/** What the gateway said to an agent that asked. */
export interface Asked {
  readonly status: number;
  readonly type: string;
  readonly decision: string | null;
  readonly body: JsonObject;
}

interface AskedOptions {
  readonly key?: string;
  /** Of the session. */
  readonly label?: string;
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A gateway that allows `read`, holds `execute`, and blocks what deletes; and somebody who reviews. */
export interface AskingWorld extends World {
  readonly reviewer: Reviewer;
  /** Posts to a path of the gateway port; a text is sent as it is. */
  ask(path: string, body: object | string, options?: AskedOptions): Promise<Asked>;
}

const rules = `rules:
  - { id: test.seen, title: Answers may be seen, decision: allow, match: { phase: [list, output] } }
  - { id: test.read, title: Reading is allowed, decision: allow, match: { phase: input, capability: [read, network] }, message: it only reads }
  - { id: test.hold, title: The rest is held, decision: review, match: { phase: input, capability: [write, execute] }, message: it may do anything }
  - { id: test.stop, title: Deleting is blocked, decision: block, match: { phase: input, capability: delete }, message: it destroys data }
`;

/** `more`: further top-level keys of `gateway.yaml`. */
export async function openAskingWorld(more = ""): Promise<AskingWorld> {
  const world = await openWorld({ rules, more: `sessions: { review_flood: { reviews: 0 } }\n${more}` });
  const ask: AskingWorld["ask"] = async (path, body, { key = world.key, label, signal, headers = {} } = {}) => {
    const response = await fetch(world.gateway.url + path, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-api-key": key,
        ...(label === undefined ? {} : { "x-gateway-session-id": label }),
        ...headers,
      },
      body: typeof body === "string" ? body : JSON.stringify(body),
      ...(signal === undefined ? {} : { signal }),
    });
    return {
      status: response.status,
      type: response.headers.get("content-type") ?? "",
      decision: response.headers.get("x-gateway-decision"),
      body: (await response.json()) as JsonObject,
    };
  };
  return { ...world, reviewer: new Reviewer(world), ask };
}
