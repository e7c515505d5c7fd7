import { expect } from "chai";
import { canonicalSha256, canonicalSha256InTurns } from "../../../core/action/canonical-json.ts";
import { fingerprint, fingerprintInTurns } from "../../../core/action/fingerprint.ts";
import type { Json } from "../../../core/action/json.ts";
import { sharedJson, sharedJsonInTurns } from "../../../core/action/json-pieces.ts";
import { decodeJsonInTurns, parseStrictJson } from "../../../core/action/strict-json.ts";
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
    turns = new Turns(async () => void pauses++);
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

  it("decode the same text, and refuse what is no UTF-8 wherever it stands", async () => {
    for (const value of values) {
      for (const before of ["", " ", "  "]) {
        const text = before + JSON.stringify(value);
        expect(await decodeJsonInTurns(Buffer.from(text), turns)).to.equal(text);
      }
    }
    const bytes = Buffer.from(JSON.stringify(long));
    for (const end of [bytes.length - 4, 65_536, 65_535]) {
      const broken = Buffer.from(bytes);
      broken[end] = 0xff;
      const fault = await decodeJsonInTurns(broken, turns).catch((cause: Error) => cause.message);
      expect(fault).to.equal("malformed JSON: expected UTF-8, got invalid bytes");
    }
    const cut = await decodeJsonInTurns(Buffer.from("\u20ac").subarray(0, 2), turns).catch(
      (cause: Error) => cause.message,
    );
    expect(cut).to.equal("malformed JSON: expected UTF-8, got invalid bytes");
  });

  it("keep a byte order mark, which the reader refuses", async () => {
    const text = await decodeJsonInTurns(Buffer.from("\ufeff{}"), turns);
    const bounds = { depth: 8, nodes: 8, stringLength: 8, reader: "exact" } as const;
    expect(() => parseStrictJson(text, bounds)).to.throw("expected no byte order mark");
  });
});
