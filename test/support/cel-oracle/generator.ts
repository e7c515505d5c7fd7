import type { Json, JsonObject } from "../../../core/action/json.ts";
import { SeededRandom } from "../detection/random.ts";

const texts = [
  ...["", "a", "abc", "/etc/passwd", "%2e%2E%252f", "é😀x", "\ud800", "A-b_C", "12", "-7", "1.5e3", "true", "a,b,,c"],
  ...[
    "2026-01-02T03:04:05.678Z",
    "2026-12-31T23:59:59+02:00",
    "1h30m",
    "-1.5s",
    "Europe/Paris",
    "-05:30",
    "x".repeat(200),
  ],
  ...["select * FROM users", "K\u212a\u017f", "line\nbreak", "constructor", "__proto__"],
];
const patterns = [
  ...[
    "a",
    "^a",
    "[a-z]+[0-9]?",
    "(?i)SELECT .*from",
    "\\\\.\\\\.",
    "é|😀",
    "(?i)k+s*",
    "[^a-z]",
    ".",
    "(a|b)*c$",
    "\\\\bx",
    "",
  ],
];
const ints = ["0", "1", "-1", "2", "7", "9223372036854775807", "-9223372036854775808", "400"];
const doubles = ["0.0", "1.0", "-2.5", "1e30", "0.1", "3.0", "9007199254740993.0"];
const fields = ["s", "t", "n", "m", "b", "z", "l", "o", "constructor", "__proto__", "gone"];
const parts = ["getFullYear", "getMonth", "getDayOfYear", "getDayOfWeek", "getHours", "getMilliseconds", "getSeconds"];

type Kind = "bool" | "int" | "double" | "text" | "list" | "map" | "time" | "span" | "json";
const kinds: readonly Kind[] = ["bool", "int", "double", "text", "list", "map", "time", "span", "json"];

/** Writes random expressions and arguments for them: the same for the same seed. */
export class ExpressionGenerator {
  readonly #dice: SeededRandom;
  #loops: string[] = [];

  constructor(seed: number) {
    this.#dice = new SeededRandom(seed * 1_000_003);
  }

  expression(): string {
    this.#loops = [];
    return this.#write(this.#chance(0.8) ? "bool" : this.#pick(kinds), 4);
  }

  /** Any budget that an evaluation may have; most suffice. */
  units(): number {
    return this.#chance(0.6) ? 500_000 : Math.floor((this.#dice.below(1_000) / 1_000) ** 3 * 3_000);
  }

  args(): JsonObject {
    const value = Object.fromEntries(fields.slice(0, -1).map((name) => [name, this.#json(3)]));
    const own = { ...value, s: this.#pick(texts), l: this.#items(2), n: this.#number() };
    // As a caller's JSON defines it: an own member.
    return JSON.parse(JSON.stringify(own).replace('"t":', '"__proto__":1,"t":')) as JsonObject;
  }

  #json(depth: number): Json {
    const kind = this.#dice.below(depth > 0 ? 7 : 5);
    if (kind === 0) return null;
    if (kind === 1) return this.#chance(0.5);
    if (kind === 2) return this.#number();
    if (kind <= 4) return this.#pick(texts).replace("\ud800", "?");
    if (kind === 5) return this.#items(depth - 1);
    return Object.fromEntries(["s", "n", "constructor", "x y"].map((name) => [name, this.#json(depth - 1)]));
  }

  #items(depth: number): readonly Json[] {
    return Array.from({ length: this.#dice.below(5) }, () => this.#json(depth));
  }

  #number(): number {
    return this.#pick([0, 1, -1, 2.5, 3, 1e21, 400, -0]);
  }

  #chance(share: number): boolean {
    return this.#dice.below(1_000) < share * 1_000;
  }

  #pick<T>(from: readonly T[]): T {
    return this.#dice.pick(from);
  }

  /** Writes an expression that is likely of this kind; every tenth is of another. */
  #write(kind: Kind, depth: number): string {
    const wanted = this.#chance(0.06) ? this.#pick(kinds) : kind;
    if (depth <= 0) return this.#leaf(wanted);
    if (this.#chance(0.05)) return `(${this.#write("bool", depth - 1)} ? ${this.#two(wanted, depth, " : ")})`;
    return this.#chance(0.2) ? this.#leaf(wanted) : this.#call(wanted, depth - 1);
  }

  #two(kind: Kind, depth: number, between: string): string {
    return `${this.#write(kind, depth - 1)}${between}${this.#write(kind, depth - 1)}`;
  }

  #leaf(kind: Kind): string {
    if (this.#loops.length > 0 && this.#chance(0.4)) return this.#pick(this.#loops);
    if (kind === "bool")
      return this.#pick(["true", "false", "args.b", "has(args.gone)", "has(args.z)", "has(args.o.s)"]);
    if (kind === "int") return this.#pick(ints);
    if (kind === "double") return this.#pick([...doubles, "args.n", "args.m"]);
    if (kind === "text") return this.#pick(["args.s", "args.t", "tool", "args.o.s", this.#literal(this.#pick(texts))]);
    if (kind === "list")
      return this.#pick(["args.l", "[]", "[1, 1.0, 'a']", "settings.paths", "facts.hosts", "history"]);
    if (kind === "map")
      return this.#pick(["args", "args.o", "{}", "{1: 'a', 'b': 2.0, true: null}", "session", "client"]);
    if (kind === "time") return this.#pick(["now", "timestamp('2026-01-02T03:04:05.678Z')", "timestamp(86400000)"]);
    if (kind === "span") return this.#pick(["duration('1h30m')", "duration('-1.5s')", "duration(60)"]);
    return this.#pick([
      ...fields.map((name) => `args.${name}`),
      "task",
      "null",
      "ticket.id",
      "session_state.risk",
      "facts.effect",
    ]);
  }

  #literal(text: string): string {
    return JSON.stringify(text.replace("\ud800", "?"));
  }

  #call(kind: Kind, depth: number): string {
    const one = (wanted: Kind): string => this.#write(wanted, depth);
    // Brackets only where they are needed: the parser's work doubles with each level.
    const method = (wanted: Kind): string => one(wanted).replace(/^[-!\d].*$/s, "($&)");
    const any = (): string => one(this.#pick(kinds));
    const choices: Readonly<Record<Kind, readonly (() => string)[]>> = {
      bool: [
        () => `(${one("bool")} && ${one("bool")})`,
        () => `(${one("bool")} || ${one("bool")})`,
        () => `!${method("bool")}`,
        () => `(${this.#same(depth)})`,
        () => `(${this.#ordered(depth)})`,
        () => `(${any()} in ${one(this.#pick(["list", "map"]))})`,
        () => `${method("text")}.${this.#pick(["contains", "startsWith", "endsWith", "glob"])}(${one("text")})`,
        () => `${method("text")}.matches("${this.#pick(patterns)}")`,
        () => `${method("text")}.matches(${one("text")})`,
        () => this.#loop(this.#pick(["exists", "all", "exists_one"]), depth),
        () => `has(${method("map")}.${this.#pick(fields)})`,
      ],
      int: [
        () => `(${one("int")} ${this.#pick(["+", "-", "*", "/", "%"])} ${one("int")})`,
        () => `-(${one("int")})`,
        () => `size(${one(this.#pick(["text", "list", "map"]))})`,
        () => `${method(this.#pick(["text", "list", "map"]))}.size()`,
        () => `int(${one(this.#pick(["text", "double", "int", "time", "span"]))})`,
        () => `${method("text")}.${this.#pick(["indexOf", "lastIndexOf"])}(${one("text")})`,
        () =>
          `${method(this.#pick(["time", "span"]))}.${this.#pick(parts)}(${this.#pick(["", "", "'-05:30'", "'+02:00'"])})`,
      ],
      double: [
        () => `(${one("double")} ${this.#pick(["+", "-", "*", "/"])} ${one("double")})`,
        () => `-(${one("double")})`,
        () => `double(${one(this.#pick(["text", "int", "double"]))})`,
      ],
      text: [
        () => `(${one("text")} + ${one("text")})`,
        () => `${method("text")}.${this.#pick(["lowerAscii", "upperAscii", "trim", "unescaped"])}()`,
        () => `${method("text")}.replace(${one("text")}, ${one("text")})`,
        () => `${method("text")}.substring(${one("int")})`,
        () => `${method("text")}.substring(${one("int")}, ${one("int")})`,
        () => `${method("text")}.charAt(${one("int")})`,
        () => `string(${any()})`,
        () => `${method("list")}.join(${this.#pick(["", "'-'"])})`,
        () => `${method("list")}[${one("int")}]`,
        () => `${method("list")}.map(each, string(each)).join("|")`,
      ],
      list: [
        () => `[${any()}, ${any()}]`,
        () => `(${one("list")} + ${one("list")})`,
        () => `${method("text")}.split(${one("text")})`,
        () => `${method("list")}.${this.#pick(["distinct", "flatten"])}()`,
        () => `leaves(${one(this.#pick(["map", "json"]))})`,
        () => `leaves(${one("map")}, ${one("int")})`,
        () => this.#loop(this.#pick(["filter", "map"]), depth),
      ],
      map: [
        () => `{${any()}: ${any()}, ${one("text")}: ${any()}}`,
        () => `${method("list")}[${one("int")}]`,
        () => `${method("map")}.${this.#pick(fields)}`,
      ],
      time: [
        () => `timestamp(${one(this.#pick(["text", "int", "time"]))})`,
        () => `(${one("time")} ${this.#pick(["+", "-"])} ${one("span")})`,
        () => `(${one("span")} + ${one("time")})`,
      ],
      span: [
        () => `duration(${one(this.#pick(["text", "int", "span"]))})`,
        () => `(${one("time")} - ${one("time")})`,
        () => `(${one("span")} ${this.#pick(["+", "-"])} ${one("span")})`,
      ],
      json: [
        () => `${method("map")}.${this.#pick(fields)}`,
        () => `${method(this.#pick(["map", "list"]))}[${any()}]`,
        () => `args.o.${this.#pick(fields)}`,
      ],
    };
    return this.#pick(choices[kind])();
  }

  #same(depth: number): string {
    const kind = this.#pick(kinds);
    return `${this.#write(kind, depth)} ${this.#pick(["==", "!="])} ${this.#write(kind, depth)}`;
  }

  #ordered(depth: number): string {
    const [left, right] = this.#pick<readonly [Kind, Kind]>([
      ["int", "int"],
      ["double", "int"],
      ["int", "double"],
      ["text", "text"],
      ["time", "time"],
      ["span", "span"],
      ["bool", "bool"],
      ["json", "int"],
    ]);
    return `${this.#write(left, depth)} ${this.#pick(["<", "<=", ">", ">="])} ${this.#write(right, depth)}`;
  }

  #loop(macro: string, depth: number): string {
    const range = this.#write(this.#pick(["list", "map", "json"]), depth).replace(/^[-!\d].*$/s, "($&)");
    const variable = this.#pick(["x", "y", "x", "tool"]);
    this.#loops.push(variable);
    const body = this.#write(macro === "map" ? this.#pick(kinds) : "bool", depth);
    const taken = macro === "map" && this.#chance(0.3) ? `${this.#write("bool", depth)}, ` : "";
    this.#loops.pop();
    return `${range}.${macro}(${variable}, ${taken}${body})`;
  }
}
