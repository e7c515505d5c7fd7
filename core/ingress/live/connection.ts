import type { WebSocket } from "ws";
import { asciiJson } from "../../kernel/ascii-json.ts";
import type { ActionEnvelope, ClientIdentity } from "../../kernel/envelope.ts";
import { GatewayError } from "../../kernel/error.ts";
import type { Evaluation } from "../../kernel/evaluation.ts";
import type { Json, JsonObject } from "../../kernel/json.ts";
import type { LiveChannel, LiveEvent } from "../../kernel/live-event.ts";
import type { Principal } from "../../kernel/principal.ts";
import { can, type Permission } from "../../kernel/role.ts";
import type { LiveFeed } from "../../observe/live-feed.ts";
import { type ClientMessage, parseClientMessage } from "./message.ts";

/** What a connection needs of the rest of the gateway. */
export interface LiveParts {
  readonly feed: LiveFeed;
  /** Throws KEY_UNKNOWN. */
  readonly authenticate: (key: string) => Principal;
  /** The action as described, attempted by `caller`. Throws INVALID_PARAMS. */
  readonly describe: (said: Json, caller: Principal, client: ClientIdentity) => ActionEnvelope;
  readonly evaluate: (action: ActionEnvelope) => Promise<Evaluation>;
}

/** Who may watch what. */
const needed: Readonly<Record<LiveChannel, Permission>> = {
  decisions: "evidence.read",
  approvals: "approval.read",
  risk: "evidence.read",
  metrics: "metrics.read",
};

/** Bytes that may wait for a reader. Beyond it the reader is too slow, and is let go. */
const mostWaiting = 1_048_576;
/** Evaluations of one connection at once. */
const mostEvaluations = 8;
const authMs = 10_000;

/** WebSocket close codes, as they are said. */
const closing = {
  unauthenticated: [4401, "send `auth` with a key within 10 s"],
  revoked: [4401, "the key is gone"],
  slow: [1013, "you read too slowly"],
  binary: [1003, "expected text"],
  stopping: [1001, "the gateway is stopping"],
} as const;

/** One client of `/v1/ws`: who it is, what it watches, and what it asks. */
export class LiveConnection {
  readonly #socket: WebSocket;
  readonly #parts: LiveParts;
  readonly #client: ClientIdentity;
  readonly #deadline: NodeJS.Timeout;
  readonly #channels = new Set<LiveChannel>();
  #principal: Principal | null;
  #unsubscribe: () => void = () => undefined;
  #evaluations = 0;
  #answered = true;

  /** `principal`: who the upgrade request's key belongs to; null while nobody has said. */
  constructor(socket: WebSocket, parts: LiveParts, client: ClientIdentity, principal: Principal | null) {
    this.#socket = socket;
    this.#parts = parts;
    this.#client = client;
    this.#principal = principal;
    this.#deadline = setTimeout(() => this.close("unauthenticated"), authMs).unref();
    socket.on("message", (data, isBinary) => this.#hear(data as Buffer, isBinary));
    socket.on("pong", () => {
      this.#answered = true;
    });
    socket.on("error", () => socket.terminate());
    socket.once("close", () => this.#end());
    if (principal !== null) this.#welcome(null, principal);
  }

  get principal(): Principal | null {
    return this.#principal;
  }

  close(why: keyof typeof closing): void {
    this.#end();
    const [code, reason] = closing[why];
    this.#socket.close(code, reason);
    setTimeout(() => this.#socket.terminate(), 1_000).unref();
  }

  /** Looks whether anybody is there: one who did not answer the last time is not. */
  probe(): void {
    if (this.#answered) this.#socket.ping();
    else this.#socket.terminate();
    this.#answered = false;
  }

  #end(): void {
    clearTimeout(this.#deadline);
    this.#unsubscribe();
  }

  #hear(data: Buffer, isBinary: boolean): void {
    if (isBinary) this.close("binary");
    else this.#read(data);
  }

  #read(data: Buffer): void {
    let id: string | null = null;
    try {
      const message = parseClientMessage(data);
      id = message.id;
      this.#answer(message).catch((cause: unknown) => this.#refuse(message.id, cause));
    } catch (cause) {
      this.#refuse(id, cause);
    }
  }

  async #answer(message: ClientMessage): Promise<void> {
    if (message.type === "ping") return this.#say("pong", message.id, {});
    if (message.type === "auth") return this.#authenticate(message.id, message.key);
    const principal = this.#principal;
    if (principal === null) throw new GatewayError("KEY_MISSING", "send `auth` first");
    if (message.type === "evaluate") return this.#evaluate(message.id, message.action, principal);
    for (const channel of message.channels) this.#change(message.type, channel, principal);
    this.#resubscribe(principal);
    this.#say("subscribed", message.id, { channels: [...this.#channels] });
  }

  #authenticate(id: string | null, key: string): void {
    if (this.#principal !== null) throw new GatewayError("INVALID_REQUEST", "`auth` was sent before");
    this.#principal = this.#parts.authenticate(key);
    this.#welcome(id, this.#principal);
  }

  #welcome(id: string | null, { tenant, role, id: principal }: Principal): void {
    clearTimeout(this.#deadline);
    this.#say("auth_ok", id, { tenant, role, principal });
  }

  #change(type: "subscribe" | "unsubscribe", channel: LiveChannel, { role }: Principal): void {
    if (type === "unsubscribe") this.#channels.delete(channel);
    else if (can(role, needed[channel])) this.#channels.add(channel);
    else throw new GatewayError("ROLE_FORBIDDEN", `\`${role}\` lacks \`${needed[channel]}\``);
  }

  #resubscribe({ tenant }: Principal): void {
    this.#unsubscribe();
    this.#unsubscribe = this.#parts.feed.subscribe(tenant, new Set(this.#channels), (event) => this.#tell(event));
  }

  #tell({ channel, time, data }: LiveEvent): void {
    this.#say("event", null, { channel, time, data });
  }

  async #evaluate(id: string | null, said: Json, caller: Principal): Promise<void> {
    if (this.#evaluations >= mostEvaluations)
      throw new GatewayError("CONNECTION_BUSY", `expected at most ${mostEvaluations} evaluations at once`);
    this.#evaluations++;
    try {
      const evaluation = await this.#parts.evaluate(this.#parts.describe(said, caller, this.#client));
      this.#say("evaluation", id, viewOf(evaluation));
    } finally {
      this.#evaluations--;
    }
  }

  #refuse(id: string | null, cause: unknown): void {
    const error = GatewayError.from(cause);
    this.#say("error", id, { code: error.code, message: error.publicMessage });
    if (error.code === "KEY_UNKNOWN") this.close("unauthenticated");
  }

  #say(type: string, id: string | null, payload: JsonObject): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    if (this.#socket.bufferedAmount > mostWaiting) this.close("slow");
    else this.#socket.send(asciiJson({ type, id, payload }));
  }
}

function viewOf({ id, phase, decision, risk, determining, byDefault }: Evaluation): JsonObject {
  const rules = determining.map(({ rule, message, severity }) => ({ rule, message, severity }));
  return { id, phase, decision, risk, by_default: byDefault, rules };
}
