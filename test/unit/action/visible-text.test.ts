import { expect } from "chai";
import fc from "fast-check";
import { quoteVisible, scriptNote, visibleText } from "../../../core/action/visible-text.ts";
import { growthOf, maxGrowth } from "../../support/duration.ts";

const anyText = fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) });
const oddText = fc.string({
  unit: fc.constantFrom("a", "\\", "u", "{", "}", "5", "c", '"', "\n", "\u202e", "\u200d", "\ud83d", "\ude00", "é"),
});

function readVisible(shown: string): string {
  return shown.replace(/\\u\{([0-9a-f]+)\}/g, (_, code: string) => String.fromCodePoint(Number.parseInt(code, 16)));
}

/** Every escape at once: after `\\\\` a `u{` is only that. */
function readQuoted(shown: string): string {
  const short: Readonly<Record<string, string>> = { t: "\t", n: "\n", r: "\r" };
  return shown.slice(1, -1).replace(/\\(?:u\{([0-9a-f]+)\}|(.))/g, (_, code: string | undefined, char: string) => {
    return code === undefined ? (short[char] ?? char) : String.fromCodePoint(Number.parseInt(code, 16));
  });
}

describe("visibleText(text)", () => {
  const rows: readonly [name: string, from: number, to: number][] = [
    ["controls", 0x00, 0x1f],
    ["delete and the upper controls", 0x7f, 0xa0],
    ["the soft hyphen", 0xad, 0xad],
    ["the grapheme joiner", 0x34f, 0x34f],
    ["the Arabic letter mark", 0x61c, 0x61c],
    ["Hangul fillers", 0x115f, 0x1160],
    ["wide and narrow blanks, zero width and direction marks", 0x2000, 0x200f],
    ["line and paragraph separators, embeddings and overrides", 0x2028, 0x202f],
    ["the word joiner, isolates and deprecated formats", 0x205f, 0x206f],
    ["the blank of Braille", 0x2800, 0x2800],
    ["the ideographic space", 0x3000, 0x3000],
    ["lone surrogates", 0xd800, 0xdfff],
    ["private use", 0xe000, 0xf8ff],
    ["variation selectors", 0xfe00, 0xfe0f],
    ["the byte order mark", 0xfeff, 0xfeff],
    ["interlinear marks", 0xfff9, 0xfffb],
    ["non-characters", 0xfdd0, 0xfdef],
    ["the last of the first plane", 0xfffe, 0xffff],
    ["tags", 0xe0000, 0xe007f],
    ["more variation selectors", 0xe0100, 0xe01ef],
    ["the last planes", 0xf0000, 0x10ffff],
  ];
  for (const [name, from, to] of rows) {
    it(`shows ${name} as their codes [S51]`, () => {
      for (let code = from; code <= to; code += 1) {
        expect(visibleText(`a${String.fromCodePoint(code)}b`)).to.equal(`a\\u{${code.toString(16)}}b`);
      }
    });
  }

  it("leaves ordinary text of any language as it is", () => {
    const plain = 'a "quoted" C:\\users\\ann, naïve résumé, 日本語, שלום, مرحبا, हिन्दी, Ελληνικά, привет, 😀, e\u0301';
    for (const text of plain.split(", ")) expect(visibleText(text)).to.equal(text);
  });

  it("leaves nothing of a terminal's commands, and stays on one line [S51]", () => {
    expect(visibleText("\u001b[2J\u009b31m\r\nok\u001b]0;x\u0007")).to.equal(
      "\\u{1b}[2J\\u{9b}31m\\u{d}\\u{a}ok\\u{1b}]0;x\\u{7}",
    );
  });

  it("never shows two texts alike: what is shown can be read back [S51]", () => {
    expect(visibleText("\\u{202e}")).to.equal("\\u{5c}u{202e}");
    for (const texts of [anyText, oddText]) {
      fc.assert(
        fc.property(texts, (text) => {
          const note = scriptNote(text);
          const shown = visibleText(text);
          expect(readVisible(note === undefined ? shown : shown.slice(0, -note.length - 3))).to.equal(text);
          expect(readQuoted(quoteVisible(text))).to.equal(text);
        }),
        { numRuns: 500 },
      );
    }
  });

  it("says where Latin is mixed with letters that look like it [S51]", () => {
    expect(visibleText("p\u0430ypal.com")).to.equal("p\u0430ypal.com [mixes Latin and Cyrillic letters]");
    expect(visibleText("\u03bfmega")).to.equal("\u03bfmega [mixes Latin and Greek letters]");
    expect(visibleText("a\u0430\u03b1")).to.equal("a\u0430\u03b1 [mixes Latin and Cyrillic and Greek letters]");
    expect(visibleText("5 µs, 日本 km")).to.equal("5 µs, 日本 km");
  });

  const mebi = 1_048_576;
  const hostile: readonly [name: string, text: string][] = [
    ["overrides", "\u202e".repeat(mebi)],
    ["every other one an override", "a\u202e".repeat(mebi / 2)],
    ["tags", "\u{e0041}".repeat(mebi / 2)],
    ["lone surrogates", "\ud800".repeat(mebi)],
    ["backslashes", "\\u{".repeat(mebi / 3)],
    ["Cyrillic", "ж".repeat(mebi)],
    ["smileys and a line break", `${"😀".repeat(mebi / 2)}\n`],
  ];
  for (const [name, text] of hostile) {
    it(`shows a mebi of ${name} whole, in linear time [S51]`, async () => {
      expect(readVisible(visibleText(text)) === text).to.equal(true);
      expect(await growthOf((size) => text.slice(-size), visibleText, mebi / 4)).to.be.below(maxGrowth);
    });
  }
});

describe("quoteVisible(text)", () => {
  it("writes short escapes as JSON does, and the rest by code", () => {
    expect(quoteVisible('a"b\\c\nd\te\rf\u0000g\u202eh/')).to.equal('"a\\"b\\\\c\\nd\\te\\rf\\u{0}g\\u{202e}h/"');
    expect(quoteVisible("\\u{202e}")).to.equal('"\\\\u{202e}"');
  });

  it("is JSON where nothing is hidden", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary-ascii" }), (text) => {
        const seen = text.replace(/[^\x20-\x7e\t\n\r]/g, "");
        expect(JSON.parse(quoteVisible(seen))).to.equal(seen);
      }),
    );
  });
});
