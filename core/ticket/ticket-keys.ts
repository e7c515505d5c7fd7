import type { BatchOperation } from "../action/commit-hook.ts";
import type { Clock } from "../action/id.ts";
import type { JsonObject } from "../action/json.ts";
import { SigningKey, VerifyingKey } from "../action/signing-key.ts";
import { lastPart, rangeOf, tenantPrefix } from "../store/key-range.ts";
import type { Store } from "../store/open.ts";
import { headerOf, readToken, type TicketClaims } from "./claims.ts";

/** Records an event and its operations in one atomic batch. */
export interface TicketLog {
  recordEvent(tenant: string, kind: "ticket", detail: JsonObject, operations: readonly BatchOperation[]): Promise<void>;
}

/** Keeps the private keys that sign tickets. */
export interface TicketKeyStore {
  /** Creates a key, durable when it resolves. */
  create(): Promise<SigningKey>;
  /** Undefined where the key was deleted. */
  find(id: string): Promise<SigningKey | undefined>;
}

/** A public key for verifying the tickets of a tenant. */
export interface TicketKey {
  readonly key_id: string;
  /** Base64 of the raw 32 bytes. */
  readonly public_key: string;
  /** RFC 3339, milliseconds, UTC. */
  readonly created_at: string;
}

interface TicketKeysOptions {
  readonly store: Store;
  readonly log: TicketLog;
  readonly keys: TicketKeyStore;
  readonly clock: Clock;
  readonly tenants: readonly string[];
}

interface KnownKey {
  readonly tenant: string;
  readonly key: VerifyingKey;
  readonly view: TicketKey;
}

/** The keys that sign tickets. Each tenant has its own, created with its first ticket. */
export class TicketKeys {
  readonly #options: Omit<TicketKeysOptions, "tenants">;
  /** By the header of the tokens that the key signs. */
  readonly #known = new Map<string, KnownKey>();
  readonly #signers = new Map<string, SigningKey>();
  readonly #decoy = SigningKey.fromSeed(new Uint8Array(32)).public;

  private constructor(options: TicketKeysOptions) {
    this.#options = options;
  }

  /** Opens the keys of earlier processes. */
  static async open(options: TicketKeysOptions): Promise<TicketKeys> {
    const keys = new TicketKeys(options);
    for (const tenant of options.tenants) {
      for await (const [key, text] of options.store.iterator(rangeOf(prefixOf(tenant)))) keys.#load(tenant, key, text);
    }
    return keys;
  }

  /** Verifies a token. Returns its claims and the tenant whose key signed it; undefined for a forged one. */
  read(token: string): { readonly claims: TicketClaims; readonly owner: string } | undefined {
    const find = (header: string): { readonly key: VerifyingKey; readonly owner: string } | undefined => {
      const known = this.#known.get(header);
      return known && { key: known.key, owner: known.tenant };
    };
    const read = readToken(token, find, this.#decoy);
    return read?.claims.tenant === read?.owner ? read : undefined;
  }

  /** Lists the keys of a tenant, the oldest first. */
  list(tenant: string): readonly TicketKey[] {
    return [...this.#known.values()]
      .filter((known) => known.tenant === tenant)
      .map(({ view }) => view)
      .sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
  }

  /**
   * Returns the signing key of a tenant; a new one where there is none or its private key was deleted, on record before it
   * signs. Calls for one tenant must not overlap. Rejects with EVIDENCE_UNAVAILABLE where a new one cannot be recorded.
   */
  async signer(tenant: string): Promise<SigningKey> {
    const signer = this.#signers.get(tenant) ?? (await this.#find(tenant)) ?? (await this.#create(tenant));
    this.#signers.set(tenant, signer);
    return signer;
  }

  async #find(tenant: string): Promise<SigningKey | undefined> {
    const latest = this.list(tenant).at(-1);
    return latest && this.#options.keys.find(latest.key_id);
  }

  async #create(tenant: string): Promise<SigningKey> {
    const { keys, log, clock } = this.#options;
    const signer = await keys.create();
    const { id, text } = signer.public;
    const view = { key_id: id, public_key: text, created_at: new Date(clock()).toISOString() };
    const entry: BatchOperation = { type: "put", key: `${prefixOf(tenant)}${id}`, value: JSON.stringify(view) };
    await log.recordEvent(tenant, "ticket", { event: "key_created", key_id: id, public_key: text }, [entry]);
    this.#known.set(headerOf(id), { tenant, key: signer.public, view });
    return signer;
  }

  /** Ignores an entry whose key does not match its id. */
  #load(tenant: string, key: string, text: string): void {
    const view = JSON.parse(text) as TicketKey;
    const verifying = VerifyingKey.parse(view.public_key);
    if (verifying?.id !== lastPart(key)) return;
    this.#known.set(headerOf(verifying.id), { tenant, key: verifying, view });
  }
}

function prefixOf(tenant: string): string {
  return `${tenantPrefix(tenant)}ticket-key/`;
}
