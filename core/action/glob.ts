/**
 * A name pattern: `*` stands for any run of characters, every other character for itself.
 * Case-sensitive and byte-exact: no Unicode normalisation, so a look-alike never matches by accident.
 */
export interface Glob {
  readonly pattern: string;
  /** True where there is no `*`: the pattern is the only text it matches. */
  readonly exact: boolean;
  /** The part before the first `*`. */
  readonly prefix: string;
  /** The part after the last `*`. */
  readonly suffix: string;
  test(text: string): boolean;
}

export function compileGlob(pattern: string): Glob {
  const parts = pattern.split("*");
  const prefix = parts[0] as string;
  if (parts.length === 1) return { pattern, exact: true, prefix, suffix: prefix, test: (text) => text === pattern };
  const suffix = parts.at(-1) as string;
  const middle = parts.slice(1, -1).filter((part) => part !== "");
  return { pattern, exact: false, prefix, suffix, test: (text) => testParts(text, prefix, middle, suffix) };
}

/** Takes each part at its first place after the one before; that never needs a second try, so time is linear. */
function testParts(text: string, prefix: string, middle: readonly string[], suffix: string): boolean {
  if (text.length < prefix.length + suffix.length) return false;
  if (!text.startsWith(prefix) || !text.endsWith(suffix)) return false;
  const end = text.length - suffix.length;
  let at = prefix.length;
  for (const part of middle) {
    const found = text.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

/** Values by name or glob: the name itself counts before globs, a longer glob before a shorter one. */
export class GlobTable<Value> {
  readonly #named: ReadonlyMap<string, Value>;
  /** The longest first. */
  readonly #globs: readonly (readonly [Glob, Value])[];

  constructor(values: Readonly<Record<string, Value>>) {
    const entries = Object.entries(values);
    this.#named = new Map(entries);
    this.#globs = entries
      .map(([pattern, value]) => [compileGlob(pattern), value] as const)
      .filter(([{ exact }]) => !exact)
      .sort(([a], [b]) => b.pattern.length - a.pattern.length);
  }

  get(name: string): Value | undefined {
    return this.#named.get(name) ?? this.#globs.find(([glob]) => glob.test(name))?.[1];
  }
}
