import type { IncomingMessage } from "node:http";
import type { ClientIdentity } from "../kernel/envelope.ts";
import type { JsonObject } from "../kernel/json.ts";

const longestClientText = 128;

/**
 * What a client calls itself, cut to 128 characters a field: it is a label, never a credential. Half of a character that
 * the cut goes through is replaced, because evidence takes well-formed text only.
 */
export function clientIdentity(info: JsonObject, address: string): ClientIdentity {
  return { name: text(info.name), version: text(info.version), address };
}

/** A client by the first product of its `user-agent`, for requests that say no more of it. */
export function agentIdentity(request: IncomingMessage): ClientIdentity {
  const [name = "", version = ""] =
    /^(\S+?)(?:\/(\d\S*))?(?:\s|$)/.exec(request.headers["user-agent"] ?? "")?.slice(1) ?? [];
  return clientIdentity({ name: name || null, version: version || null }, addressOf(request));
}

/** Where a request came from, as its connection says: no header is believed. */
export function addressOf({ socket }: IncomingMessage): string {
  return socket.remoteAddress ?? "unknown";
}

function text(value: unknown): string {
  return typeof value === "string" ? value.slice(0, longestClientText).toWellFormed() : "unknown";
}
