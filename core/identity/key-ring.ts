import { contentDigest } from "../kernel/digest.ts";
import { GatewayError } from "../kernel/error.ts";
import { type Principal, principalId } from "../kernel/principal.ts";
import { type Role, roles } from "../kernel/role.ts";

/** One key that may authenticate. The key itself is nowhere in it. */
export interface KeyEntry {
  readonly id: string;
  readonly tenant: string;
  readonly role: Role;
  /** `sha256:<64 hex>`. */
  readonly keyHash: string;
}

/** The keys that authenticate now. */
export class KeyRing {
  #principals: ReadonlyMap<string, Principal>;

  /** Throws TypeError for a malformed entry and for a key that is given twice. */
  constructor(keys: readonly KeyEntry[]) {
    this.#principals = indexKeys(keys);
  }

  /**
   * Who presents this key. Throws KEY_UNKNOWN, which says nothing of the key.
   * The look-up is by hash: how long it takes tells nothing of a key that is nearly right.
   */
  authenticate(presented: string): Principal {
    const principal = this.#principals.get(contentDigest(presented));
    if (principal === undefined) throw new GatewayError("KEY_UNKNOWN");
    return principal;
  }

  /** Replaces all keys at once. Throws as the constructor does, and then keeps the old ones. */
  replace(keys: readonly KeyEntry[]): void {
    this.#principals = indexKeys(keys);
  }

  /** Whether some key makes its holder this principal of this tenant. */
  names(tenant: string, id: string): boolean {
    return [...this.#principals.values()].some((principal) => principal.tenant === tenant && principal.id === id);
  }

  /** The id of a tenant's key that has this id, or makes its holder the principal of this id. */
  keyId(tenant: string, name: string): string | undefined {
    const own = [...this.#principals.values()].filter((principal) => principal.tenant === tenant);
    return own.find(({ id, keyId }) => id === name || keyId === name)?.keyId;
  }

  /** Whether some key still makes its holder this principal, in this role. */
  has({ id, role }: Principal): boolean {
    return [...this.#principals.values()].some((principal) => principal.id === id && principal.role === role);
  }

  /** Whether some key makes its holder this principal of this tenant. */
  knows(tenant: string, principal: string): boolean {
    return [...this.#principals.values()].some((known) => known.id === principal && known.tenant === tenant);
  }
}

function indexKeys(keys: readonly KeyEntry[]): ReadonlyMap<string, Principal> {
  const principals = new Map<string, Principal>();
  for (const { id, tenant, role, keyHash } of keys) {
    if (!/^sha256:[0-9a-f]{64}$/.test(keyHash)) {
      throw new TypeError(`KeyRing: expected \`sha256:<64 hex>\` as the hash of \`${id}\``);
    }
    if (tenant === "") throw new TypeError(`KeyRing: expected a tenant for \`${id}\``);
    if (!roles.includes(role)) throw new TypeError(`KeyRing: expected a role for \`${id}\`, got \`${role}\``);
    // One key in two tenants would be a way from one into the other.
    if (principals.has(keyHash)) throw new TypeError(`KeyRing: expected each key once, got that of \`${id}\` again`);
    principals.set(keyHash, Object.freeze({ id: principalId(tenant, keyHash), tenant, role, keyId: id }));
  }
  return principals;
}
