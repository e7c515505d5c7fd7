import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { Ajv } from "ajv";
import type { WebSocket } from "ws";
import type { ActionEnvelope, ClientIdentity } from "../../action/envelope.ts";
import { GatewayError } from "../../action/error.ts";
import type { Evaluation } from "../../action/evaluation.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { Principal } from "../../action/principal.ts";
import { can, type Permission } from "../../action/role.ts";
import { type JsonBounds, parseStrictJson } from "../../action/strict-json.ts";
import type { FairShare } from "../../http/fair-share.ts";
import type { FailureRate } from "../../http/rate.ts";
import { retryAfter } from "../../http/refusal.ts";
import { largeBody, refusalDelayMs } from "../../http/request.ts";
import { type LiveChannel, type LiveRound, liveChannels } from "../../observe/live-audience.ts";
import type { LiveFeed } from "../../observe/live-feed.ts";
import { invalidParams } from "../../operation/fault.ts";
import { checkOutput, type DescribedAction, describedAction } from "../../road/described-action.ts";
import { encodeMessage, renderRound } from "./frame.ts";
import type { LivePlaces } from "./place.ts";

/** Dependencies of a connection. */
export interface LiveParts {
  readonly feed: LiveFeed;
  /** Bounds of a message. */
  readonly bounds: JsonBounds;
  /** Each message of a known caller counts as a call. */
  readonly fairShare: FairShare;
  /** Counts what fails before a caller is known. */
  readonly failures: FailureRate;
  /** Throws KEY_UNKNOWN. */
  readonly authenticate: (key: string) => Principal;
  /** Returns the action as if `caller` attempted it. */
  readonly describe: (action: DescribedAction, caller: Principal, client: ClientIdentity) => ActionEnvelope;
  readonly evaluate: (action: ActionEnvelope) => Promise<Evaluation>;
  readonly places: LivePlaces<LiveConnection>;
}

/** The permission that each channel requires. */
const channelPermission: Readonly<Record<LiveChannel, Permission>> = {
  decisions: "evidence.read",
  approvals: "approval.read",
  risk: "evidence.read",
  metrics: "metrics.read",
};

/** Limit of bytes waiting for a reader. A slower reader is disconnected. */
const maxWaiting = 1_048_576;
/** Limit of bytes waiting for a reader that still gets events. A slower reader misses some. */
const maxBehind = 262_144;
/** Evaluations of one connection at once. */
const maxEvaluations = 8;
const authMs = 10_000;
/** Time for a client to take the reason for which it is disconnected. */
const closingMs = 1_000;
/** Messages of a connection that has not authenticated, and the bytes of each: more than `auth` with any key has. */
const maxEarlyMessages = 16;
const maxEarlyBytes = 4_096;

/** WebSocket close codes and reasons. */
const closing = {
  unauthenticated: [4401, "send `auth` with a key within 10 s"],
  limited: [1013, "too many attempts of this address without a valid key"],
  revoked: [4401, "the key was removed"],
  signed_out: [4401, "the console session ended"],
  slow: [1013, "you read too slowly"],
  binary: [1003, "expected text"],
  stopping: [1001, "the gateway is stopping"],
  displaced: [1013, "an operator needs the place"],
  replaced: [1013, "too many connections of this address have sent no key"],
} as const;

/** One client of `/v1/ws`: its principal, its subscriptions and its evaluations. */
export class LiveConnection {
  readonly #socket: WebSocket;
  /** The stream below `#socket`, for frames that are encoded once for many connections. */
  readonly #stream: Duplex;
  readonly #parts: LiveParts;
  readonly #client: ClientIdentity;
  readonly #deadline: NodeJS.Timeout;
  readonly #channels = new Set<LiveChannel>();
  #principal: Principal | null;
  #unsubscribe: () => void = () => undefined;
  #evaluations = 0;
  /** Messages that wait for a turn. */
  #paused = 0;
  #earlyMessages = 0;
  #missed = 0;
  #answered = true;

  /** `principal`: the holder of the upgrade request's key, for whom there is room; null until `auth`. */
  constructor(
    socket: WebSocket,
    stream: Duplex,
    parts: LiveParts,
    client: ClientIdentity,
    principal: Principal | null,
  ) {
    this.#socket = socket;
    this.#stream = stream;
    this.#parts = parts;
    this.#client = client;
    this.#principal = principal;
    this.#deadline = setTimeout(() => this.close("unauthenticated"), authMs).unref();
    socket.on("message", (data, isBinary) => this.#receive(data as Buffer, isBinary));
    socket.on("pong", () => {
      this.#answered = true;
    });
    // The library tells the client why; one that does not take it is not waited for.
    socket.on("error", () => this.#terminateIn(closingMs));
    socket.once("close", () => this.#end());
    if (principal === null) parts.places.admitUnauthenticated(this, client.address);
    else this.#accept(null, principal);
  }

  get principal(): Principal | null {
    return this.#principal;
  }

  close(why: keyof typeof closing): void {
    this.#end();
    const [code, reason] = closing[why];
    this.#socket.close(code, reason);
    // A flood of connections without a key must not leave a trail of closing ones.
    this.#terminateIn(why === "replaced" ? 0 : closingMs);
  }

  #terminateIn(delayMs: number): void {
    setTimeout(() => this.#socket.terminate(), delayMs).unref();
  }

  /** Sends a ping, and the number of missed events; disconnects a client that did not answer the last ping. */
  probe(): void {
    if (this.#socket.bufferedAmount === 0) this.#reportMissed();
    if (this.#answered) this.#socket.ping();
    else this.#socket.terminate();
    this.#answered = false;
  }

  #end(): void {
    clearTimeout(this.#deadline);
    this.#unsubscribe();
    this.#parts.places.leave(this);
  }

  #receive(data: Buffer, isBinary: boolean): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    if (isBinary) this.close("binary");
    else if (this.#principal === null) this.#readEarly(data);
    else void this.#read(data, this.#principal);
  }

  /**
   * Reads a message of a client that has yet to authenticate. A valid key counts whatever failed before; everything else is a
   * failed attempt, of which an address has so many a minute over all its connections.
   */
  #readEarly(data: Buffer): void {
    if (++this.#earlyMessages > maxEarlyMessages || data.length > maxEarlyBytes) {
      this.close("unauthenticated");
      return;
    }
    let id: string | null = null;
    let principal: Principal;
    try {
      const message = parseClientMessage(data, this.#parts.bounds);
      id = message.id;
      if (message.type !== "auth") throw new GatewayError("KEY_MISSING", "send `auth` first");
      principal = this.#parts.authenticate(message.key);
    } catch (cause) {
      const error = this.#parts.failures.refuse(this.#client.address, GatewayError.from(cause));
      this.#refuse(id, error);
      if (error.code === "RATE_LIMITED") this.close("limited");
      else if (error.code === "KEY_UNKNOWN") this.close("unauthenticated");
      return;
    }
    try {
      this.#parts.places.makeRoom(principal);
      this.#accept(id, principal);
    } catch (cause) {
      this.#refuse(id, cause);
    }
  }

  async #read(data: Buffer, caller: Principal): Promise<void> {
    let id: string | null = null;
    const { fairShare } = this.#parts;
    const isLarge = data.length >= largeBody;
    try {
      if (isLarge) {
        fairShare.admit(caller, "call");
        await this.#readNothing(() => fairShare.admitLarge(caller, data.length));
      } else fairShare.admitSmall(caller, "call");
      const message = parseClientMessage(data, this.#parts.bounds);
      id = message.id;
      if (isLarge) await this.#readNothing(() => fairShare.pause(caller));
      if (this.#socket.readyState !== this.#socket.OPEN) return;
      await this.#answer(message, caller);
    } catch (cause) {
      const error = GatewayError.from(cause);
      if (error.code === "RATE_LIMITED") await this.#readNothing(() => sleep(refusalDelayMs(data.length)));
      this.#refuse(id, error);
    }
  }

  /** Waits, as for the turn of a large message, and reads no other meanwhile: else what waits would have no bound. */
  async #readNothing(wait: () => Promise<void>): Promise<void> {
    this.#paused++;
    this.#socket.pause();
    try {
      await wait();
    } finally {
      if (--this.#paused === 0) this.#socket.resume();
    }
  }

  async #answer(message: ClientMessage, caller: Principal): Promise<void> {
    if (message.type === "ping") return this.#send("pong", message.id, {});
    if (message.type === "auth") throw new GatewayError("INVALID_REQUEST", "`auth` was sent before");
    if (message.type === "evaluate") return this.#evaluate(message.id, message.action, caller);
    for (const channel of message.channels) this.#change(message.type, channel, caller);
    this.#resubscribe(caller);
    this.#send("subscribed", message.id, { channels: [...this.#channels] });
  }

  #accept(id: string | null, principal: Principal): void {
    clearTimeout(this.#deadline);
    this.#principal = principal;
    this.#parts.places.take(this, principal);
    const { tenant, role } = principal;
    this.#send("auth_ok", id, { tenant, role, principal: principal.id });
  }

  #change(type: "subscribe" | "unsubscribe", channel: LiveChannel, { role }: Principal): void {
    if (type === "unsubscribe") this.#channels.delete(channel);
    else if (can(role, channelPermission[channel])) this.#channels.add(channel);
    else throw new GatewayError("ROLE_FORBIDDEN", `\`${role}\` lacks \`${channelPermission[channel]}\``);
  }

  #resubscribe({ tenant }: Principal): void {
    this.#unsubscribe();
    const channels = liveChannels.filter((channel) => this.#channels.has(channel));
    this.#unsubscribe = this.#parts.feed.subscribe(tenant, new Set(channels), (round) =>
      this.#publish(round, channels),
    );
  }

  /** Sends the events of a round. A reader that is too far behind misses them, and is told how many once it caught up. */
  #publish(round: LiveRound, channels: readonly LiveChannel[]): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    const { frames, eventCount, droppedCount } = renderRound(round, channels);
    this.#missed += droppedCount;
    if (this.#socket.bufferedAmount > maxBehind) {
      this.#missed += eventCount;
      return;
    }
    this.#reportMissed();
    if (eventCount > 0) this.#stream.write(frames);
  }

  #reportMissed(): void {
    if (this.#missed === 0) return;
    this.#send("missed", null, { count: this.#missed });
    this.#missed = 0;
  }

  async #evaluate(id: string | null, action: Json, caller: Principal): Promise<void> {
    if (this.#evaluations >= maxEvaluations)
      throw new GatewayError("CONNECTION_BUSY", `expected at most ${maxEvaluations} evaluations at once`);
    this.#evaluations++;
    try {
      const evaluation = await this.#parts.evaluate(
        this.#parts.describe(readDescribedAction(action), caller, this.#client),
      );
      this.#send("evaluation", id, viewOf(evaluation));
    } finally {
      this.#evaluations--;
    }
  }

  #refuse(id: string | null, cause: unknown): void {
    const error = GatewayError.from(cause);
    this.#send("error", id, { code: error.code, message: error.publicMessage, ...retryAfter(error) });
  }

  #send(type: string, id: string | null, payload: JsonObject): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    if (this.#socket.bufferedAmount > maxWaiting) this.close("slow");
    else this.#socket.send(encodeMessage(type, id, payload));
  }
}

function viewOf({ id, phase, decision, risk, determining, byDefault }: Evaluation): JsonObject {
  const rules = determining.map(({ rule, message, severity }) => ({ rule, message, severity }));
  return { id, phase, decision, risk, by_default: byDefault, rules };
}

/** A message of a client. Its `id` is returned with the response. */
type ClientMessage = { readonly id: string | null } & (
  | { readonly type: "auth"; readonly key: string }
  | { readonly type: "subscribe" | "unsubscribe"; readonly channels: readonly LiveChannel[] }
  | { readonly type: "evaluate"; readonly action: Json }
  | { readonly type: "ping" }
);

const types = ["auth", "subscribe", "unsubscribe", "evaluate", "ping"] as const;
const maxId = 128;

/** The largest message, in bytes. */
export const maxMessageBytes = 262_144;

/** Throws MALFORMED_JSON, JSON_BOUND or INVALID_REQUEST. */
function parseClientMessage(bytes: Uint8Array, bounds: JsonBounds): ClientMessage {
  const message = parseStrictJson(bytes, bounds);
  if (!isJsonObject(message)) throw invalid("expected an object with `type`");
  const unknown = Object.keys(message).find((name) => !["type", "id", "payload"].includes(name));
  if (unknown !== undefined) throw invalid(`expected \`type\`, \`id\`, \`payload\`, got \`${unknown.slice(0, 64)}\``);
  const { type, id = null, payload = {} } = message;
  if (id !== null && (typeof id !== "string" || id.length > maxId))
    throw invalid(`expected \`id\` to be a text of at most ${maxId} characters`);
  if (!isJsonObject(payload)) throw invalid("expected `payload` to be an object");
  const known = types.find((each) => each === type);
  if (known === undefined) throw invalid(`expected \`type\` to be one of ${types.join(", ")}`);
  if (known === "auth") return { type: known, id, key: readText(payload.key, "key") };
  if (known === "evaluate") return { type: known, id, action: payload.action ?? null };
  if (known === "ping") return { type: known, id };
  return { type: known, id, channels: readChannels(payload.channels) };
}

const isDescribed = new Ajv({
  strict: true,
  verbose: true,
  logger: false,
  validateSchema: false,
}).compile<DescribedAction>(describedAction);

/** Throws INVALID_PARAMS that names the place and what was expected there. */
function readDescribedAction(value: Json): DescribedAction {
  if (!isDescribed(value)) throw invalidParams("action", isDescribed.errors?.[0]);
  checkOutput(value, "action");
  return value;
}

function readText(value: Json | undefined, name: string): string {
  if (typeof value === "string") return value;
  throw invalid(`expected \`payload.${name}\` to be a text`);
}

function readChannels(value: Json | undefined): readonly LiveChannel[] {
  const names: readonly Json[] = Array.isArray(value) ? value : [];
  const channels = liveChannels.filter((channel) => names.includes(channel));
  if (channels.length > 0 && channels.length === names.length) return channels;
  throw invalid(`expected \`payload.channels\` to be a list of ${liveChannels.join(", ")}, each once`);
}

function invalid(detail: string): GatewayError {
  return new GatewayError("INVALID_REQUEST", detail);
}
