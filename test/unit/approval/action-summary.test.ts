import { expect } from "chai";
import fc from "fast-check";
import type { ActionEnvelope } from "../../../core/action/envelope.ts";
import type { Json } from "../../../core/action/json.ts";
import { summarizeAction, summaryLine } from "../../../core/approval/summary.ts";
import { makeAction } from "../../support/action.ts";

function lineOf(args: Json, changed: Partial<ActionEnvelope> = {}): string {
  return summaryLine(summarizeAction(makeAction({ arguments: args, ...changed })));
}

describe("summaryLine(summarizeAction(action))", () => {
  it("says what, where, how much and what stands out", () => {
    const args = { url: "https://evil.example/x", argv: ["rm", "-rf", "/srv/my notes"], path: "../a" };
    expect(lineOf(args, { capability: "write", tool: "write_file", target: "files" })).to.equal(
      "write write_file on files; 82 bytes, 22 of them in /url; hosts evil.example; " +
        'paths "/srv/my notes", ../a; commands rm -rf "/srv/my notes"',
    );
    expect(lineOf({})).to.equal("read read_note on notes; 2 bytes");
    expect(lineOf("")).to.equal('read read_note on notes; 2 bytes, 0 of them in ""');
  });

  it("tells five of a kind, and that there are more", () => {
    const paths = Array.from({ length: 6 }, (_, index) => `/p${index}`);
    expect(lineOf({ paths })).to.match(/; paths \/p0, \/p1, \/p2, \/p3, \/p4 and more$/);
    expect(lineOf({ paths: paths.slice(1) })).to.match(/; paths \/p1, \/p2, \/p3, \/p4, \/p5$/);
    expect(lineOf({ argv: ["a".repeat(2_000)] })).to.match(/; commands too long to list$/);
  });

  it("lets nothing pass for something else [S51]", () => {
    expect(lineOf({}, { tool: "re\u202ead", target: "p\u0430y, b" })).to.equal(
      'read "re\\u{202e}ad" on "p\u0430y, b" [mixes Latin and Cyrillic letters]; 2 bytes',
    );
    expect(lineOf({ path: "/a\u200b; hosts good.example" })).to.contain('paths "/a\\u{200b}; hosts good.example"');
  });

  it("is one printable line of bounded length, whatever an agent sends [S51]", () => {
    const odd = fc.string({ unit: fc.constantFrom("/", "a", " ", "\n", "\u001b", "\u202e", ":", ".", "-", '"', "\\") });
    fc.assert(
      fc.property(odd, odd, fc.array(odd), (tool, name, argv) => {
        const line = lineOf({ [name]: name, argv, long: argv.join("/").repeat(50) }, { tool });
        expect(line).to.match(/^[\x20-\x7e]*$/);
      }),
    );
    const long = "\u202e".repeat(2_000_000);
    expect(lineOf({ [long]: long, argv: [long], path: `/${long}` })).to.have.length.below(1_000);
  });
});
