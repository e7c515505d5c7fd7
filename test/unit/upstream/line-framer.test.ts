import { expect } from "chai";
import fc from "fast-check";
import { JoinedBytes } from "../../../core/action/joined-bytes.ts";
import { LineFramer } from "../../../core/upstream/stdio-pipe.ts";

function frame(maxBytes: number, chunks: readonly (string | Buffer)[]): readonly string[] {
  const seen: string[] = [];
  const framer = new LineFramer(maxBytes, {
    onLine: (line) => seen.push((line instanceof JoinedBytes ? line.bytes : line).toString("utf8")),
    onLongLine: (head, tail) => seen.push(`long ${head.length} ${tail.toString("utf8").slice(-3)}`),
    onEndlessLine: () => seen.push("endless"),
  });
  for (const chunk of chunks) framer.push(Buffer.from(chunk));
  return seen;
}

describe("LineFramer", () => {
  it("cuts at line ends, drops carriage returns and empty lines", () => {
    expect(frame(100, ["a\nb", "c\r\n\n\r\n", "d\n", "rest"])).to.deep.equal(["a", "bc", "d"]);
  });

  it("gives the same lines however the bytes arrive", () => {
    const lines = fc.array(
      fc.string({ unit: "grapheme" }).map((text) => text.replace(/[\r\n]/g, "")),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(lines, fc.array(fc.integer({ min: 1, max: 9 })), (texts, cuts) => {
        const bytes = Buffer.from(texts.map((text) => `${text}\n`).join(""));
        const chunks: Buffer[] = [];
        let at = 0;
        for (const cut of cuts) {
          chunks.push(bytes.subarray(at, at + cut));
          at += cut;
        }
        chunks.push(bytes.subarray(at));
        expect(frame(10_000, chunks)).to.deep.equal(texts.filter((text) => text !== ""));
      }),
    );
  });

  it("skips a line beyond the bound, keeps its two ends, and goes on", () => {
    expect(frame(300, ["x".repeat(200), "y".repeat(200), "abc\nnext\n"])).to.deep.equal(["long 256 abc", "next"]);
  });

  it("leaves a long line in its pieces, with its carriage return", () => {
    const part = "x".repeat(40_000);
    expect(frame(100_000, [part, part, "\r\n", "\r", "\n", "a\r", "\n"])).to.deep.equal([`${part}${part}\r`, "a"]);
  });

  it("takes a line of exactly the bound", () => {
    expect(frame(4, ["abcd\nabcde\n"])).to.deep.equal(["abcd", "long 5 cde"]);
  });

  it("gives up on a line of more than eight times the bound, once", () => {
    expect(
      frame(
        10,
        Array.from({ length: 50 }, () => "zzzzz"),
      ),
    ).to.deep.equal(["endless"]);
  });
});
