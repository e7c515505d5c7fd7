import type { IncomingMessage } from "node:http";
import type { ClientIdentity } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { Principal } from "../action/principal.ts";
import { anonymousPrincipal, type KeyRing, presentedKey } from "../identity/key-ring.ts";
import type { Access } from "../operation/operation.ts";

/** Identifies callers by their key. */
export class AccessRule {
  readonly #keys: KeyRing;
  readonly #anonymous: Principal | null;

  /** `anonymousTenant`: the tenant of callers without a key; null: they are refused. */
  constructor(keys: KeyRing, anonymousTenant: string | null) {
    this.#keys = keys;
    this.#anonymous = anonymousTenant === null ? null : anonymousPrincipal(anonymousTenant);
  }

  /**
   * Returns the caller of a route that is not public. A presented key must be valid even where none is required. Throws
   * KEY_MISSING or KEY_UNKNOWN. Permission is checked by `checkAccess`.
   */
  identify(access: Access, rawHeaders: readonly string[]): Principal {
    const key = presentedKey(rawHeaders);
    if (key !== null) return this.#keys.authenticate(key);
    if (access === "caller" && this.#anonymous !== null) return this.#anonymous;
    throw new GatewayError("KEY_MISSING", "send `X-API-Key: <key>` or `Authorization: Bearer <key>`");
  }

  /** Returns the holder of the presented key; null where there is none. Throws KEY_UNKNOWN. */
  identifyIfPresented(rawHeaders: readonly string[]): Principal | null {
    const key = presentedKey(rawHeaders);
    return key === null ? null : this.#keys.authenticate(key);
  }
}

const maxClientText = 128;

/**
 * The name and version that a client claims, cut to 128 characters each: labels, never credentials. A surrogate pair
 * split by the cut is replaced, because evidence accepts well-formed text only.
 */
export function clientIdentity(info: JsonObject, address: string): ClientIdentity {
  return { name: clientText(info.name), version: clientText(info.version), address };
}

/** The client named by the first product of `user-agent`, for requests that carry no other identity. */
export function agentIdentity(request: IncomingMessage): ClientIdentity {
  const [name = "", version = ""] =
    /^(\S+?)(?:\/(\d\S*))?(?:\s|$)/.exec(request.headers["user-agent"] ?? "")?.slice(1) ?? [];
  return clientIdentity({ name: name || null, version: version || null }, addressOf(request));
}

/** The peer address of the connection. No header is trusted. */
export function addressOf({ socket }: IncomingMessage): string {
  return socket.remoteAddress ?? "unknown";
}

function clientText(value: unknown): string {
  return typeof value === "string" ? value.slice(0, maxClientText).toWellFormed() : "unknown";
}
