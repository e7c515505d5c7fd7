import { expect } from "chai";
import fc from "fast-check";
import { GatewayError } from "../../../core/action/error.ts";
import type { Json } from "../../../core/action/json.ts";
import { type JsonBounds, parseJsonInTurns } from "../../../core/action/strict-json.ts";
import { Turns } from "../../../core/action/turns.ts";

const bounds: JsonBounds = { depth: 50, nodes: 100_000, stringLength: 100_000, reader: "tolerant" };

/** The value of a text that is read in steps of so many bytes. */
function read(text: string, step: number): Promise<Json> {
  const turns = new Turns(
    () => Promise.resolve(),
    () => 0,
  );
  return parseJsonInTurns(Buffer.from(text), bounds, turns, step);
}

async function fault(text: string, step: number): Promise<string> {
  try {
    await read(text, step);
  } catch (error) {
    return GatewayError.from(error).message;
  }
  return "accepted";
}

function isDeepFrozen(value: Json): boolean {
  return (
    typeof value !== "object" || value === null || (Object.isFrozen(value) && Object.values(value).every(isDeepFrozen))
  );
}

const spaced = fc
  .tuple(
    fc.json({ maxDepth: 6, stringUnit: "binary" }).filter((text) => !/\\ud[89a-f]/.test(text)),
    fc.array(fc.constantFrom("", " ", "\n\t "), { minLength: 1 }),
  )
  .map(([text, spaces]) => {
    let at = 0;
    const space = (): string => spaces[at++ % spaces.length] as string;
    return text.replaceAll(/"(?:[^"\\]|\\.)*"|[[\]{},:]/gs, (token) => space() + token + space());
  });

describe("a text in parts [S76]", () => {
  it("has the value that JSON.parse builds, members in the same order, whatever the size of a part", async () => {
    await fc.assert(
      fc.asyncProperty(spaced, fc.integer({ min: 1, max: 40 }), async (text, step) => {
        const whole = JSON.parse(text) as Json;
        const value = await read(text, step);
        expect(value).to.deep.equal(whole);
        expect(JSON.stringify(value)).to.equal(JSON.stringify(whole));
        if (step <= text.length) expect(isDeepFrozen(value)).to.equal(true);
      }),
      { numRuns: 3_000 },
    );
  });

  it("has `__proto__` and its like as plain members", async () => {
    const text = '{"a":[1,2],"__proto__":{"polluted":[true,true]},"constructor":{"prototype":{"polluted":1}}}';
    for (let step = 1; step < text.length; step++) {
      const value = await read(text, step);
      expect(Object.keys(value as object)).to.deep.equal(["a", "__proto__", "constructor"]);
      expect(Object.getPrototypeOf(value)).to.equal(Object.prototype);
      expect(({} as { polluted?: unknown }).polluted).to.equal(undefined);
    }
  });

  it("is refused where it has a second member of one name, wherever that is", async () => {
    for (const text of [
      '{"a":1,"b":2,"a":3}',
      '[{"a":[1,2,3],"b":1,"\\u0061":[1,2,3]}]',
      '{"__proto__":[1,2],"b":0,"__proto__":1}',
      '{"a":{"b":{"c":1},"d":[],"b":"0123456789"}}',
    ]) {
      for (let step = 1; step <= text.length; step++) expect(await fault(text, step)).to.include("duplicate key");
    }
  });

  it("is refused with the place where a string, a number or a literal is none", async () => {
    for (const wrong of ['"\\x"', '"\u0001"', "01", "1.", "truf", "é"]) {
      const before = '{"a":["é",2,{"b":[3]}],"c":[{"d":';
      const text = `${before}${wrong}}],"e":[4]}`;
      const at = Buffer.byteLength(before);
      for (let step = 1; step <= text.length; step++) {
        const said = await fault(text, step);
        expect(said).to.match(/bad escape|unexpected/);
        const offset = /offset (\d+)/.exec(said)?.[1];
        if (offset !== undefined) expect(Number(offset)).to.be.within(at, at + 3);
      }
    }
  });

  it("is refused where it ends too early or goes on too long", async () => {
    const text = '{"a":["b",[1]],"c":{"d":"e"}}';
    for (let step = 1; step <= text.length; step++) {
      for (let length = step; length < text.length; length++) {
        expect(await fault(text.slice(0, length), step)).to.match(/unexpected end|unterminated string/);
      }
      for (const more of ["]", "}", ",", '"', "1", "{}"]) {
        expect(await fault(text + more, step)).to.match(/unexpected|unterminated/);
      }
    }
  });
});
