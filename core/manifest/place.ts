import { posix } from "node:path";
import { compileGlob, type Glob } from "../kernel/glob.ts";

/** Whether any of the patterns is a way to say: whatever it is. */
export function allowsAnything(patterns: readonly string[]): boolean {
  return patterns.includes("*");
}

/**
 * A path in its one spelling: `/` between its parts, nothing that climbs inside it, no `/` at its end. What climbs out of
 * where it begins still begins with `..`; a share of another machine with `//`.
 */
export function plainPath(path: string): string {
  const slashed = path.replaceAll("\\", "/");
  const plain = posix.normalize(slashed);
  const ended = plain.length > 1 && plain.endsWith("/") ? plain.slice(0, -1) : plain;
  return slashed.startsWith("//") ? `/${ended}` : ended;
}

/** The places that a list of patterns names: what a text must be in to be expected. */
export class Places {
  readonly #globs: readonly Glob[];

  constructor(patterns: readonly string[]) {
    this.#globs = patterns.map(compileGlob);
  }

  has(text: string): boolean {
    return this.#globs.some((glob) => glob.test(text));
  }
}

/** Where something may be changed or sent to: hosts, and what lies below paths. Neither kind of pattern speaks of the other. */
export class WriteDomains {
  readonly #any: boolean;
  readonly #hosts: Places;
  readonly #paths: Places;
  readonly #roots: readonly string[];

  constructor(patterns: readonly string[]) {
    this.#any = allowsAnything(patterns);
    const paths = patterns.filter(isPath);
    this.#hosts = new Places(patterns.filter((pattern) => !isPath(pattern)).map((host) => host.toLowerCase()));
    this.#paths = new Places(paths.filter((path) => path.includes("*")));
    this.#roots = paths.filter((path) => !path.includes("*")).map(plainPath);
  }

  /** Whether it is not asked where. */
  get isAnywhere(): boolean {
    return this.#any;
  }

  /** `host`: as a URL names it, with its port where one is written. */
  hasHost(host: string): boolean {
    return this.#any || this.#hosts.has(host);
  }

  hasPath(path: string): boolean {
    const plain = plainPath(path);
    return this.#any || this.#paths.has(plain) || this.#roots.some((root) => isBelow(plain, root));
  }
}

function isPath(pattern: string): boolean {
  return /^(?:[/\\~]|[A-Za-z]:[\\/])/.test(pattern);
}

function isBelow(path: string, root: string): boolean {
  return path === root || path.startsWith(root === "/" ? root : `${root}/`);
}
