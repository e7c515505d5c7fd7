import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import type { Decision } from "../action/decision.ts";
import { GatewayError } from "../action/error.ts";
import { compileGlob } from "../action/glob.ts";
import { asciiJson, isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { quoteWord, visibleText } from "../action/visible-text.ts";
import { plainUrl, requireKey } from "./gateway-port.ts";
import { print, say } from "./print.ts";

interface TailOptions {
  readonly url: string;
  readonly decision?: Decision;
  /** A name, in which `*` stands for any characters. */
  readonly tool?: string;
  readonly label?: string;
  /** Ends after so many lines. */
  readonly limit?: number;
  readonly json?: true;
}

const retryMs = 2_000;
/** The gateway pings more often than this; a connection that is silent for longer is gone. */
const silentMs = 90_000;
const maxMessageBytes = 1_048_576;
/** The close code of a key that is missing, unknown or revoked. */
const unauthenticated = 4401;

/**
 * `gateway tail`: prints decisions and approvals as they are made, until SIGINT or SIGTERM. Fails where the gateway does not
 * answer at first, or refuses the key; connects again to one that goes away later. What is decided meanwhile is not printed.
 */
export async function tail(options: TailOptions): Promise<void> {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(0));
  process.stdout.once("error", () => process.exit(0));
  const url = `${plainUrl(options.url).replace(/^http/, "ws")}/v1/ws`;
  const key = requireKey();
  const printer = new EventPrinter(options);
  let wasOpen = false;
  let isAway = false;
  for (;;) {
    const end = await follow(url, key, printer, () => {
      say(isAway ? "the gateway answers again" : `following ${url}`);
      wasOpen = true;
      isAway = false;
    });
    if (end === "full") return;
    if (end instanceof GatewayError && (!wasOpen || end.code !== "GATEWAY_UNREACHABLE")) throw end;
    if (!isAway) say("no answer; waiting for the gateway");
    isAway = true;
    await sleep(retryMs);
  }
}

/** Prints the events of one connection. Resolves with `full` once enough are printed, or with why it ended. */
function follow(
  url: string,
  key: string,
  printer: EventPrinter,
  onFollowing: () => void,
): Promise<"full" | GatewayError> {
  return new Promise((resolve) => {
    const options = { headers: { "x-api-key": key }, followRedirects: false, maxPayload: maxMessageBytes };
    const socket = new WebSocket(url, options);
    let silence = setTimeout(() => socket.terminate(), silentMs);
    const end = (why: "full" | GatewayError): void => {
      clearTimeout(silence);
      socket
        .removeAllListeners()
        .on("error", () => undefined)
        .terminate();
      resolve(why);
    };
    const unreachable = (): GatewayError =>
      new GatewayError("GATEWAY_UNREACHABLE", `no answer from \`${url}\`; start the gateway, or check \`--url\``);
    const hear = (): void => {
      clearTimeout(silence);
      silence = setTimeout(() => socket.terminate(), silentMs);
    };
    socket.on("ping", hear);
    socket.on("error", () => end(unreachable()));
    socket.on("close", (code, reason) => {
      end(code === unauthenticated ? new GatewayError("KEY_UNKNOWN", visibleText(String(reason))) : unreachable());
    });
    socket.on("unexpected-response", (_, { statusCode }) => end(refusalOf(statusCode, url)));
    socket.on("message", (data) => {
      hear();
      const message = parseMessage(String(data));
      if (message.type === "auth_ok") socket.send(subscription);
      else if (message.type === "subscribed") onFollowing();
      else if (message.type === "error") end(errorOf(message));
      else if (printer.take(message) === "full") end("full");
    });
  });
}

const subscription = JSON.stringify({ type: "subscribe", payload: { channels: ["decisions", "approvals"] } });

interface Message {
  readonly type: string;
  readonly payload: JsonObject;
}

function parseMessage(text: string): Message {
  try {
    const message = JSON.parse(text) as Json;
    if (isJsonObject(message) && typeof message.type === "string" && isJsonObject(message.payload))
      return { type: message.type, payload: message.payload };
  } catch {
    // Another program than a gateway, as below.
  }
  return { type: "error", payload: { message: "expected messages of a gateway; check `--url`" } };
}

function refusalOf(status: number | undefined, url: string): GatewayError {
  if (status === 401) return new GatewayError("KEY_UNKNOWN", undefined, { data: { status } });
  if (status === undefined || status === 429 || status >= 500)
    return new GatewayError("GATEWAY_UNREACHABLE", `\`${url}\` answered ${status}`);
  return new GatewayError("INVALID_REQUEST", `\`${url}\` answered ${status}; check \`--url\``, { data: { status } });
}

function errorOf({ payload: { code, message } }: Message): GatewayError {
  const text = visibleText(String(message ?? ""));
  return code === "ROLE_FORBIDDEN"
    ? new GatewayError("ROLE_FORBIDDEN", text.replace(/^.*?: /, ""))
    : new GatewayError("UPSTREAM_INVALID", text);
}

/** Prints the events that fit the options. */
class EventPrinter {
  readonly #options: TailOptions;
  readonly #fitsTool: (tool: string) => boolean;
  #left: number;

  constructor(options: TailOptions) {
    this.#options = options;
    this.#left = options.limit ?? Number.POSITIVE_INFINITY;
    this.#fitsTool = compileGlob(options.tool ?? "*").test;
  }

  /** Returns `full` once `limit` events were printed. */
  take({ type, payload }: Message): "full" | undefined {
    if (type === "missed") say(`${payload.count} events were missed: they came faster than they could be sent`);
    if (type !== "event" || !isJsonObject(payload.data) || !this.#fits(payload.channel, payload.data)) return undefined;
    print(this.#options.json ? asciiJson(payload) : eventLine(payload, payload.data));
    this.#left--;
    return this.#left > 0 ? undefined : "full";
  }

  /** An approval has no label and no decision of its own: options that name one leave approvals out. */
  #fits(channel: Json | undefined, data: JsonObject): boolean {
    const { decision, label } = this.#options;
    if (!this.#fitsTool(String(data.tool))) return false;
    if (channel !== "decisions") return decision === undefined && label === undefined;
    return (decision ?? data.decision) === data.decision && (label ?? data.label) === data.label;
  }
}

/** `2026-…Z  block  delete delete_note on demo  agent  label nightly  baseline.delete  019b…`, or the same of an approval. */
function eventLine({ channel, time }: JsonObject, data: JsonObject): string {
  const action = `${text(data.capability)} ${word(data.tool)} on ${word(data.target)}`;
  const rules = Array.isArray(data.rules) ? data.rules.map(text).join(", ") : "";
  const words =
    channel === "decisions"
      ? [text(data.decision), action, text(data.principal), labelText(data.label), rules, text(data.id)]
      : [`approval ${text(data.state)}`, action, rules, text(data.id)];
  return [text(time), ...words].filter((each) => each !== "").join("  ");
}

function labelText(label: Json | undefined): string {
  return typeof label === "string" ? `label ${word(label)}` : "";
}

function text(value: Json | undefined): string {
  return value === undefined || value === null ? "" : visibleText(String(value));
}

function word(value: Json | undefined): string {
  return quoteWord(String(value));
}
