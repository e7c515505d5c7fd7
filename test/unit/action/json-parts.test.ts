import { expect } from "chai";
import fc from "fast-check";
import type { Json } from "../../../core/action/json.ts";
import { DuplicateMember, JsonParts, PartFault } from "../../../core/action/json-parts.ts";

/** The places of brackets, braces and commas outside of strings. */
function marksOf(text: string): number[] {
  const marks: number[] = [];
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{},]/gs))
    if (token[0] !== '"') marks.push(index);
  return marks;
}

/** The value of a text, and its parts. */
function build(
  text: string,
  maxPart: number,
): { readonly value: Json; readonly parts: readonly (readonly [Json, number])[] } {
  const building = new JsonParts(text, marksOf(text), maxPart).build();
  const parts: (readonly [Json, number])[] = [];
  for (;;) {
    const step = building.next();
    if (step.done === true) return { value: step.value, parts };
    parts.push(step.value);
  }
}

function membersIn(value: Json): number {
  if (typeof value !== "object" || value === null) return 0;
  const inside = Object.values(value).reduce((sum: number, member: Json) => sum + membersIn(member), 0);
  return inside + (Array.isArray(value) ? 0 : Object.keys(value).length);
}

function isDeepFrozen(value: Json): boolean {
  return (
    typeof value !== "object" || value === null || (Object.isFrozen(value) && Object.values(value).every(isDeepFrozen))
  );
}

const spaced = fc
  .tuple(fc.json({ maxDepth: 6, stringUnit: "binary" }), fc.array(fc.constantFrom("", " ", "\n\t "), { minLength: 1 }))
  .map(([text, spaces]) => {
    let at = 0;
    const space = (): string => spaces[at++ % spaces.length] as string;
    return text.replaceAll(/"(?:[^"\\]|\\.)*"|[[\]{},:]/gs, (token) => space() + token + space());
  });

describe("JsonParts [S76]", () => {
  it("builds what JSON.parse builds, members in the same order, whatever the size of a part", () => {
    fc.assert(
      fc.property(spaced, fc.integer({ min: 0, max: 40 }), (text, maxPart) => {
        const whole = JSON.parse(text) as Json;
        const { value, parts } = build(text, maxPart);
        expect(value).to.deep.equal(whole);
        expect(JSON.stringify(value)).to.equal(JSON.stringify(whole));
        expect(parts.reduce((sum, [part]) => sum + membersIn(part), 0)).to.equal(membersIn(whole));
        expect(isDeepFrozen(value)).to.equal(true);
      }),
      { numRuns: 3_000 },
    );
  });

  it("has `__proto__` and its like as plain members", () => {
    const text = '{"a":[1,2],"__proto__":{"polluted":[true,true]},"constructor":{"prototype":{"polluted":1}}}';
    for (let maxPart = 0; maxPart < text.length; maxPart++) {
      const { value } = build(text, maxPart);
      expect(Object.keys(value as object)).to.deep.equal(["a", "__proto__", "constructor"]);
      expect(Object.getPrototypeOf(value)).to.equal(Object.prototype);
      expect(({} as { polluted?: unknown }).polluted).to.equal(undefined);
    }
  });

  it("takes no more than about a part at once, but for a longer string", () => {
    const text = JSON.stringify({
      list: Array(2_000).fill({ a: "0123456789" }),
      wide: { ...Array(2_000).fill(1) },
      b: 1,
    });
    const { parts } = build(text, 1_000);
    expect(Math.max(...parts.map(([, units]) => units))).to.be.below(1_020);
    expect(parts.length).to.be.within(text.length / 1_020, text.length / 900 + 10);
    expect(build(`["${"x".repeat(5_000)}",1]`, 1_000).parts.map(([, units]) => units)).to.deep.equal([5_002, 1]);
  });

  it("refuses a second member of one name, wherever it is", () => {
    const twice = [
      '{"a":1,"b":2,"a":3}',
      '[{"a":[1,2,3],"b":1,"\\u0061":[1,2,3]}]',
      '{"__proto__":[1,2],"b":0,"__proto__":1}',
    ];
    for (const text of twice) {
      for (let maxPart = 0; maxPart < text.length; maxPart++) {
        let members = 0;
        try {
          for (const [part] of build(text, maxPart).parts) members += membersIn(part);
        } catch (error) {
          expect(error).to.be.instanceOf(DuplicateMember);
          continue;
        }
        expect(members, "both in one part").to.equal(2);
      }
    }
  });

  it("says where in the text a string, a number or a literal is none", () => {
    for (const wrong of ['"\\x"', '"\u0001"', "01", "1.", "truf"]) {
      const text = `{"a":[1,2,{"b":[3]}],"c":[{"d":${wrong}}],"e":[4]}`;
      const place = (message: string): number => Number(/position (\d+)/.exec(message)?.[1]);
      for (let maxPart = 0; maxPart < text.length; maxPart++) {
        try {
          build(text, maxPart);
          expect.fail("expected a fault");
        } catch (error) {
          expect(error).to.be.instanceOf(PartFault);
          const { fault, shift } = error as PartFault;
          expect(() => JSON.parse(text))
            .to.throw(SyntaxError)
            .that.satisfies(
              ({ message }: Error) => Number.isNaN(place(message)) || place(message) === place(fault.message) + shift,
            );
        }
      }
    }
  });
});
