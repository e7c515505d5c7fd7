import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { AuthorizationAnswer, Context, EntityJson, PolicySet } from "@cedar-policy/cedar-wasm/nodejs";
import { contentDigest } from "../../core/action/canonical-json.ts";
import type { JsonObject } from "../../core/action/json.ts";
import { openCedar } from "../../core/engine/cedar/library.ts";

/** The members that the engines post, to either kind of server. */
export interface SentBody {
  readonly input?: JsonObject;
  readonly principal?: string;
  readonly action?: string;
  readonly resource?: string;
  readonly context?: Context;
  readonly additional_entities?: EntityJson[];
}

/** A request as it reached a stand-in. */
export interface BookedRequest {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly body: SentBody;
}

/** What a stand-in does about a request: answers, never answers, or hangs up. */
export type StandInAnswer =
  | { readonly status?: number; readonly body: string | Buffer; readonly headers?: Readonly<Record<string, string>> }
  | "silence"
  | "hang up";

/** A server that decides, on a port of its own. */
export class StandIn {
  readonly #answer: (request: BookedRequest) => StandInAnswer;
  readonly requests: BookedRequest[] = [];
  /** The digests of the bodies that it sent, in order. */
  readonly digests: string[] = [];
  /** Requests that it left without an answer, and whose sender has hung up. */
  abandoned = 0;
  #waiting: (() => void)[] = [];
  #server: Server | undefined;
  #port = 0;

  constructor(answer: (request: BookedRequest) => StandInAnswer) {
    this.#answer = answer;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Listens, on the port that it had before. */
  async start(): Promise<this> {
    const server = createServer((request, response) => void this.#serve(request, response));
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.#port, "127.0.0.1", resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
    return this;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  }

  /** Resolves once `isSo`, which is asked whenever something happens to a request. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { url = "", method, headers } = request;
    const isJson = method === "POST" && headers["content-type"] === "application/json";
    const body: SentBody = isJson ? JSON.parse(Buffer.concat(chunks).toString()) : {};
    const booked = { path: url, authorization: headers.authorization, body };
    this.requests.push(booked);
    const answer = isJson ? this.#answer(booked) : { status: 400, body: "{}" };
    if (answer === "hang up") response.destroy();
    else if (answer === "silence") {
      response.once("close", () => {
        this.abandoned++;
        this.#tell();
      });
    } else {
      const { status = 200, body: text, headers: more = {} } = answer;
      this.digests.push(contentDigest(text));
      response.writeHead(status, { "content-type": "application/json", ...more }).end(text);
    }
    this.#tell();
  }

  #tell(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const each of waiting) each();
  }
}

const blocked = {
  decision: "block",
  reasons: [{ id: "no-secret", message: "secrets stay here", severity: "critical" }],
};

/** Texts of an action, and the answers of the stand-in for OPA; where none of them is there, it permits. */
const opaAnswers: Readonly<Record<string, StandInAnswer>> = {
  "a secret": { body: JSON.stringify({ decision_id: "d-1", result: blocked }) },
  "a refusal": { body: `{"result":false}` },
  "a question": { body: `{"result":{"decision":"review","reasons":[{"id":"asks","message":"a person decides"}]}}` },
  "a hole": { body: `{"decision_id":"d-2"}` },
  "a number": { body: `{"result":3}` },
  "a list": { body: `[]` },
  "a half": { body: `{"result":` },
  "a pair": { body: `{"result":false,"result":true}` },
  "a flood": { body: `{"result":true,"more":"${"x".repeat(70_000)}"}` },
  "a conflict": { status: 500, body: `{"code":"internal_error","message":"eval_conflict_error"}` },
  "a made thing": { status: 201, body: `{"result":true}` },
  "a redirect": { status: 307, body: "", headers: { location: "/v1/data/elsewhere" } },
  "a zip": { body: `{"result":true}`, headers: { "content-encoding": "gzip" } },
  "an absence": { status: 503, body: "" },
  "a wait": "silence",
  "a cut": "hang up",
};

/** A stand-in that speaks OPA's Data API. It looks for texts in the input. */
export function standInOpa(path = "/v1/data/gateway/decision"): StandIn {
  return new StandIn((request) => {
    // OPA answers a path without a rule as one that is undefined.
    if (request.path !== path) return { body: "{}" };
    const input = JSON.stringify(request.body.input ?? null);
    const found = Object.entries(opaAnswers).find(([text]) => input.includes(`"${text}"`));
    return found?.[1] ?? { body: `{"decision_id":"d-0","result":true}` };
  });
}

/** A stand-in that speaks cedar-agent's REST API, and decides by Cedar itself. */
export async function standInCedarAgent(policies: Readonly<Record<string, string>>): Promise<StandIn> {
  const cedar = await openCedar();
  const policySet = { staticPolicies: { ...policies } } satisfies PolicySet;
  return new StandIn(({ path, body }) => {
    if (path !== "/v1/is_authorized") return { status: 404, body: "{}" };
    const [principal, action, resource] = [body.principal, body.action, body.resource].map(readUid);
    if (principal === undefined || action === undefined || resource === undefined) return { status: 400, body: "{}" };
    const { context = {}, additional_entities: entities = [] } = body;
    const answer = cedar.isAuthorized({ principal, action, resource, context, entities, policies: policySet });
    return agentAnswer(answer);
  });
}

function agentAnswer(answer: AuthorizationAnswer): StandInAnswer {
  if (answer.type === "failure") return { status: 400, body: JSON.stringify({ reason: answer.errors[0]?.message }) };
  const { decision, diagnostics } = answer.response;
  const errors = diagnostics.errors.map(({ policyId, error }) => `${policyId}: ${error.message}`);
  const told = {
    decision: decision === "allow" ? "Allow" : "Deny",
    diagnostics: { reason: diagnostics.reason, errors },
  };
  return { body: JSON.stringify(told) };
}

/** Reads `Tool::"notes/write_note"`. */
function readUid(text = ""): { readonly type: string; readonly id: string } | undefined {
  const [, type, quoted] = /^(\w+)::"((?:[^"\\]|\\.)*)"$/.exec(text) ?? [];
  if (type === undefined || quoted === undefined) return undefined;
  const id = quoted.replace(/\\(?:u\{([0-9a-f]+)\}|(.))/g, (_, code?: string, sign?: string) => {
    return code === undefined ? String(sign) : String.fromCodePoint(Number.parseInt(code, 16));
  });
  return { type, id };
}

/** A folder that says how to ask OPA, some of it otherwise. */
export function opaServerFiles(changed: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  return {
    "engine.yaml": `apiVersion: gateway/v1
kind: PolicyEngine
engine: opa-server
metadata: { name: notes, version: 1.0.0, title: Notes on an OPA server }
`,
    ...changed,
  };
}

/** The policies of the stand-in for cedar-agent: permits, a held one, a `forbid`, and one that fails on a count. */
export const agentPolicies: Readonly<Record<string, string>> = {
  write: `permit(principal in Role::"operator", action == Action::"write", resource in Target::"local");`,
  "delete-asks": `permit(principal, action == Action::"delete", resource);`,
  "no-secret": `forbid(principal, action, resource) when { context.arguments has text && context.arguments.text like "*secret*" };`,
  counts: `forbid(principal, action, resource) when { context.arguments has count && context.arguments.count * 4611686018427387904 == 0 && context.arguments.count != 0 };`,
};

/** A folder that says how to ask cedar-agent, some of it otherwise. */
export function cedarAgentFiles(changed: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  return {
    "engine.yaml": `apiVersion: gateway/v1
kind: PolicyEngine
engine: cedar-agent
metadata: { name: agents, version: 1.0.0, title: Notes on a cedar-agent }
policies:
  - { id: no-secret, message: secrets stay here, severity: critical }
  - { id: delete-asks, decision: review, message: deleting needs a person, approvals: 2 }
`,
    "schema.cedarschema": `
entity Role, Tenant, Target;
entity Agent in [Role, Tenant] = { role: String };
entity Tool in [Target] = { name: String };
type Arguments = { title?: String, text?: String, count?: Long };
action "write", "delete" appliesTo { principal: Agent, resource: Tool, context: { arguments: Arguments } };
`,
    ...changed,
  };
}
