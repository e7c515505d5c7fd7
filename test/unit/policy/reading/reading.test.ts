import { expect } from "chai";
import fc from "fast-check";
import { withOutput } from "../../../../core/action/envelope.ts";
import type { Json } from "../../../../core/action/json.ts";
import type { Policy, Verdict } from "../../../../core/action/policy.ts";
import { findRedactionFault, mergeRedactions, redactOutput } from "../../../../core/action/redaction.ts";
import { judgeAnswer, scanAnswer } from "../../../../core/policy/reading/judge-reading.ts";
import { scanOutput, scanOutputInTurns } from "../../../../core/policy/reading/output-scan.ts";
import { plainCharacter } from "../../../../core/policy/reading/plain-character.ts";
import { OddSearch, oddRanges, reach } from "../../../../core/policy/reading/plain-text.ts";
import { turnsOf } from "../../../../core/store/pace.ts";
import { makeAction } from "../../../support/action.ts";
import { growthOf, maxGrowth } from "../../../support/duration.ts";
import { findSecret, secret } from "../../../support/secret.ts";

/** Redacts the secret in every text of an answer, `as_read` included. */
const finder: Policy = {
  ref: { kind: "external", name: "finder", version: "1", digest: "", signer: null },
  mode: "enforce",
  evaluate: ({ output }): Verdict => ({
    decision: "abstain",
    findings: [],
    risk: 0,
    redactions: findSecret(output as Json, "/output"),
  }),
};

function shown(output: Json): Json {
  const judged = withOutput(makeAction(), output);
  const scan = scanAnswer(judged);
  if (scan === undefined) return output;
  const { redactions = [] } = judgeAnswer(finder, judged, scan) as Verdict;
  const merged = mergeRedactions(redactions);
  expect(findRedactionFault(output, merged)).to.equal(undefined);
  return redactOutput(output, merged);
}

/** Characters that are read as this one. */
function spellingsOf(letter: string): readonly string[] {
  const code = letter.charCodeAt(0);
  const math = /\d/.test(letter) ? 0x1d7ce + code - 0x30 : 0x1d400 + code - 0x41;
  return [
    letter,
    String.fromCodePoint(code + 0xfee0),
    String.fromCodePoint(math),
    `${letter}\u200b`,
    `${letter}\u0332`,
  ];
}

const spelled = fc
  .tuple(...Array.from(secret, (letter) => fc.constantFrom(...spellingsOf(letter))))
  .map((letters) => letters.join(""));
const filler = fc.string({ unit: fc.constantFrom("a ", "é ", "😀 ", "数", "\u200b", " "), maxLength: 30 });

describe("scanOutputInTurns(output, turns)", () => {
  it("finds what scanOutput finds", async () => {
    const texts = fc.string({ unit: fc.constantFrom("a", "b1", "\u0430", "\u200b", "é"), maxLength: 6 });
    const { answer } = fc.letrec<{ answer: Json; inner: Json }>((tie) => ({
      answer: fc.dictionary(fc.oneof(texts, fc.constantFrom("text", "choices", "content")), tie("inner"), {
        maxKeys: 4,
      }),
      inner: fc.oneof({ maxDepth: 4 }, texts, fc.constantFrom(null, 1, ""), fc.array(tie("inner")), tie("answer")),
    }));
    let pauses = 0;
    const turns = turnsOf(async () => void pauses++);
    await fc.assert(
      fc.asyncProperty(answer, async (output) => {
        const wide = {
          output,
          more: Array(40_000).fill("ab"),
          long: `${"ab ".repeat(30_000)}p\u0430y ${"é".repeat(40_000)}`,
        };
        expect(await scanOutputInTurns(wide, turns)).to.deep.equal(scanOutput(wide));
      }),
      { numRuns: 40 },
    );
    expect(pauses).to.be.at.least(40);
  });
});

describe("OddSearch", () => {
  it("finds what oddRanges finds, whatever its steps", () => {
    const units = fc.constantFrom(
      "a",
      "word ",
      "1",
      " ",
      "\u0430",
      "\u200b",
      "é",
      "\ud835\udc00",
      "\ud835",
      "n".repeat(40),
    );
    fc.assert(
      fc.property(fc.array(units, { maxLength: 60 }), fc.integer({ min: 1, max: 80 }), (parts, step) => {
        const text = parts.join("");
        const search = new OddSearch(text);
        let steps = 1;
        while (!search.run(step)) steps++;
        expect(search.ranges()).to.deep.equal(oddRanges(text));
        expect(steps).to.be.at.most(Math.ceil(text.length / step) + 1);
      }),
    );
  });
});

describe("oddRanges(text)", () => {
  it("finds a look-alike wherever it stands in a word, and nothing in letters of other scripts", () => {
    for (let before = 0; before < 100; before++) {
      const text = `${"\u0142".repeat(before % 3)}${"a".repeat(before)}\u0430b${"c".repeat(10_000)}`;
      const [range, ...more] = oddRanges(text);
      expect(more, text.slice(0, 110)).to.deep.equal([]);
      const place = text.indexOf("\u0430");
      expect(range?.from === 0 && place < range.to && range.to <= place + 1 + reach, `${before}`).to.equal(true);
    }
    for (const text of ["\u017c\u00f3\u0142w ", "\u6f22\u5b57, ", "plain\t text\r\n", "\ud83d\ude00 "]) {
      expect(oddRanges(text.repeat(5_000)), text).to.deep.equal([]);
    }
  });

  it("finds one behind others of its script, and one of which a half stood alone before", () => {
    for (const letters of ["\u0436", "\u0436 ".repeat(40), "\u0436".repeat(70_000)]) {
      expect(oddRanges(letters)).to.deep.equal([]);
      expect(oddRanges(`${letters}a\u0430`), `${letters.length}`).to.have.length(1);
    }
    expect(oddRanges("\ud835 \udc00".repeat(50))).to.deep.equal([]);
    expect(oddRanges("\u017c\ud835\udc00")).to.have.length(1);
  });
});

describe("the reading of an answer", () => {
  it("cuts exactly what a secret was written with, whatever its characters and the text around it", () => {
    fc.assert(
      fc.property(filler, spelled, filler, (before, text, after) => {
        fc.pre(scanAnswer(withOutput(makeAction(), { text })) !== undefined);
        const { text: left } = shown({ text: `${before} ${text} ${after}` }) as { readonly text: string };
        // A mark on the last letter is no part of the find.
        expect(left.replace(/\[key\](?:\u200b|\u0332)?/, "[key]")).to.equal(`${before} [key] ${after}`);
      }),
    );
  });

  it("cuts a secret out of every part of a list that holds some of it", () => {
    fc.assert(
      fc.property(
        filler,
        fc.array(fc.nat(secret.length), { minLength: 1, maxLength: 4 }),
        filler,
        (before, cuts, after) => {
          const ends = [...new Set([...cuts, secret.length])].sort((a, b) => a - b);
          const parts = ends.map((end, index) => secret.slice(ends[index - 1] ?? 0, end)).filter((part) => part !== "");
          const texts = parts.map((part, index) => {
            return `${index === 0 ? before : ""}${part}${index === parts.length - 1 ? after : ""}`;
          });
          fc.pre(texts.length > 1);
          const { content } = shown({ content: texts.map((text) => ({ text })) }) as {
            readonly content: readonly { readonly text: string }[];
          };
          expect(content.map(({ text }) => text).join("")).to.equal(`${before}[key]${after}`);
        },
      ),
    );
  });

  it("sees nothing more in what is written in plain characters, or in the letters of other languages", () => {
    for (const text of ["", "plain\ttext\n", "Grüße, да, 数据", "— “quoted” … ✔ 👍🏽", "a\u00a0b"]) {
      expect(scanAnswer(withOutput(makeAction(), { text, list: [{ text }], one: [text] })), text).to.equal(undefined);
    }
  });

  it("takes a digit of any script for its value", () => {
    const values = Array.from({ length: 0x110000 }, (_, code) => code)
      .filter((code) => code > 0x7f && !(code >= 0xd800 && code < 0xe000) && /\p{Nd}/u.test(String.fromCodePoint(code)))
      .map((code) => plainCharacter(code)?.text);
    expect(values.length).to.be.above(600);
    expect(values).to.deep.equal(values.map((_, index) => String(index % 10)));
  });

  it("takes time that grows with the answer alone", async () => {
    const shapes: Readonly<Record<string, (size: number) => Json>> = {
      "odd characters": (size) => ({ text: "４\u200b1 ".repeat(size) }),
      "odd characters far apart": (size) => ({ text: `${"x".repeat(9_000)}４`.repeat(size / 40) }),
      "many parts": (size) => ({ content: Array.from({ length: size }, () => ({ text: "4" })) }),
      "odd names": (size) => Object.fromEntries(Array.from({ length: size }, (_, index) => [`４${index}`, 1])),
    };
    for (const [name, make] of Object.entries(shapes)) {
      const growth = await growthOf(make, (output) => void shown(output), 4_000);
      expect(growth, name).to.be.below(maxGrowth);
    }
  });
});
