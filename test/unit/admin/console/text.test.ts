import { expect } from "chai";
import fc from "fast-check";
import type { Json } from "../../../../core/action/json.ts";
import { escapeHidden, quoteVisible, scriptNote, visibleJson } from "../../../../core/action/visible-text.ts";
import { hostileNames } from "../../../support/hostile-name.ts";
import { hostileArguments } from "../../../support/review-world.ts";

/** What the pages put texts through before they show them. */
interface PageText {
  readonly visible: (text: string) => string;
  readonly quoted: (text: string) => string;
  readonly scriptNote: (text: string) => string;
  readonly jsonLines: (value: Json) => Iterable<string>;
}

const anyText = fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) });
const oddText = fc.string({
  unit: fc.constantFrom(
    "a",
    "\\",
    "u",
    "{",
    "}",
    "5",
    '"',
    "\n",
    "\u202e",
    "\u200d",
    "\ud83d",
    "\ude00",
    "é",
    "\u0430",
  ),
});

describe("the text of the console's pages", () => {
  let page: PageText;
  before(async () => {
    const file = new URL("../../../../../core/admin/console/asset/text.js", import.meta.url);
    page = (await import(file.href)) as PageText;
  });

  it("is escaped as the gateway escapes it, whatever it is [S51] [S67]", () => {
    const check = (text: string): void => {
      expect(page.visible(text)).to.equal(escapeHidden(text));
      expect(page.quoted(text)).to.equal(quoteVisible(text));
      expect(page.scriptNote(text)).to.equal(scriptNote(text) ?? "");
    };
    for (const { text } of hostileNames) check(text);
    fc.assert(fc.property(fc.oneof(anyText, oddText), check));
  });

  it("has every character of Unicode that the gateway escapes [S51]", () => {
    const differing: string[] = [];
    // The planes that hold characters; what is unassigned in the others is tried above.
    const blocks = Array.from({ length: 0x10ff }, (_, at) => at).filter(
      (at) => at < 0x320 || at >>> 4 === 0xe0 || at === 0xfff,
    );
    for (const block of blocks) {
      // Apart, so that no two surrogates make a character.
      const text = Array.from({ length: 256 }, (_, at) => String.fromCodePoint(block * 256 + at)).join("|");
      if (page.visible(text) !== escapeHidden(text)) differing.push(block.toString(16));
    }
    expect(differing).to.deep.equal([]);
  });

  it("shows arguments line by line as the command line does, none left out [S51]", () => {
    const check = (value: Json): void => {
      expect([...page.jsonLines(value)].join("\n")).to.equal(visibleJson(value));
    };
    check(hostileArguments);
    check({ "p\u0430y": { "\u202e": [] }, list: [[], {}, [1, "p\u0430"]] });
    fc.assert(fc.property(fc.jsonValue(), (value) => check(value as Json)));
  });
});
