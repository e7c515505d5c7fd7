import type { IncomingMessage } from "node:http";
import type { ClientIdentity } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { Principal } from "../action/principal.ts";
import { anonymousPrincipal, type KeyRing, presentedKey, presentsBearer } from "../identity/key-ring.ts";
import type { Access } from "../operation/operation.ts";

/** Identifies the callers of a port. A promise where that takes more than a look-up. */
export interface CallerRule {
  identify(access: Access, rawHeaders: readonly string[]): Principal | Promise<Principal>;
}

/** Identifies callers by their key. */
export class AccessRule implements CallerRule {
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
    return this.identifyWithoutKey(access);
  }

  /** Returns the caller of a request that presents no key. Throws KEY_MISSING where it needs one. */
  identifyWithoutKey(access: Access): Principal {
    if (access === "caller" && this.#anonymous !== null) return this.#anonymous;
    throw new GatewayError("KEY_MISSING", "send `X-API-Key: <key>` or `Authorization: Bearer <key>`");
  }

  /** Returns the holder of the presented key; null where there is none. Throws KEY_UNKNOWN. */
  identifyIfPresented(rawHeaders: readonly string[]): Principal | null {
    const key = presentedKey(rawHeaders);
    return key === null ? null : this.#keys.authenticate(key);
  }
}

/** Identifies callers by their key, and those with no known key by their access token. */
export class TokenRule implements CallerRule {
  readonly #keys: KeyRing;
  readonly #keyRule: AccessRule;
  readonly #authenticate: (token: string) => Promise<Principal>;

  /** `authenticate` rejects with TOKEN_INVALID or KEY_UNKNOWN, which contain nothing of the token. */
  constructor(keys: KeyRing, keyRule: AccessRule, authenticate: (token: string) => Promise<Principal>) {
    this.#keys = keys;
    this.#keyRule = keyRule;
    this.#authenticate = authenticate;
  }

  /** Returns the caller as `AccessRule` does; that of an access token as a promise, which rejects as `authenticate` does. */
  identify(access: Access, rawHeaders: readonly string[]): Principal | Promise<Principal> {
    // An access token may be longer than a key: `authenticate` bounds it.
    const presented = presentedKey(rawHeaders, Number.POSITIVE_INFINITY);
    if (presented === null) return this.#keyRule.identifyWithoutKey(access);
    return this.#keys.find(presented) ?? this.#identifyByToken(presented, rawHeaders);
  }

  #identifyByToken(presented: string, rawHeaders: readonly string[]): Promise<Principal> {
    if (!presentsBearer(rawHeaders)) throw new GatewayError("KEY_UNKNOWN");
    return this.#authenticate(presented);
  }
}

/** The `WWW-Authenticate` header of a response with status 401. */
export type Challenge = (error: GatewayError) => string;

/** The challenge of a port that takes keys only. */
export const keyChallenge: Challenge = () => "Bearer";

const maxClientText = 128;

/** The name and version of a client that claims none. */
export const unnamedClient: Pick<ClientIdentity, "name" | "version"> = { name: "unknown", version: "unknown" };

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
