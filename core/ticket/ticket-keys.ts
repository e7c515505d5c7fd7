import type { BatchOperation } from "../action/commit-hook.ts";
import type { Clock } from "../action/id.ts";
import type { JsonObject } from "../action/json.ts";
import { SigningKey, VerifyingKey } from "../action/signing-key.ts";
import { lastPart, rangeOf, tenantPrefix } from "../store/key-range.ts";
import { headerOf, readToken, type TicketClaims } from "./claims.ts";
import type { TicketStore } from "./ticket-store.ts";

/** Where an event and what it tells of become durable together, or not at all. */
export interface TicketLog {
  recordEvent(tenant: string, kind: "ticket", detail: JsonObject, operations: readonly BatchOperation[]): Promise<void>;
}

/** The private halves of the keys that sign tickets. */
export interface TicketKeyStore {
  /** A new key, durable when it resolves. */
  create(): Promise<SigningKey>;
  /** Undefined where there is none of that id any more. */
  find(id: string): Promise<SigningKey | undefined>;
}

/** A public key as outsiders need it to verify a tenant's tickets. */
export interface TicketKey {
  readonly key_id: string;
  /** Base64 of the raw 32 bytes. */
  readonly public_key: string;
  /** RFC 3339, milliseconds, UTC. */
  readonly created_at: string;
}

interface TicketKeysParts {
  readonly store: TicketStore;
  readonly log: TicketLog;
  readonly keys: TicketKeyStore;
  readonly clock: Clock;
  readonly tenants: readonly string[];
}

interface Known {
  readonly tenant: string;
  readonly key: VerifyingKey;
  readonly told: TicketKey;
}

/** The keys that tickets are signed with: each tenant has its own, made when it issues its first ticket. */
export class TicketKeys {
  readonly #parts: Omit<TicketKeysParts, "tenants">;
  /** By the header of the tokens that a key signs. */
  readonly #known = new Map<string, Known>();
  readonly #signers = new Map<string, SigningKey>();
  readonly #decoy = SigningKey.fromSeed(new Uint8Array(32)).public;

  private constructor(parts: TicketKeysParts) {
    this.#parts = parts;
  }

  /** With all that former processes made. */
  static async open(parts: TicketKeysParts): Promise<TicketKeys> {
    const keys = new TicketKeys(parts);
    for (const tenant of parts.tenants) {
      for await (const [key, text] of parts.store.iterator(rangeOf(prefixOf(tenant)))) keys.#load(tenant, key, text);
    }
    return keys;
  }

  /** The claims of a token that a tenant of this gateway signed, and which one; undefined for a forged one. */
  read(token: string): { readonly claims: TicketClaims; readonly owner: string } | undefined {
    const find = (header: string): { readonly key: VerifyingKey; readonly owner: string } | undefined => {
      const known = this.#known.get(header);
      return known && { key: known.key, owner: known.tenant };
    };
    const read = readToken(token, find, this.#decoy);
    return read?.claims.tenant === read?.owner ? read : undefined;
  }

  /** A tenant's keys, the oldest first. */
  list(tenant: string): readonly TicketKey[] {
    return [...this.#known.values()]
      .filter((known) => known.tenant === tenant)
      .map(({ told }) => told)
      .sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
  }

  /**
   * The key that a tenant signs with. Where it has none, or the private half is gone, a new one, on record before it
   * signs. Call one at a time for a tenant. Rejects with EVIDENCE_UNAVAILABLE where it cannot be recorded.
   */
  async signer(tenant: string): Promise<SigningKey> {
    const signer = this.#signers.get(tenant) ?? (await this.#find(tenant)) ?? (await this.#create(tenant));
    this.#signers.set(tenant, signer);
    return signer;
  }

  async #find(tenant: string): Promise<SigningKey | undefined> {
    const latest = this.list(tenant).at(-1);
    return latest && this.#parts.keys.find(latest.key_id);
  }

  async #create(tenant: string): Promise<SigningKey> {
    const { keys, log, clock } = this.#parts;
    const signer = await keys.create();
    const { id, text } = signer.public;
    const told = { key_id: id, public_key: text, created_at: new Date(clock()).toISOString() };
    const entry: BatchOperation = { type: "put", key: `${prefixOf(tenant)}${id}`, value: JSON.stringify(told) };
    await log.recordEvent(tenant, "ticket", { event: "key_created", key_id: id, public_key: text }, [entry]);
    this.#known.set(headerOf(id), { tenant, key: signer.public, told });
    return signer;
  }

  /** What is no key of that id verifies nothing. */
  #load(tenant: string, key: string, text: string): void {
    const told = JSON.parse(text) as TicketKey;
    const verifying = VerifyingKey.parse(told.public_key);
    if (verifying?.id !== lastPart(key)) return;
    this.#known.set(headerOf(verifying.id), { tenant, key: verifying, told });
  }
}

function prefixOf(tenant: string): string {
  return `${tenantPrefix(tenant)}ticket-key/`;
}
