import { createHash, randomBytes, randomUUID } from "node:crypto";
import { expect } from "chai";
import fc from "fast-check";
import { decodeValue } from "../../../core/store/value-decoding.ts";
import { encodeBytes, encodePieces, encodeValue } from "../../../core/store/value-encoding.ts";
import { quotedCodeLimit, stringWords, structureWords, valueWords } from "../../../core/store/value-word.ts";

const hash = (text: string): string => createHash("sha256").update(text).digest("hex");

/** Texts that look like what has a form of its own, and some that almost do. */
const atom = fc.oneof(
  fc.string({ unit: "binary" }).filter((text) => text.isWellFormed()),
  fc.constantFrom(...stringWords, ...valueWords, ...structureWords),
  fc.string().map(hash),
  fc.string().map((text) => hash(text).toUpperCase()),
  fc.string().map((text) => `sha256:${hash(text)}`),
  fc.string().map((text) => `session-v1-${hash(text)}`),
  fc.string().map((text) => `principal-v1-${hash(text)}`),
  fc.string().map((text) => `principal_v1-${hash(text)}`),
  fc.uuid(),
  fc.uuid().map((id) => id.toUpperCase()),
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
  fc.constantFrom(
    "2026-02-30T00:00:00.000Z",
    "1969-12-31T23:59:59.999Z",
    "2026-01-01T24:00:00.000Z",
    "-000001-01-01T00:00:00.000Z",
  ),
  fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes).toString("base64url")),
  fc.string({ minLength: 22, maxLength: 22 }),
  fc.constantFrom(",", 'a,"b', "\\", "\u00fa", "\u00ff", "ends with a comma,"),
);
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    atom,
    fc.integer(),
    fc.maxSafeInteger(),
    fc.double({ noNaN: true }),
    fc.constantFrom(null, true, false),
    fc.array(tie("value"), { maxLength: 5 }),
    fc.dictionary(fc.oneof(atom, fc.constantFrom(...stringWords)), tie("value"), { maxKeys: 8 }),
  ),
})).value;

describe("encodeValue(text), decodeValue(bytes)", () => {
  it("give back every text", () => {
    const texts = fc.oneof(
      json.map((value) => JSON.stringify(value)),
      fc.array(atom).map((atoms) => atoms.join('"')),
      fc.array(atom).map((atoms) => `{"${atoms.join(',"')}`),
      fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString("base64")),
      fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString("hex")),
    );
    fc.assert(
      fc.property(texts, (text) => {
        expect(decodeValue(encodeValue(text))).to.equal(text);
        const pieces = encodePieces(text);
        expect(pieces === undefined ? text : decodeValue(pieces)).to.equal(text);
      }),
      { numRuns: 3_000 },
    );
  });

  it("keep a text member by member as they keep it whole", () => {
    const member = fc.tuple(
      fc.constantFrom(...stringWords, "other", "a b"),
      fc.oneof(atom, fc.integer(), fc.constant(null)),
    );
    const objects = fc.array(member, { minLength: 4, maxLength: 8 }).map((members) => Object.fromEntries(members));
    fc.assert(
      fc.property(fc.array(fc.oneof(objects, json), { maxLength: 8 }), (values) => {
        for (const value of values) {
          // Twice: the second time with one member changed, beside which the others are copied.
          for (const time of ["2026-11-23T02:30:27.605Z", "2026-11-23T02:30:27.606Z"]) {
            const text = JSON.stringify({ id: hash(time), value, time, index: 7 });
            expect(encodeValue(text)).to.deep.equal(encodePieces(text) ?? Buffer.from(text));
          }
        }
      }),
      { numRuns: 1_000 },
    );
  });

  it("keep the base64 of bytes as they keep its text", () => {
    for (const length of [0, 1, 35, 36, 37, 1_000, 49_150, 49_152, 49_153]) {
      const bytes = randomBytes(length);
      expect(encodeBytes(Buffer.concat([Buffer.of(0), bytes]))).to.deep.equal(encodeValue(bytes.toString("base64")));
    }
  });

  it("keep base64 of any length as the bytes that it stands for", () => {
    const bytes = randomBytes(300_000);
    const text = bytes.toString("base64");
    expect(encodeBytes(Buffer.concat([Buffer.of(0), bytes]))).to.deep.equal(encodeValue(text));
    expect(encodeValue(text)).to.have.length(300_001);
    expect(decodeValue(encodeValue(text)) === text).to.equal(true);
    // As an earlier version kept it, and what only begins as base64 does.
    for (const other of [text, `${text}!`, `${text.slice(0, -2)}=A`]) {
      expect(decodeValue(Buffer.from(other)) === other).to.equal(true);
      expect(decodeValue(encodeValue(other)) === other).to.equal(true);
    }
  });

  it("read text of earlier versions as it is", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          atom,
          json.map((value) => JSON.stringify(value)),
        ),
        (text) => {
          expect(decodeValue(Buffer.from(text))).to.equal(text);
        },
      ),
    );
  });

  it("keep hashes, ids, times, salts, base64 and hex as the bytes that they stand for", () => {
    const record = {
      id: randomUUID(),
      prev_hash: hash("before"),
      salt: randomBytes(16).toString("base64url"),
      session: { id: `session-v1-${hash("session")}`, index: 7 },
      time: "2026-11-23T02:30:27.605Z",
      tool_definition: `sha256:${hash("tool")}`,
    };
    expect(encodeValue(JSON.stringify(record)).length).to.be.below(32 * 3 + 16 * 2 + 6 + 30);
    const bytes = randomBytes(300);
    expect(encodeValue(bytes.toString("base64")).length).to.equal(301);
    expect(encodeValue(bytes.toString("hex")).length).to.equal(301);
  });

  it("never throw, and give no value, for damaged bytes", () => {
    fc.assert(
      fc.property(json, fc.nat(), fc.uint8Array(), (value, at, noise) => {
        const bytes = encodePieces(JSON.stringify([value, noise.join()])) as Buffer;
        const cut = decodeValue(bytes.subarray(0, 1 + (at % (bytes.length - 1))));
        expect(cut).to.not.equal(JSON.stringify([value, noise.join()]));
        expect(decodeValue(Buffer.from([0xfa, ...noise]))).to.be.a("string");
        expect(decodeValue(Buffer.from([0xff, ...noise]))).to.be.a("string");
      }),
    );
  });

  it("keep long texts as they are", () => {
    const long = JSON.stringify({ text: ["a", '"'].join().repeat(40_000) });
    expect(encodeValue(long)).to.deep.equal(Buffer.from(long));
    const quotes = JSON.stringify(Array.from({ length: 30_000 }, () => ""));
    expect(decodeValue(encodeValue(quotes))).to.equal(quotes);
  });

  it("have a code of their own for each word", () => {
    const quoted = [...stringWords, ...valueWords];
    expect(new Set(quoted).size).to.equal(quoted.length);
    expect(quoted.length).to.be.at.most(quotedCodeLimit);
    expect(new Set(structureWords).size).to.equal(structureWords.length);
    expect(structureWords.length).to.be.below(0xfd);
  });
});
