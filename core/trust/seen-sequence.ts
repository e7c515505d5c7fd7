import type { AbstractBatchOptions, AbstractLevel } from "abstract-level";
import { GatewayError } from "../action/error.ts";
import { isJsonObject } from "../action/json.ts";
import type { SeenSequence } from "./quorum.ts";
import type { VerifiedExtension } from "./verified-extension.ts";

/** The part of the database interface that is used here. */
type SequenceStore = AbstractLevel<string | Buffer | Uint8Array, string, string>;

/** The abstract interface lacks `sync`; both engines support it. */
const durably: AbstractBatchOptions<string, string> & { readonly sync: true } = { sync: true };

/** Stores the highest sequence of each trusted extension across restarts, so that older releases are refused. */
export class SeenSequences {
  readonly #store: SequenceStore;

  constructor(store: SequenceStore) {
    this.#store = store;
  }

  /** Returns undefined where nothing was trusted under this name. Throws STATE_UNUSABLE for an unreadable entry. */
  async lookUp({ kind, name }: { readonly kind: string; readonly name: string }): Promise<SeenSequence | undefined> {
    const text = await this.#store.get(keyOf(kind, name));
    if (text === undefined) return undefined;
    const seen = parse(text);
    if (seen !== undefined) return seen;
    throw new GatewayError("STATE_UNUSABLE", `the highest sequence of \`${name}\` cannot be read`);
  }

  /**
   * Stores all or none; durable when it resolves. Skips untrusted extensions: anybody could set their sequence high.
   */
  async remember(extensions: readonly VerifiedExtension[]): Promise<void> {
    const entries: { type: "put"; key: string; value: string }[] = [];
    for (const { claim, digest, trust } of extensions) {
      if (trust !== "trusted" || claim === null) continue;
      const seen = await this.lookUp(claim);
      if (seen !== undefined && seen.sequence >= claim.sequence) continue;
      const value = JSON.stringify({ sequence: claim.sequence, digest });
      entries.push({ type: "put", key: keyOf(claim.kind, claim.name), value });
    }
    if (entries.length > 0) await this.#store.batch(entries, durably);
  }
}

/** Contains no `/`: keys with one belong to the tenant before it. */
function keyOf(kind: string, name: string): string {
  return `extension-sequence-${kind}-${encodeURIComponent(name)}`;
}

function parse(text: string): SeenSequence | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (!isJsonObject(value) || typeof value.digest !== "string" || typeof value.sequence !== "number")
      return undefined;
    return { sequence: value.sequence, digest: value.digest };
  } catch {
    return undefined;
  }
}
