import { expect } from "chai";
import fc from "fast-check";
import type { Redaction } from "../../../core/action/policy.ts";
import { mergeRedactions, readRedaction } from "../../../core/action/redaction.ts";

const one: Redaction = { rule: "p.r", pointer: "/output/a", start: 0, end: 3, replacement: "[r]" };

describe("readRedaction(value)", () => {
  it("reads a frozen redaction of its own making", () => {
    const read = readRedaction(one);
    expect(read).to.deep.equal(one);
    expect(read).not.to.equal(one);
    expect(Object.isFrozen(read)).to.equal(true);
    expect(readRedaction({ ...one, replacement: "", pointer: "/output/~0/~1/" })).to.be.an("object");
  });

  const wrong: readonly (readonly [name: string, value: unknown, expected: string])[] = [
    ["nothing", null, "an object"],
    ["a list", [one], "known members"],
    ["another member", { ...one, text: "x" }, "known members"],
    ["no rule", { ...one, rule: "" }, "a rule"],
    ["a rule that is too long", { ...one, rule: "r".repeat(129) }, "a rule"],
    ["the whole output", { ...one, pointer: "/output" }, "below `/output`"],
    ["an argument", { ...one, pointer: "/arguments/a" }, "below `/output`"],
    ["a neighbour of the output", { ...one, pointer: "/outputs/a" }, "below `/output`"],
    ["an escape that is none", { ...one, pointer: "/output/~2" }, "below `/output`"],
    ["a pointer that is too long", { ...one, pointer: `/output/${"a".repeat(1_024)}` }, "below `/output`"],
    ["a lone surrogate", { ...one, pointer: "/output/\ud800" }, "below `/output`"],
    ["nothing between start and end", { ...one, start: 3 }, "`start` below `end`"],
    ["an end before the start", { ...one, start: 4 }, "`start` below `end`"],
    ["half a byte", { ...one, end: 1.5 }, "whole byte offsets"],
    ["a start before the text", { ...one, start: -1 }, "whole byte offsets"],
    ["an offset that is a text", { ...one, end: "3" }, "whole byte offsets"],
    ["an end that no integer holds", { ...one, end: 2 ** 53 }, "whole byte offsets"],
    ["a replacement that is too long", { ...one, replacement: "x".repeat(65) }, "64 printable"],
    ["a line break", { ...one, replacement: "a\n" }, "64 printable"],
    ["what is not ASCII", { ...one, replacement: "…" }, "64 printable"],
    ["no replacement", { ...one, replacement: undefined }, "64 printable"],
  ];
  for (const [name, value, expected] of wrong) {
    it(`says what it expected instead of ${name}`, () => expect(readRedaction(value)).to.include(expected));
  }
});

describe("mergeRedactions(redactions)", () => {
  const spans = fc.array(
    fc.record({
      pointer: fc.constantFrom("/output/a", "/output/b"),
      start: fc.nat(30),
      length: fc.integer({ min: 1, max: 8 }),
    }),
    { maxLength: 12 },
  );
  const redactions = spans.map((list) =>
    list.map(({ pointer, start, length }, at) => ({
      ...one,
      rule: `p.r${at}`,
      pointer,
      start,
      end: start + length,
    })),
  );

  it("gives what a reader gets who joins any two that overlap until none do", () => {
    fc.assert(
      fc.property(redactions, (list) => {
        const merged = mergeRedactions(list);
        expect(merged).to.have.deep.members(joinedByHand(list)).and.have.length(joinedByHand(list).length);
        expect(merged.every((each, at) => at === 0 || isBefore(merged[at - 1] as Redaction, each))).to.equal(true);
      }),
    );
  });

  it("leaves apart what only touches", () => {
    const list = [one, { ...one, start: 3, end: 5 }];
    expect(mergeRedactions(list)).to.deep.equal(list);
  });

  it("lets the first in the order of the chain name what a later one joins", () => {
    const [first, bridge] = [
      { ...one, rule: "p.first", start: 6, end: 9 },
      { ...one, rule: "q.bridge", start: 2, end: 7 },
    ];
    const joined = [{ ...first, start: 0, end: 9 }];
    expect(mergeRedactions([first, bridge, { ...one, rule: "r.last" }])).to.deep.equal(joined);
  });
});

function joinedByHand(list: readonly Redaction[]): readonly Redaction[] {
  for (const [at, a] of list.entries()) {
    const other = list.findIndex(
      (b, index) => index > at && b.pointer === a.pointer && a.start < b.end && b.start < a.end,
    );
    const b = list[other];
    if (b === undefined) continue;
    const joined = { ...a, start: Math.min(a.start, b.start), end: Math.max(a.end, b.end) };
    return joinedByHand(list.with(at, joined).toSpliced(other, 1));
  }
  return list;
}

function isBefore(a: Redaction, b: Redaction): boolean {
  return a.pointer === b.pointer ? a.end <= b.start : a.pointer < b.pointer;
}
