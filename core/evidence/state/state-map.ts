import { hash } from "node:crypto";
import { canonicalJson, sha256Hex } from "../../action/canonical-json.ts";
import { GatewayError } from "../../action/error.ts";
import { parseKept } from "../../action/json.ts";
import { leafHash } from "../tree/merkle.ts";

/** The numbers that a state holds of one subject: a session, or a principal. */
export type StateValue = readonly number[];

/** A proof of what a state says of one subject, or that it says nothing of it. */
export interface StateProof {
  /** The hashes (hex) beside the subject's path, from the root down. */
  readonly beside: readonly string[];
  /** The leaf in the subject's place where that is another's: its path, and the commitment to its value. Else empty. */
  readonly other: readonly string[];
  /** Empty where there is no value. */
  readonly salt: string;
  readonly value: StateValue;
}

/** A leaf with its hash, the digest of the page below, or nothing. */
type Slot = readonly [path: string, value: StateValue, hash: string] | string | null;
type Page = Slot[];

const slotsPerPage = 16;
const emptyHash = "0".repeat(64);
const nodeInput = Buffer.alloc(65, 0x01);
const digestPattern = /^[0-9a-f]{64}$/;
/** The hash of an empty place on each level of a page, from its slots up, and of the place above two of them. */
const emptyLevels: readonly (readonly [empty: string, above: string])[] = listEmptyLevels();

const emptyRoot = String(emptyLevels.at(-1)?.[1]);

/** The path of a subject: the SHA-256 (hex) of its kind and id. */
export function subjectPath(kind: "session" | "principal", id: string): string {
  return sha256Hex(canonicalJson([kind, id]));
}

/**
 * An authenticated map from subjects to values: a Merkle tree in which a leaf stands as far up as its path is its own, in
 * steps of one hex digit. Equal contents make equal trees. Pages of 16 slots are read when they are needed, and those that
 * changed are written by the caller.
 */
export class StateMap {
  readonly #root: string;
  readonly #read: (prefix: string) => Promise<string | undefined>;
  readonly #saltOf: (path: string) => string;
  /** Null for a page that was removed. */
  readonly #pages = new Map<string, Page | null>();
  readonly #changed = new Set<string>();

  /**
   * `root` is what `root` returned when the pages were written; empty for a new map. `read` returns the text of the page of a
   * prefix. `saltOf` hides values from whoever sees the hashes beside them. Everything throws EVIDENCE_UNAVAILABLE where a page is
   * missing, or is not the one that the root is of.
   */
  constructor(root: string, read: (prefix: string) => Promise<string | undefined>, saltOf: (path: string) => string) {
    this.#root = root || emptyRoot;
    this.#read = read;
    this.#saltOf = saltOf;
  }

  /** The value of a subject; undefined where there is none. */
  async get(path: string): Promise<StateValue | undefined> {
    const { slot } = await this.#find(path);
    return slot?.[0] === path ? slot[1] : undefined;
  }

  async set(path: string, value: StateValue): Promise<void> {
    const { page, prefix, slot } = await this.#find(path);
    this.#markChanged(prefix);
    const at = digitAt(path, prefix.length);
    if (slot === null || slot[0] === path) {
      page[at] = [path, value, hashStateLeaf(path, this.#commit(path, value))];
      return;
    }
    const below = path.slice(0, prefix.length + 1);
    const leaves = emptyPage();
    leaves[digitAt(slot[0], below.length)] = slot;
    this.#pages.set(below, leaves);
    page[at] = "";
    await this.set(path, value);
  }

  async delete(path: string): Promise<void> {
    let { page, prefix, slot } = await this.#find(path);
    if (slot?.[0] !== path) return;
    page[digitAt(path, prefix.length)] = null;
    this.#markChanged(prefix);
    // A leaf that is alone moves up.
    while (prefix !== "") {
      const left = page.filter((each) => each !== null);
      if (left.length !== 1 || typeof left[0] === "string") return;
      this.#pages.set(prefix, null);
      prefix = prefix.slice(0, -1);
      page = await this.#open(prefix);
      page[digitAt(path, prefix.length)] = left[0] as Slot;
    }
  }

  /** The root (hex). `rest` is called before each page that changed. */
  async root(rest?: () => Promise<unknown>): Promise<string> {
    const inOrder = [...this.#changed].sort((a, b) => b.length - a.length);
    for (const prefix of inOrder) {
      await rest?.();
      const page = this.#pages.get(prefix);
      if (prefix === "" || !page) continue;
      const above = await this.#open(prefix.slice(0, -1));
      above[digitAt(prefix, prefix.length - 1)] = levelsOf(page)[0]?.[0] ?? "";
    }
    return String(levelsOf(await this.#open(""))[0]?.[0]);
  }

  /** Proves the value of a path, or its absence. Call `root` before. */
  async prove(path: string): Promise<StateProof> {
    const beside: string[] = [];
    for (let prefix = ""; ; prefix = path.slice(0, prefix.length + 1)) {
      const page = await this.#open(prefix);
      const at = digitAt(path, prefix.length);
      const levels = levelsOf(page);
      for (let level = 1; level < levels.length; level++) beside.push(String(levels[level]?.[(at >> (4 - level)) ^ 1]));
      const slot = page[at] ?? null;
      if (typeof slot === "string") continue;
      this.#check(slot, prefix);
      if (slot === null) return { beside, other: [], salt: "", value: [] };
      if (slot[0] !== path) return { beside, other: [slot[0], this.#commit(slot[0], slot[1])], salt: "", value: [] };
      return { beside, other: [], salt: this.#saltOf(path), value: slot[1] };
    }
  }

  /** The pages that changed, by their prefix; undefined for one to delete. Call `root` before. */
  changes(): readonly (readonly [prefix: string, text: string | undefined])[] {
    return [...this.#changed].map((prefix) => {
      const page = this.#pages.get(prefix);
      return [prefix, page ? JSON.stringify(page) : undefined];
    });
  }

  /** The page that a path ends in, and what is in its place there: a leaf, its own or another's, or nothing. */
  async #find(path: string): Promise<{ page: Page; prefix: string; slot: Exclude<Slot, string> }> {
    for (let prefix = ""; ; prefix = path.slice(0, prefix.length + 1)) {
      const page = await this.#open(prefix);
      const slot = page[digitAt(path, prefix.length)] ?? null;
      if (typeof slot === "string") continue;
      this.#check(slot, prefix);
      return { page, prefix, slot };
    }
  }

  async #open(prefix: string): Promise<Page> {
    const known = this.#pages.get(prefix);
    if (known) return known;
    const above = this.#pages.get(prefix.slice(0, -1));
    const expected = prefix === "" ? this.#root : above?.[digitAt(prefix, prefix.length - 1)];
    const text = await this.#read(prefix);
    const page = text === undefined ? emptyPage() : parseStatePage(text);
    if (!page || levelsOf(page)[0]?.[0] !== expected) throw damaged(prefix);
    this.#pages.set(prefix, page);
    return page;
  }

  /** Checks that a leaf has the value that its hash is of. */
  #check(slot: Exclude<Slot, string>, prefix: string): void {
    if (slot !== null && slot[2] !== hashStateLeaf(slot[0], this.#commit(slot[0], slot[1]))) throw damaged(prefix);
  }

  /** Marks a page as changed, and those above it. */
  #markChanged(prefix: string): void {
    for (let length = prefix.length; length >= 0; length--) this.#changed.add(prefix.slice(0, length));
  }

  #commit(path: string, value: StateValue): string {
    return commitState(this.#saltOf(path), value);
  }
}

function damaged(prefix: string): GatewayError {
  return new GatewayError("EVIDENCE_UNAVAILABLE", `page \`${prefix}\` of the state of a chain is damaged or missing`);
}

/** Parses the text of a page; undefined for one that no map has written. */
export function parseStatePage(text: string): Page | undefined {
  const page = parseKept(text);
  return Array.isArray(page) && page.length === slotsPerPage && page.every(isSlot) ? (page as Page) : undefined;
}

function isSlot(slot: unknown): boolean {
  if (!Array.isArray(slot)) return slot === null || isDigest(slot);
  const [path, value] = slot;
  return isDigest(path) && Array.isArray(value) && value.every(Number.isSafeInteger) && isDigest(slot[2]);
}

function isDigest(value: unknown): boolean {
  return typeof value === "string" && digestPattern.test(value);
}

/** The hashes of a page: its root, then each level below, down to its 16 slots. */
function levelsOf(page: Page): readonly (readonly string[])[] {
  let below = page.map((slot) => (slot === null ? emptyHash : typeof slot === "string" ? slot : slot[2]));
  const levels = [below];
  for (const [empty, above] of emptyLevels) {
    const left = below;
    below = Array.from({ length: left.length / 2 }, (_, at) => {
      const [first, second] = [left[2 * at], left[2 * at + 1]];
      return first === empty && second === empty ? above : node(first, second);
    });
    levels.unshift(below);
  }
  return levels;
}

/** The commitment to a value under a salt. */
function commitState(salt: string, value: StateValue): string {
  return sha256Hex(canonicalJson([salt, value]));
}

function hashStateLeaf(path: string, commitment: string): string {
  return leafHash(sha256Hex(`${path}\n${commitment}`)).toString("hex");
}

function node(left = emptyHash, right = emptyHash): string {
  nodeInput.write(left, 1, "hex");
  nodeInput.write(right, 33, "hex");
  return hash("sha256", nodeInput);
}

function listEmptyLevels(): [string, string][] {
  const levels: [string, string][] = [];
  for (let empty = emptyHash; levels.length < 4; empty = levels.at(-1)?.[1] ?? emptyHash) {
    levels.push([empty, node(empty, empty)]);
  }
  return levels;
}

function emptyPage(): Page {
  return new Array<Slot>(slotsPerPage).fill(null);
}

function digitAt(path: string, at: number): number {
  return Number.parseInt(path.charAt(at), slotsPerPage);
}

/** Checks that a proof leads from a path, and the value that it states or the lack of one, to a root (hex). */
export function isStateProof(root: string, path: string, { beside, other, salt, value }: StateProof): boolean {
  const [otherPath, commitment] = other;
  if (beside.length > 4 * path.length || (other.length > 0 && value.length > 0) || ![0, 2].includes(other.length))
    return false;
  let digest = emptyHash;
  if (value.length > 0) digest = hashStateLeaf(path, commitState(salt, value));
  else if (otherPath !== undefined && commitment !== undefined) digest = hashStateLeaf(otherPath, commitment);
  const bits = bitsOf(path).slice(0, beside.length);
  if (otherPath !== undefined && (otherPath === path || !bitsOf(otherPath).startsWith(bits))) return false;
  for (let at = beside.length - 1; at >= 0; at--) {
    digest = bits[at] === "0" ? node(digest, beside[at]) : node(beside[at], digest);
  }
  return digest === root;
}

function bitsOf(path: string): string {
  return [...path].map((digit) => Number.parseInt(digit, slotsPerPage).toString(2).padStart(4, "0")).join("");
}
