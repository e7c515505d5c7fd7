import { setImmediate } from "node:timers/promises";
import { type ActionEnvelope, everyUpstream } from "../action/envelope.ts";
import type { Json } from "../action/json.ts";
import { findNamedValues, type NamedValue } from "../fact/named-value.ts";
import { findActionValues, findRequestValues, findTextValues, leafTexts } from "./action-value.ts";
import type { CountedList } from "./counted.ts";
import type { SessionEntry } from "./session-entry.ts";
import { ValueMemory, valueDigest } from "./value-memory.ts";

interface ValueWatchOptions {
  /** True where the answers of any tool are untrusted: only then it is worth remembering what was known before. */
  readonly isOn: boolean;
  /** Returns the secret under which the values of a tenant are digested. */
  readonly keyOf: (tenant: string) => string;
  /** Returns whether the manifest of a task names a value. */
  readonly isExpected: (tenant: string, task: string, value: string) => boolean;
}

/** Characters of an untrusted answer that are searched at a time, and those that two searches share. */
const pieceLength = 16_384;
const pieceOverlap = 1_024;
const maxListed = 20;
const maxListedLength = 256;
const cutValue = "an argument too long to be searched";

/**
 * Remembers which hosts, paths and addresses untrusted answers named first, for the sessions of a principal together and for
 * those of each task, and finds those among the values of an action.
 */
export class ValueWatch {
  readonly isOn: boolean;
  readonly #options: ValueWatchOptions;

  constructor(options: ValueWatchOptions) {
    this.isOn = options.isOn;
    this.#options = options;
  }

  /** Returns the values of an action that an untrusted answer named first: at most 20, each of at most 256 characters. */
  find(action: ActionEnvelope, { values: memory }: SessionEntry): readonly string[] {
    const { tenant, task, target } = action;
    if (memory === null || !memory.hasUntrusted || target === everyUpstream) return [];
    const digestOf = this.#digestOf(tenant);
    const { values, isCut } = findActionValues(action);
    const found = new Set<string>(isCut ? [cutValue] : []);
    for (const value of values) {
      if (found.size === maxListed) break;
      const text = value.slice(value.indexOf(":") + 1);
      if (memory.isUntrusted(value, digestOf) && !(task !== null && this.#options.isExpected(tenant, task, text))) {
        found.add(text.slice(0, maxListedLength));
      }
    }
    return [...found];
  }

  /** Remembers as known what a dispatched action names, or a trusted answer. What models say is nobody's word. */
  learnKnown({ tenant, protocol, arguments: args, output }: ActionEnvelope, [, ...groups]: CountedList): void {
    const values = new Set<NamedValue>();
    if (protocol !== "model") findTextValues(output ?? args, values);
    else if (output === undefined) findRequestValues(args, values);
    if (values.size === 0) return;
    const digestOf = this.#digestOf(tenant);
    for (const group of groups) {
      if (group === undefined) continue;
      group.entry.values ??= new ValueMemory();
      group.entry.values.addKnown(values, digestOf);
      group.cache.weigh(tenant, group.id, group.entry);
    }
  }

  /**
   * Remembers what an untrusted answer names, all of it, and lets others have the thread between the pieces of a long one.
   * Resolves to whether any of it is new; in memory when this resolves, durable with the next head of the groups.
   */
  async learnUntrusted({ tenant, output = null }: ActionEnvelope, [, ...groups]: CountedList): Promise<boolean> {
    const digestOf = this.#digestOf(tenant);
    let isNew = false;
    let searched = 0;
    for (const piece of piecesOf(output)) {
      const values = new Set<NamedValue>();
      findNamedValues(piece, values);
      const digests = Array.from(values, digestOf);
      for (const group of groups) {
        if (group === undefined) continue;
        group.entry.values ??= new ValueMemory();
        if (group.entry.values.addUntrusted(digests)) isNew = true;
        group.cache.weigh(tenant, group.id, group.entry);
      }
      searched += piece.length;
      if (searched < pieceLength) continue;
      searched = 0;
      await setImmediate();
    }
    return isNew;
  }

  /** Digests each value once: several groups and several wider values ask for the same. */
  #digestOf(tenant: string): (value: NamedValue) => number {
    const key = this.#options.keyOf(tenant);
    const digests = new Map<NamedValue, number>();
    return (value) => {
      const digest = digests.get(value) ?? valueDigest(key, value);
      digests.set(value, digest);
      return digest;
    };
  }
}

/** The texts of an answer, the names of members among them, long ones in pieces that overlap. */
function* piecesOf(output: Json): Iterable<string> {
  for (const { text } of leafTexts(output)) {
    for (let at = 0; at === 0 || at + pieceOverlap < text.length; at += pieceLength - pieceOverlap) {
      yield text.slice(at, at + pieceLength);
    }
  }
}
