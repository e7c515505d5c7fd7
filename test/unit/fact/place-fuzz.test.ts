import { expect } from "chai";
import fc from "fast-check";
import { readAddress } from "../../../core/fact/address.ts";
import { readPath } from "../../../core/fact/path.ts";
import { readUrl } from "../../../core/fact/url.ts";
import { factCorpus } from "../../support/fact-corpus.ts";
import { roundsOf } from "../../support/rounds.ts";

const marks = [..."/\\.:@#?%~$[]()<>\"',; \t\n\0-_+0123456789abcdefx", "//", "..", "%2e", "%252f", "%c0%ae", "::ffff:"];
const letters = ["\u3002", "\uff0f", "\u2024", "\u2460", "\u0430", "\u00df", "\u200b", "\u202e", "\ud800", "\u{1d7cf}"];
const words = [
  "http://",
  "https:",
  "file:///",
  "127.0.0.1",
  "localhost",
  "good.example",
  "/workspace/",
  "xn--",
  "mailto:",
];
const known = ["url", "path"].flatMap((kind) => factCorpus(kind).map(({ input }) => input));

/** Texts of the corpora with something put into them, and texts of what the parsers look for. */
const hostileText = fc.oneof(
  fc.array(fc.constantFrom(...marks, ...letters, ...words), { maxLength: 24 }).map((parts) => parts.join("")),
  fc
    .tuple(fc.constantFrom(...known), fc.nat(), fc.constantFrom(...marks, ...letters, ...words))
    .map(([text, at, part]) => text.slice(0, at % (text.length + 1)) + part + text.slice(at % (text.length + 1))),
  fc.string({ maxLength: 40, unit: "binary" }),
);
const numRuns = roundsOf(2_000, 100_000);

describe("the parsers of places, for any text", () => {
  it("returns of a URL that is not odd what any reader of RFC 3986 finds", () => {
    fc.assert(
      fc.property(hostileText, (text) => {
        const { scheme, host, odd, zone } = readUrl(text);
        if (odd || !/^https?$/.test(scheme) || (zone !== "public" && zone !== "name")) return;
        const authority = /^https?:\/\/(?:[^@/?#\\]*@)?([^@:/?#\\[\]]+|\[[0-9a-fA-F:.]+\])(?::\d+)?(?=[/?#]|$)/i.exec(
          text,
        )?.[1];
        expect(new URL(`http://${authority}`).hostname).to.equal(host.includes(":") ? `[${host}]` : host);
      }),
      { numRuns },
    );
  });

  it("returns of a path inside what POSIX resolves to the same place", () => {
    fc.assert(
      fc.property(hostileText, (text) => {
        const { plain, inside, odd } = readPath(text, "/workspace");
        if (odd || !inside) return;
        expect(plain === "/workspace" || plain.startsWith("/workspace/")).to.equal(true);
        expect(plain).to.not.match(/[\\\0]|\/\.{1,2}(?:\/|$)|\/\//);
        expect(readPath(plain, "/workspace")).to.deep.equal({ plain, inside, odd });
      }),
      { numRuns },
    );
  });

  it("returns of an address that is not odd one whose plain form is its own", () => {
    fc.assert(
      fc.property(hostileText, (text) => {
        const { plain, odd } = readAddress(text);
        if (!odd) expect(readAddress(plain).plain).to.equal(plain);
      }),
      { numRuns },
    );
  });
});
