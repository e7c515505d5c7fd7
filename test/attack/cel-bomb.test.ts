import { expect } from "chai";
import type { Json } from "../../core/action/json.ts";
import { evaluate } from "../support/expression.ts";

const spent = "the expression spent more work than one evaluation may";

/** A needle that a search compares as a whole at each place of `aaa…`, since it differs in its middle alone. */
function hard(length: number): string {
  return `${"a".repeat(length / 2)}b${"a".repeat(length / 2 - 1)}`;
}

function periodic(length: number, period: string): string {
  return `${period.repeat(length / period.length)}!${period.repeat(length / period.length)}`;
}

function wide(members: number, name = "k"): Record<string, number> {
  return Object.fromEntries(Array.from({ length: members }, (_, index) => [`${name}${index}`, index]));
}

const long = "a".repeat(65_536);
const many = Array.from({ length: 4_000 }, (_, index) => index);
const needles = Array.from({ length: 100 }, () => hard(1_000));

/**
 * Arguments that make an ordinary expression slow where a function is cheaper by its price than by its work. Each takes
 * seconds to minutes where the work is not charged.
 */
const bombs: Readonly<Record<string, readonly [text: string, args: Json]>> = {
  "needles that cannot be skipped over": ["args.l.exists(n, args.t.contains(n))", { t: long, l: needles }],
  "the same, looked for from the end": [
    "args.l.exists(n, args.t.lastIndexOf(n) > 0)",
    { t: long, l: needles.map((needle) => `${"a".repeat(1_000)}${needle.at(0)}b`.slice(-1_000)) },
  ],
  "the same, by index": ["args.l.exists(n, args.t.indexOf(n) > 0)", { t: long, l: needles }],
  "a needle of a longer period": [
    "args.l.exists(n, args.t.contains(n))",
    { t: "abc".repeat(20_000), l: needles.map(() => periodic(480, "abc")) },
  ],
  "a needle in another script": [
    "args.l.exists(n, args.t.contains(n))",
    { t: "中".repeat(65_536), l: needles.map((needle) => needle.replaceAll("a", "中")) },
  ],
  "a needle as long as half of the text, replaced": [
    'args.l.all(i, args.t.replace(args.n, "").size() > 0)',
    { t: long, n: hard(32_768), l: many.slice(0, 100) },
  ],
  "a separator as long as half of the text": [
    "args.l.all(i, args.t.split(args.n).size() > 0)",
    { t: long, n: hard(32_768), l: many.slice(0, 100) },
  ],
  "globs around such a needle": ["args.l.exists(n, args.t.glob(n))", { t: long, l: needles.map((n) => `*${n}*`) }],
  "a glob of many such parts": [
    "args.l.exists(n, args.t.glob(n))",
    { t: long, l: needles.map(() => `*${hard(100)}`.repeat(10)) },
  ],
  "the size of a wide object in a loop": ["args.l.all(i, size(args.m) > 0)", { l: many, m: wide(4_000) }],
  "the same as a method, beside a limit": ["args.l.all(i, args.m.size() >= 1)", { l: many, m: wide(4_000) }],
  "wide objects of two sizes, compared": [
    "args.l.all(i, args.m != args.o)",
    { l: many, m: wide(3_000), o: wide(3_001) },
  ],
  "wide objects of one size that differ at once": [
    "args.l.all(i, args.m != args.o)",
    { l: many, m: wide(3_000), o: wide(3_000, "o") },
  ],
  "membership among wide objects": [
    "args.l.all(i, !(args.m in args.many))",
    { l: many.slice(0, 100), m: wide(100), many: Array.from({ length: 50 }, () => wide(101)) },
  ],
  "the first leaves of a wide object, to another limit each time": [
    "args.l.all(i, leaves(args.m, int(i) % 900).size() >= 0)",
    { l: many, m: wide(4_000) },
  ],
};

describe("a CEL bomb at run time", () => {
  for (const [what, [text, args]] of Object.entries(bombs)) {
    it(`ends with its budget, by counted work: ${what} [S27, S76]`, () => {
      expect(evaluate(text, args)).to.equal(spent);
    });
  }

  const honest: Readonly<Record<string, readonly [text: string, args: Json, value: Json]>> = {
    "400 searches of 64 kB": [
      "args.l.exists(n, args.t.contains(n))",
      { t: "lorem ipsum dolor sit amet ".repeat(2_427), l: many.slice(0, 400).map((index) => `word ${index}`) },
      false,
    ],
    "a needle of few repetitions": [
      'args.t.contains("-----BEGIN PRIVATE KEY-----")',
      { t: "-".repeat(1_000_000) },
      false,
    ],
    "a long needle that is there": ["args.t.contains(args.n)", { t: `${long}${hard(200)}`, n: hard(200) }, true],
    "a needle longer than the text": [
      'args.n.split(args.t).size() == 1 && "x".contains("xx")',
      { t: long, n: "a" },
      false,
    ],
    "a wide object, once": [
      "size(args.m) == 9000 && args.m == args.m && leaves(args.m).size() == 9000",
      { m: wide(9_000) },
      true,
    ],
    "a replaced word": ['args.t.replace("word", "").size()', { t: "word ".repeat(10_000) }, 10_000],
    "globs over paths": [
      'args.l.exists(p, p.glob("*/.ssh/*") || p.glob("*.pem"))',
      { l: many.map((index) => `/home/user/project/src/file-${index}.ts`) },
      false,
    ],
  };
  for (const [what, [text, args, value]] of Object.entries(honest)) {
    it(`is none where honest work is large: ${what}`, () => {
      const found = evaluate(text, args);
      expect(typeof found === "bigint" ? Number(found) : found).to.equal(value);
    });
  }
});
