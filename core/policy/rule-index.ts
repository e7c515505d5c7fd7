import type { ActionEnvelope, Phase, Protocol } from "../kernel/envelope.ts";
import { type Match, matches, type NameKey, nameKeys, nameOf } from "./match.ts";

interface Matched {
  readonly match: Match;
  /** Position in the pack; findings come in this order. */
  readonly position: number;
}

/**
 * Finds the rules an action may concern without asking the others: by phase, protocol and capability first, then by
 * the first name the rule is about. The cost does not grow with rules that cannot match.
 */
export class RuleIndex<T extends Matched> {
  readonly #shelves = new Map<string, Shelf<T>>();

  constructor(rules: readonly T[]) {
    for (const rule of rules) {
      for (const key of shelfKeys(rule.match)) {
        const shelf = this.#shelves.get(key) ?? new Shelf();
        this.#shelves.set(key, shelf);
        shelf.add(rule);
      }
    }
  }

  /** Whether any rule may concern an action of this phase and protocol. */
  has(phase: Phase, protocol: Protocol): boolean {
    return [...this.#shelves.keys()].some((key) => key.startsWith(`${phase} ${protocol} `));
  }

  /** The rules whose `match` agrees with the action, in the pack's order. */
  candidates(action: ActionEnvelope): readonly T[] {
    const shelf = this.#shelves.get(shelfKey(action.phase, action.protocol, action.capability));
    if (shelf === undefined) return [];
    const found = new Set<T>();
    shelf.collect(action, (rule) => {
      if (matches(rule.match, action)) found.add(rule);
    });
    return Array.from(found).sort((a, b) => a.position - b.position);
  }
}

function shelfKey(phase: string, protocol: string, capability: string): string {
  return `${phase} ${protocol} ${capability}`;
}

function* shelfKeys(match: Match): Iterable<string> {
  for (const phase of match.phases) {
    for (const protocol of match.protocols) {
      for (const capability of match.capabilities) yield shelfKey(phase, protocol, capability);
    }
  }
}

/** The rules of one phase, protocol and capability: each under the first name it is about, or under none. */
class Shelf<T extends Matched> {
  readonly #byName = new Map<NameKey, NameTable<T>>();
  readonly #unnamed: T[] = [];

  add(rule: T): void {
    const key = nameKeys.find((name) => rule.match.names.has(name));
    if (key === undefined) {
      this.#unnamed.push(rule);
      return;
    }
    const table = this.#byName.get(key) ?? new NameTable();
    this.#byName.set(key, table);
    table.add(rule, key);
  }

  collect(action: ActionEnvelope, take: (rule: T) => void): void {
    for (const rule of this.#unnamed) take(rule);
    for (const [key, table] of this.#byName) table.collect(nameOf(action, key), take);
  }
}

/** Rules by the globs of one name: whole names, beginnings and ends are looked up, only `*middle*` is tried in turn. */
class NameTable<T> {
  readonly #exact = new Map<string, T[]>();
  readonly #prefixes = new AffixTable<T>((name, length) => name.slice(0, length));
  readonly #suffixes = new AffixTable<T>((name, length) => name.slice(name.length - length));
  readonly #rest: T[] = [];

  add(rule: T & Matched, key: NameKey): void {
    for (const glob of rule.match.names.get(key) ?? []) {
      if (glob.exact) push(this.#exact, glob.pattern, rule);
      else if (glob.prefix !== "") this.#prefixes.add(glob.prefix, rule);
      else if (glob.suffix !== "") this.#suffixes.add(glob.suffix, rule);
      else this.#rest.push(rule);
    }
  }

  collect(name: string, take: (rule: T) => void): void {
    for (const rule of this.#exact.get(name) ?? []) take(rule);
    this.#prefixes.collect(name, take);
    this.#suffixes.collect(name, take);
    for (const rule of this.#rest) take(rule);
  }
}

class AffixTable<T> {
  readonly #rules = new Map<string, T[]>();
  readonly #lengths = new Set<number>();
  readonly #cut: (name: string, length: number) => string;

  constructor(cut: (name: string, length: number) => string) {
    this.#cut = cut;
  }

  add(affix: string, rule: T): void {
    push(this.#rules, affix, rule);
    this.#lengths.add(affix.length);
  }

  collect(name: string, take: (rule: T) => void): void {
    for (const length of this.#lengths) {
      if (length > name.length) continue;
      for (const rule of this.#rules.get(this.#cut(name, length)) ?? []) take(rule);
    }
  }
}

function push<T>(table: Map<string, T[]>, key: string, rule: T): void {
  const rules = table.get(key);
  if (rules === undefined) table.set(key, [rule]);
  else rules.push(rule);
}
