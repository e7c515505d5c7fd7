import type { AbstractLevel } from "abstract-level";
import { RecentMap } from "../kernel/recent-map.ts";
import { type Kill, killRange, readKill, targetIn } from "./kill.ts";

/** The database as this folder reads it; it writes through the evidence alone. */
export type SessionStore = AbstractLevel<string | Buffer | Uint8Array, string, string>;

const mostRemembered = 10_000;

/** Which keys have an entry in the store. Remembers the answers asked for last; others are read again. */
export class KillIndex {
  readonly #store: SessionStore;
  readonly #remembered = new RecentMap<boolean>();

  constructor(store: SessionStore) {
    this.#store = store;
  }

  /** Throws what the store throws where it cannot be read: then nobody knows, and nothing may be dispatched. */
  has(key: string): boolean {
    const known = this.#remembered.get(key);
    if (known !== undefined) return known;
    const has = this.#store.getSync(key) !== undefined;
    this.remember(key, has);
    return has;
  }

  /** Takes note of what was just written. */
  remember(key: string, has: boolean): void {
    this.#remembered.set(key, has);
    this.#remembered.forgetOldest(mostRemembered);
  }

  async read(key: string): Promise<Kill | undefined> {
    const [target, text] = [targetIn(key), await this.#store.get(key)];
    return target === undefined || text === undefined ? undefined : readKill(target, text);
  }

  /** The first `limit` kills whose keys begin with `prefix`, behind the one that goes on with `after`, by their keys. */
  async list(prefix: string, limit: number, after?: string): Promise<Map<string, Kill>> {
    const kills = new Map<string, Kill>();
    for await (const [key, text] of this.#store.iterator({ ...killRange(prefix, after), limit })) {
      const target = targetIn(key);
      if (target !== undefined) kills.set(key, readKill(target, text));
    }
    return kills;
  }
}
