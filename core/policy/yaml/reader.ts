import type { Json, JsonObject } from "../../action/json.ts";
import { didYouMean } from "../../action/suggestion.ts";
import { hasUnprintable } from "../../action/visible-text.ts";
import type { Faults, Place } from "../fault.ts";
import { describeNode, toJson, type YamlList, type YamlMap, type YamlNode, type YamlScalar } from "./node.ts";

export interface TextRule {
  readonly max: number;
  readonly pattern?: RegExp;
  /** The pattern in words, for the message. */
  readonly shape?: string;
}

/**
 * Reads the members of one mapping by name. What is missing, of another type or unknown becomes a fault, and the
 * call answers with an empty value: whoever reads a whole pack asks `Faults` before using any of it.
 */
export class MapReader {
  readonly place: Place;
  readonly #map: YamlMap;
  readonly #faults: Faults;

  constructor(node: YamlNode, what: string, keys: readonly string[], faults: Faults) {
    this.place = node.place;
    this.#faults = faults;
    if (node.kind === "map") this.#map = node;
    else {
      faults.add(node.place, `expected ${what} to be a mapping, got ${describeNode(node)}`);
      this.#map = { kind: "map", members: new Map(), place: node.place };
    }
    for (const [key, member] of this.#map.members) {
      if (keys.includes(key)) continue;
      faults.add(member.keyPlace, `unknown key \`${key.slice(0, 64)}\` in ${what}${didYouMean(key, keys)}`);
    }
  }

  get(key: string): YamlNode | undefined {
    return this.#map.members.get(key)?.value;
  }

  /** A required text: one line's worth of printable characters. */
  text(key: string, rule: TextRule): string {
    const node = this.#required(key, "a text");
    return node === undefined ? "" : this.#checkText(key, node, rule);
  }

  optionalText(key: string, rule: TextRule): string | undefined {
    const node = this.get(key);
    return node === undefined ? undefined : this.#checkText(key, node, rule);
  }

  /** A text that is code: any characters, bounds checked by its compiler. */
  source(key: string): YamlScalar | undefined {
    const node = this.get(key);
    if (node === undefined) return undefined;
    if (node.kind === "scalar" && typeof node.value === "string") return node;
    if (node.kind === "scalar" && typeof node.value === "boolean") return { ...node, value: String(node.value) };
    this.#faults.add(node.place, `expected \`${key}\` to be an expression, got ${describeNode(node)}`);
    return undefined;
  }

  choice<T extends string>(key: string, choices: readonly T[], fallback: T | undefined): T {
    const node = fallback === undefined ? this.#required(key, "one of its values") : this.get(key);
    if (node === undefined) return fallback ?? (choices[0] as T);
    const value = node.kind === "scalar" ? node.value : undefined;
    if (choices.includes(value as T)) return value as T;
    const got = typeof value === "string" ? `\`${value.slice(0, 64)}\`` : describeNode(node);
    const hint = typeof value === "string" ? didYouMean(value, choices) : "";
    this.#faults.add(node.place, `expected \`${key}\` to be ${choices.join(", ")}, got ${got}${hint}`);
    return choices[0] as T;
  }

  integer(key: string, min: number, max: number, fallback: number): number {
    const node = this.get(key);
    if (node === undefined) return fallback;
    const value = node.kind === "scalar" ? node.value : undefined;
    if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) return value;
    this.#faults.add(
      node.place,
      `expected \`${key}\` to be a whole number from ${min} to ${max}, got ${this.#got(node)}`,
    );
    return fallback;
  }

  flag(key: string, fallback: boolean): boolean {
    const node = this.get(key);
    if (node === undefined) return fallback;
    if (node.kind === "scalar" && typeof node.value === "boolean") return node.value;
    this.#faults.add(node.place, `expected \`${key}\` to be true or false, got ${this.#got(node)}`);
    return fallback;
  }

  /** RFC 3339 with a zone, as `YYYY-MM-DDTHH:MM:SS.mmmZ`, so that two of them compare as text. */
  instant(key: string, required: boolean): string | undefined {
    const node = required ? this.#required(key, "a time") : this.get(key);
    if (node === undefined) return undefined;
    const value = node.kind === "scalar" && typeof node.value === "string" ? node.value : "";
    const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/.test(value)
      ? Date.parse(value)
      : Number.NaN;
    if (!Number.isNaN(time)) return new Date(time).toISOString();
    this.#faults.add(
      node.place,
      `expected \`${key}\` to be a time like \`2026-12-31T00:00:00Z\`, got ${this.#got(node)}`,
    );
    return undefined;
  }

  /** The items of a list; an absent key is an empty one. */
  items(key: string): readonly YamlNode[] {
    const node = this.get(key);
    if (node === undefined) return [];
    if (node.kind === "list") return node.items;
    this.#faults.add(node.place, `expected \`${key}\` to be a list, got ${describeNode(node)}`);
    return [];
  }

  texts(key: string, rule: TextRule): readonly string[] {
    return this.items(key).map((node) => this.#checkText(key, node, rule));
  }

  json(key: string): Json | undefined {
    const node = this.get(key);
    return node === undefined ? undefined : toJson(node);
  }

  jsonObject(key: string): JsonObject {
    const node = this.get(key);
    if (node === undefined) return {};
    if (node.kind === "map") return toJson(node) as JsonObject;
    this.#faults.add(node.place, `expected \`${key}\` to be a mapping, got ${describeNode(node)}`);
    return {};
  }

  fault(key: string, message: string): void {
    this.#faults.add(this.get(key)?.place ?? this.place, message);
  }

  #required(key: string, what: string): YamlNode | undefined {
    const node = this.get(key);
    if (node === undefined) this.#faults.add(this.place, `expected \`${key}\` to be ${what}, got nothing`);
    return node;
  }

  #checkText(key: string, node: YamlNode, rule: TextRule): string {
    const value = node.kind === "scalar" && typeof node.value === "string" ? node.value.trim() : undefined;
    if (value === undefined || value === "") {
      this.#faults.add(node.place, `expected \`${key}\` to be a text, got ${this.#got(node)}`);
    } else if (value.length > rule.max) {
      this.#faults.add(node.place, `expected \`${key}\` of at most ${rule.max} characters, got ${value.length}`);
    } else if (hasUnprintable(value)) {
      this.#faults.add(node.place, `expected \`${key}\` to be printable, got a control or invisible character`);
    } else if (rule.pattern !== undefined && !rule.pattern.test(value)) {
      this.#faults.add(
        node.place,
        `expected \`${key}\` to be ${rule.shape ?? "well formed"}, got \`${value.slice(0, 64)}\``,
      );
    }
    return value ?? "";
  }

  #got(node: YamlNode): string {
    if (node.kind === "scalar" && typeof node.value === "string" && node.value !== "")
      return `\`${node.value.slice(0, 64)}\``;
    return node.kind === "scalar" && node.value === "" ? "an empty text" : describeNode(node);
  }
}

/** The root list `key` of a file that holds nothing else. */
export function readRootList(root: YamlNode, key: string, what: string, faults: Faults): YamlList["items"] {
  const reader = new MapReader(root, what, [key], faults);
  if (reader.get(key) === undefined) reader.fault(key, `expected \`${key}\` to be a list, got nothing`);
  return reader.items(key);
}
