import { anonymousPrincipal } from "../identity/anonymous.ts";
import type { KeyRing } from "../identity/key-ring.ts";
import { presentedKey } from "../identity/presented-key.ts";
import { GatewayError } from "../kernel/error.ts";
import type { Principal } from "../kernel/principal.ts";
import { can } from "../kernel/role.ts";
import type { Access } from "./route.ts";

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
