import { expect } from "chai";
import fc from "fast-check";
import { canonicalSha256, canonicalSha256InTurns } from "../../../core/action/canonical-json.ts";
import { GatewayError } from "../../../core/action/error.ts";
import { fingerprint, fingerprintInTurns } from "../../../core/action/fingerprint.ts";
import { JoinedBytes } from "../../../core/action/joined-bytes.ts";
import type { Json } from "../../../core/action/json.ts";
import { sharedJson, sharedJsonInTurns } from "../../../core/action/json-pieces.ts";
import { type JsonBounds, parseJsonInTurns, parseStrictJson } from "../../../core/action/strict-json.ts";
import { Turns } from "../../../core/action/turns.ts";
import { makeAction } from "../../support/action.ts";

const long = "ź\ud83d\ude00 of a long text, ".repeat(50_000);
const wide = Object.fromEntries(
  Array.from({ length: 2_000 }, (_, at) => [`m${at % 7}-${at}`, [at, { b: long.slice(0, 500), a: null }]]),
);
const values: readonly Json[] = [{ b: long, a: [long] }, wide, [wide, long], "short", long];

describe("Turns", () => {
  let turns: Turns;
  let pauses = 0;
  beforeEach(() => {
    pauses = 0;
    turns = new Turns(
      async () => void pauses++,
      () => 0,
    );
  });

  it("lets others have the thread after half a megabyte, whatever it came in", async () => {
    const used: string[] = [];
    const piece = "x".repeat(200_000);
    await turns.each([piece, piece, piece, piece], (each) => void used.push(each));
    expect(pauses).to.equal(1);
    await turns.each([piece, piece], (each) => void used.push(each));
    expect(pauses).to.equal(2);
    expect(used).to.have.length(6);
    await turns.next();
    await turns.each([piece, piece], (each) => void used.push(each));
    expect(pauses).to.equal(3);
  });

  it("lets others have the thread after four milliseconds, whatever came of them", async () => {
    let now = 1;
    turns = new Turns(
      async () => void pauses++,
      () => now,
    );
    const use = (): void => {
      now += 1.5;
    };
    await turns.each(["a", "b"], use);
    expect(pauses).to.equal(0);
    now += 0.75;
    await turns.each(["", ""], use);
    expect(pauses).to.equal(0);
    now += 0.25;
    await turns.each(["", "", "c", "d"], use);
    expect(pauses).to.equal(1);
    await turns.each(["e"], use);
    expect(pauses).to.equal(2);
  });

  it("make the same digest, the same fingerprint and the same bytes", async () => {
    for (const value of values) {
      expect(await canonicalSha256InTurns(value, turns)).to.equal(canonicalSha256(value));
      expect(Buffer.from(await sharedJsonInTurns(value, turns)).equals(sharedJson(value))).to.equal(true);
      const action = makeAction({ arguments: { value } });
      for (const scope of ["exact", "task"] as const) {
        expect(await fingerprintInTurns(action, turns, scope)).to.equal(fingerprint(action, scope));
      }
    }
    expect(pauses).to.be.greaterThan(20);
  });
});

describe("parseJsonInTurns(data, bounds, turns) [S76]", () => {
  const bounds: JsonBounds = { depth: 12, nodes: 80_000, stringLength: 300_000, reader: "exact" };
  let turns: Turns;
  let pauses = 0;
  beforeEach(() => {
    pauses = 0;
    turns = new Turns(
      async () => void pauses++,
      () => 0,
    );
  });

  function atOnce(text: string): unknown {
    try {
      return parseStrictJson(text, bounds);
    } catch (cause) {
      return messageOf(cause);
    }
  }

  const inTurns = (text: string): Promise<unknown> => parseJsonInTurns(text, bounds, turns).catch(messageOf);
  /** The engine does not always say where a character is unexpected, and calls the end of a text one. */
  const withoutPlace = (said: unknown): unknown =>
    typeof said === "string" ? said.replace(/unexpected (character at offset \d+|character|end)$/, "unexpected") : said;

  function messageOf(cause: unknown): string {
    const { code, message } = GatewayError.from(cause);
    return `${code} ${message}`;
  }

  const filler = `[${'"0123456789 \\u00e9 \\n",12.5,{"a":true},'.repeat(9_000)}null]`;
  const around: readonly ((part: string) => string)[] = [
    (part) => `[${part},${filler}]`,
    (part) => `[${filler},${part}]`,
    (part) => `{"before":${filler},"part":${part},"text":"${"x".repeat(290_000)}"}`,
  ];

  it("reads the same value", async () => {
    for (const part of ["1", '"\\ud83d\\ude00"', '{"__proto__":{"a":1},"b":[]}', '[[],{}," "]', " \n 0.5\t"]) {
      for (const put of around) {
        const text = put(part);
        expect(await inTurns(text))
          .to.deep.equal(JSON.parse(text))
          .and.deep.equal(atOnce(text));
      }
    }
    expect(
      Object.hasOwn(((await inTurns(`[{"__proto__":1},${filler}]`)) as object[])[0] as object, "__proto__"),
    ).to.equal(true);
  });

  it("refuses the same with the same words but for a place, wherever it stands", async () => {
    const deep = `${"[".repeat(12)}${"]".repeat(12)}`;
    const twice = '{"k":1,"\\u006b":2}';
    const faults = [
      ...[
        twice,
        deep,
        `"${"y".repeat(300_001)}"`,
        `[${"0,".repeat(80_000)}0]`,
        "[1e400]",
        "-0",
        '"\\ud800"',
        '"\\u0000"',
      ],
      ...[
        '"\\x"',
        '"\u0001"',
        "01",
        "nul",
        "[1,]",
        '{"a"}',
        '{"a":1,}',
        "[",
        "]",
        "",
        '"never ended',
        "{} {}",
        "\ufeff1",
      ],
      // Two faults: the one that is found first is the same.
      ...[`[${twice},-0]`, `[${deep},${twice}]`, `[${twice},nul]`, `["\\x",${twice}]`],
    ];
    for (const part of faults) {
      for (const put of around) {
        const text = put(part);
        const expected = atOnce(text);
        expect(expected, part.slice(0, 40)).to.be.a("string");
        expect(withoutPlace(await inTurns(text)), part.slice(0, 40)).to.equal(withoutPlace(expected));
      }
    }
    expect(await inTurns(`\ufeff${filler}`)).to.equal("MALFORMED_JSON malformed JSON: expected no byte order mark");
    for (const text of [
      `${filler} ${filler}`,
      `{"k":1,"a":${filler},"k":2}`,
      `{"k":${filler},"a":1,"\\u006b":${filler}}`,
    ]) {
      expect(await inTurns(text))
        .to.equal(atOnce(text))
        .and.be.a("string");
    }
  });

  it("agrees about texts of which one character is another", async () => {
    const place = fc.tuple(fc.nat({ max: filler.length - 1 }), fc.constantFrom(...'"\\{}[]:,0-eu \n'));
    await fc.assert(
      fc.asyncProperty(place, async ([at, other]) => {
        const text = filler.slice(0, at) + other + filler.slice(at + 1);
        expect(withoutPlace(await inTurns(text))).to.deep.equal(withoutPlace(atOnce(text)));
      }),
      { numRuns: 60 },
    );
  });

  it("reads bytes, in one piece or in several, as it reads a text", async () => {
    for (const value of values) {
      for (const before of ["", " ", "  "]) {
        const bytes = Buffer.from(before + JSON.stringify(value));
        const pieces = new JoinedBytes(0);
        for (let at = 0; at < bytes.length; at += 70_001) pieces.add(bytes.subarray(at, at + 70_001));
        const loose = { ...bounds, stringLength: long.length };
        expect(await parseJsonInTurns(bytes, loose, turns)).to.deep.equal(value);
        expect(await parseJsonInTurns(pieces, loose, turns)).to.deep.equal(value);
      }
    }
  });

  it("refuses what is no UTF-8 wherever it stands, and half a pair of surrogates in a text", async () => {
    const said = "MALFORMED_JSON malformed JSON: expected UTF-8, got invalid bytes";
    const bytes = Buffer.from(filler);
    for (const end of [bytes.length - 4, 65_536, 65_535, 0]) {
      const broken = Buffer.from(bytes);
      broken[end] = 0xff;
      expect(await parseJsonInTurns(broken, bounds, turns).catch(messageOf)).to.equal(said);
      expect(
        await parseJsonInTurns(new JoinedBytes(0).add(bytes).add(broken), bounds, turns).catch(messageOf),
      ).to.equal(said);
    }
    expect(await inTurns(`[${filler},"\ud83d"]`)).to.equal(said);
    expect(await inTurns('["\ud83d"]')).to.equal(said);
  });

  it("lets others have the thread before, after each half of a megabyte of the scan, and of what is built", async () => {
    const text = Buffer.from(`[${'"0123456789",'.repeat(80_000)}0]`);
    await parseJsonInTurns(text, { ...bounds, nodes: 100_000 }, turns);
    // Before; amid the scan, and at its end; amid what is built.
    expect(pauses).to.equal(1 + 1 + 1 + 1);
  });

  it("joins no pieces that are in one already", async () => {
    const bytes = Buffer.from(`[${'"0123456789",'.repeat(80_000)}0]`);
    const joined = new JoinedBytes(bytes.length).add(bytes.subarray(0, 70_000)).add(bytes.subarray(70_000));
    await parseJsonInTurns(joined, { ...bounds, nodes: 100_000 }, turns);
    expect(pauses).to.equal(1 + 1 + 1 + 1);
  });

  it("scans no further than to what is refused, and builds nothing then", async () => {
    const deep = Buffer.from(`[${"[".repeat(12)}${"]".repeat(12)},${filler}]`);
    expect(await parseJsonInTurns(deep, bounds, turns).catch(messageOf)).to.include("expected at most 12 levels");
    expect(pauses).to.equal(1);
    pauses = 0;
    const text = Buffer.from(`[${filler},${filler},-0]`);
    expect(await parseJsonInTurns(text, bounds, turns).catch(messageOf)).to.include("negative zero");
    expect(pauses).to.equal(1 + Math.floor(text.length / 524_288));
  });

  it("reads a short one in one turn", async () => {
    expect(await inTurns('{"a":[1]}')).to.deep.equal({ a: [1] });
    expect(await inTurns('{"a":1,"a":2}')).to.equal(atOnce('{"a":1,"a":2}'));
    expect(pauses).to.equal(2);
  });
});
