import { contentDigest } from "../action/canonical-json.ts";
import { GatewayError } from "../action/error.ts";
import type { Random } from "../action/id.ts";
import { isTokenKeyId, type Principal, principalId } from "../action/principal.ts";
import { type Role, roles } from "../action/role.ts";

/** One key that may authenticate, without the key itself. */
export interface KeyEntry {
  readonly id: string;
  readonly tenant: string;
  readonly role: Role;
  /** `sha256:<64 hex>`. */
  readonly keyHash: string;
}

const principalShape = /^principal-v1-[0-9a-f]{64}$/;

/** The keys that authenticate now, and the principals that may act. */
export class KeyRing {
  #principals: ReadonlyMap<string, Principal>;
  readonly #tokenTenants: ReadonlySet<string>;

  /**
   * `tokenTenants`: the tenants that access tokens can belong to. Any well-formed principal of theirs counts as known: the
   * issuer alone has the list. Throws TypeError for a malformed entry and for a key that is given twice.
   */
  constructor(keys: readonly KeyEntry[], tokenTenants: ReadonlySet<string> = new Set()) {
    this.#principals = indexKeys(keys);
    this.#tokenTenants = tokenTenants;
  }

  /**
   * Returns the principal of a key; undefined for an unknown one. The look-up is by hash, so that its duration reveals
   * nothing about keys that are nearly right.
   */
  find(presented: string): Principal | undefined {
    return this.#principals.get(contentDigest(presented));
  }

  /** Returns the principal of a key. Throws KEY_UNKNOWN, which contains nothing of the key. */
  authenticate(presented: string): Principal {
    const principal = this.#principals.get(contentDigest(presented));
    if (principal === undefined) throw new GatewayError("KEY_UNKNOWN");
    return principal;
  }

  /** Replaces all keys at once. Throws as the constructor does, and then keeps the old ones. */
  replace(keys: readonly KeyEntry[]): void {
    this.#principals = indexKeys(keys);
  }

  /** Returns the id of a tenant's key that has this id or belongs to the principal of this id; of a token's subject as it is. */
  keyId(tenant: string, name: string): string | undefined {
    if (isTokenKeyId(name)) return this.#tokenTenants.has(tenant) ? name : undefined;
    return this.principalsOf(tenant).find(({ id, keyId }) => id === name || keyId === name)?.keyId;
  }

  /** The principals of a tenant's keys. */
  principalsOf(tenant: string): readonly Principal[] {
    return [...this.#principals.values()].filter((principal) => principal.tenant === tenant);
  }

  /** Returns whether this principal may still act, in this role. Tokens are checked one by one, as they come. */
  has({ id, role, tenant, keyId }: Principal): boolean {
    if (isTokenKeyId(keyId)) return this.#tokenTenants.has(tenant);
    return [...this.#principals.values()].some((principal) => principal.id === id && principal.role === role);
  }

  /** Returns whether a principal of this tenant can have this id. */
  knows(tenant: string, principal: string): boolean {
    if (this.#tokenTenants.has(tenant) && principalShape.test(principal)) return true;
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

/**
 * The principal of callers without a key in `tenant`: one for all of them, with the weakest role.
 * `anonymous` is no hash, so no key has the same identifier.
 */
export function anonymousPrincipal(tenant: string): Principal {
  return Object.freeze({ id: principalId(tenant, "anonymous"), tenant, role: "viewer", keyId: "anonymous" });
}

const maxKey = 512;
/** The characters of a `Bearer` token (RFC 6750). */
const keyText = /^[A-Za-z0-9._~+/=-]+$/;

/**
 * The key a request presents in `X-API-Key`, `X-Goog-Api-Key` or `Authorization: Bearer`, or null where it
 * presents none.
 * `maxLength`: 512, as no key is longer. Throws DUPLICATE_HEADER and, for different keys, INVALID_HEADER; KEY_UNKNOWN for
 * a malformed key.
 * A malformed header never counts as "no key": the request would become one of the anonymous caller.
 */
export function presentedKey(rawHeaders: readonly string[], maxLength: number = maxKey): string | null {
  const authorization = singleHeader(rawHeaders, "authorization");
  const apiKey = singleHeader(rawHeaders, "x-api-key");
  const bearer = authorization === undefined ? undefined : bearerToken(authorization);
  const googleKey = singleHeader(rawHeaders, "x-goog-api-key");
  for (const key of [bearer, apiKey, googleKey]) {
    if (key !== undefined && (key.length > maxLength || !keyText.test(key))) throw new GatewayError("KEY_UNKNOWN");
  }
  if (bearer !== undefined && apiKey !== undefined && bearer !== apiKey) {
    throw new GatewayError("INVALID_HEADER", "expected one key, got another in `authorization` than in `x-api-key`");
  }
  const presented = bearer ?? apiKey;
  if (presented !== undefined && googleKey !== undefined && presented !== googleKey) {
    throw new GatewayError("INVALID_HEADER", "expected one key, got another in `x-goog-api-key`");
  }
  return presented ?? googleKey ?? null;
}

/** Returns whether a request presents its key as `Authorization: Bearer`, the only place for an access token. */
export function presentsBearer(rawHeaders: readonly string[]): boolean {
  return singleHeader(rawHeaders, "authorization") !== undefined;
}

function bearerToken(authorization: string): string {
  const space = authorization.indexOf(" ");
  if (authorization.slice(0, space).toLowerCase() !== "bearer") throw new GatewayError("KEY_UNKNOWN");
  return authorization.slice(space + 1);
}

/** A new key, and the hash that the configuration stores. */
export interface GeneratedKey {
  /** `agw_` and 43 base64url characters: 256 bits. */
  readonly key: string;
  /** `sha256:<64 hex>`. */
  readonly keyHash: string;
}

const keyBytes = 32;

/** Makes a key. The caller shows it once; it cannot be derived from the hash. */
export function generateKey(random: Random): GeneratedKey {
  const bytes = random(keyBytes);
  if (bytes.length !== keyBytes) throw new TypeError(`generateKey: expected ${keyBytes} bytes, got ${bytes.length}`);
  const key = `agw_${Buffer.from(bytes).toString("base64url")}`;
  return { key, keyHash: contentDigest(key) };
}

/**
 * The one value of a header in Node's flat list of names and values; undefined where it is absent.
 * Throws DUPLICATE_HEADER. Node's own `headers` would keep the first or join them, and another hop the last.
 */
export function singleHeader(rawHeaders: readonly string[], name: string): string | undefined {
  let value: string | undefined;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() !== name) continue;
    if (value !== undefined) throw new GatewayError("DUPLICATE_HEADER", `expected \`${name}\` once, got it again`);
    value = rawHeaders[at + 1];
  }
  return value;
}

const label = /^[\x21-\x7e]{1,128}$/;

/**
 * The label of the session, from `X-Gateway-Session-ID`; undefined where the request has none.
 * Throws DUPLICATE_HEADER, and INVALID_HEADER unless it is 1 to 128 visible ASCII characters:
 * joined duplicates must not open a scope `a, b` that no client named.
 */
export function sessionLabel(rawHeaders: readonly string[]): string | undefined {
  const value = singleHeader(rawHeaders, "x-gateway-session-id");
  if (value === undefined || label.test(value)) return value;
  throw new GatewayError(
    "INVALID_HEADER",
    `expected 1 to 128 visible ASCII characters in \`x-gateway-session-id\`, got ${value.length} characters`,
  );
}
