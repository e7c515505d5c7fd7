import type { IncomingMessage } from "node:http";
import type { ClientIdentity } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { Principal } from "../action/principal.ts";
import { can } from "../action/role.ts";
import { anonymousPrincipal, type KeyRing, presentedKey } from "../identity/key-ring.ts";
import type { Access } from "../operation/operation.ts";

/** Decides who is calling and whether this route is theirs to call. */
export class AccessRule {
  readonly #keys: KeyRing;
  readonly #anonymous: Principal | null;

  /** `anonymousTenant`: where callers without a key act; null means that none get in. */
  constructor(keys: KeyRing, anonymousTenant: string | null) {
    this.#keys = keys;
    this.#anonymous = anonymousTenant === null ? null : anonymousPrincipal(anonymousTenant);
  }

  /**
   * Who calls a route; null only for public ones. A key that is presented must be good, even where none is needed. That
   * they may call it is for `checkRole` to say. Throws KEY_MISSING or KEY_UNKNOWN.
   */
  identify(access: Access, rawHeaders: readonly string[]): Principal | null {
    if (access === "public") return null;
    const key = presentedKey(rawHeaders);
    return key === null ? this.#withoutKey(access) : this.#keys.authenticate(key);
  }

  /** Whose key the headers present; null where they present none. Throws KEY_UNKNOWN. */
  admitIfPresented(rawHeaders: readonly string[]): Principal | null {
    const key = presentedKey(rawHeaders);
    return key === null ? null : this.#keys.authenticate(key);
  }

  #withoutKey(access: Access): Principal {
    if (access === "caller" && this.#anonymous !== null) return this.#anonymous;
    throw new GatewayError("KEY_MISSING", "send `X-API-Key: <key>` or `Authorization: Bearer <key>`");
  }
}

/** Throws ROLE_FORBIDDEN where the role of a route's caller does not carry what the route asks for. */
export function checkRole({ role }: Principal, access: Access): void {
  if (access === "public" || access === "caller" || access === "key" || can(role, access)) return;
  throw new GatewayError("ROLE_FORBIDDEN", `\`${role}\` lacks \`${access}\``);
}

const maxClientText = 128;

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
  return typeof value === "string" ? value.slice(0, maxClientText).toWellFormed() : "unknown";
}
