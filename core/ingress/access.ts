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
   * The caller of a route; null only for public ones. A key that is presented must be good, even where none is needed.
   * Throws KEY_MISSING, KEY_UNKNOWN or ROLE_FORBIDDEN.
   */
  admit(access: Access, rawHeaders: readonly string[]): Principal | null {
    if (access === "public") return null;
    const key = presentedKey(rawHeaders);
    if (key === null) return this.#withoutKey(access);
    const principal = this.#keys.authenticate(key);
    if (access !== "caller" && access !== "key" && !can(principal.role, access)) {
      throw new GatewayError("ROLE_FORBIDDEN", `\`${principal.role}\` lacks \`${access}\``);
    }
    return principal;
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
