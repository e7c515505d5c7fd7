import type { AbstractLevel } from "abstract-level";
import { forgetOldest } from "../kernel/forget.ts";
import { type Kill, killKey, killRange, readKill, sessionIn } from "./kill.ts";

/** The database as this folder reads it; it writes through the evidence alone. */
export type SessionStore = AbstractLevel<string | Buffer | Uint8Array, string, string>;

const mostRemembered = 10_000;

/** Which sessions have an entry in the store. Remembers the answers asked for last; others are read again. */
export class KillIndex {
  readonly #store: SessionStore;
  readonly #remembered = new Map<string, boolean>();

  constructor(store: SessionStore) {
    this.#store = store;
  }

  /** Throws what the store throws where it cannot be read: then nobody knows, and nothing may be dispatched. */
  has(key: string): boolean {
    const has = this.#remembered.get(key) ?? this.#store.getSync(key) !== undefined;
    this.remember(key, has);
    return has;
  }

  /** Takes note of what was just written. */
  remember(key: string, has: boolean): void {
    this.#remembered.delete(key);
    this.#remembered.set(key, has);
    forgetOldest(this.#remembered, mostRemembered);
  }

  async read(tenant: string, session: string): Promise<Kill | undefined> {
    const text = await this.#store.get(killKey(tenant, session));
    return text === undefined ? undefined : readKill(session, text);
  }

  /** The first `limit` of a tenant's kills behind that of the session `after`, by their keys. */
  async list(tenant: string, limit: number, after: string): Promise<Map<string, Kill>> {
    const entries = await this.#store.iterator({ ...killRange(tenant, after), limit }).all();
    return new Map(entries.map(([key, text]) => [key, readKill(sessionIn(key), text)]));
  }
}
