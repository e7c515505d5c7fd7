import { expect } from "chai";
import fc from "fast-check";
import { deepFreeze, isJsonObject, type Json } from "../../../core/action/json.ts";
import type { Redaction } from "../../../core/action/policy.ts";
import { findRedactionFault, mergeRedactions, redactOutput } from "../../../core/action/redaction.ts";

function redact(pointer: string, start: number, end: number, replacement = "[r]"): Redaction {
  return { rule: "p.r", pointer, start, end, replacement };
}

describe("redactOutput(output, redactions)", () => {
  it("counts bytes of UTF-8, whatever the text is made of", () => {
    const output = { content: [{ type: "text", text: "né 😀 a@b.c, c@d.e" }] };
    const list = [redact("/output/content/0/text", 9, 14, "[email]"), redact("/output/content/0/text", 4, 8, "")];
    expect(findRedactionFault(output, list)).to.equal(undefined);
    expect(redactOutput(output, mergeRedactions(list))).to.deep.equal({
      content: [{ type: "text", text: "né  [email], c@d.e" }],
    });
  });

  it("is the output itself where nothing is redacted, and shares what did not change", () => {
    const output = deepFreeze({ a: { text: "secret" }, b: { text: "fine" } });
    expect(redactOutput(output, [])).to.equal(output);
    const redacted = redactOutput(output, [redact("/output/a/text", 0, 6)]) as typeof output;
    expect(redacted).to.deep.equal({ a: { text: "[r]" }, b: { text: "fine" } });
    expect(redacted.b).to.equal(output.b);
    expect([redacted, redacted.a].every(Object.isFrozen)).to.equal(true);
    expect(output.a.text).to.equal("secret");
  });

  it("keeps the order of members, and `__proto__` a plain member", () => {
    const text = '{"z":"1","__proto__":{"constructor":"secret"},"0":"2","a/b~c":"secret"}';
    const list = [redact("/output/__proto__/constructor", 0, 6), redact("/output/a~1b~0c", 0, 6)];
    expect(JSON.stringify(redactOutput(JSON.parse(text), mergeRedactions(list)))).to.equal(
      JSON.stringify(JSON.parse(text.replaceAll("secret", "[r]"))),
    );
  });

  it("gives what a reader gets who strikes out byte by byte, in any output", () => {
    fc.assert(
      fc.property(outputs, marks, (output, wanted) => {
        const list = spansIn(output, wanted);
        expect(findRedactionFault(output, list)).to.equal(undefined);
        const before = JSON.stringify(output);
        expect(redactOutput(output, mergeRedactions(list))).to.deep.equal(struckOut(output, list));
        expect(JSON.stringify(output)).to.equal(before);
      }),
      { numRuns: 500 },
    );
  });
});

describe("findRedactionFault(output, redactions)", () => {
  const output = { text: "né😀", list: ["a"], number: 1, lone: "\ud83d" };
  const texts = "expected redactions of texts of the output";
  const within = "expected redactions within their text, on code point boundaries";
  const rows: readonly (readonly [name: string, redaction: Redaction, fault: string | undefined])[] = [
    ["the whole text", redact("/output/text", 0, 7), undefined],
    ["its last character", redact("/output/text", 3, 7), undefined],
    ["a text in a list", redact("/output/list/0", 0, 1), undefined],
    ["a byte more than there is", redact("/output/text", 0, 8), within],
    ["what begins behind the end", redact("/output/text", 8, 9), within],
    ["the second half of `é`", redact("/output/text", 2, 3), within],
    ["the first half of `é`", redact("/output/text", 1, 2), within],
    ["a surrogate's bytes", redact("/output/text", 3, 5), within],
    ["a member that is not there", redact("/output/other", 0, 1), texts],
    ["what is inherited", redact("/output/constructor/name", 0, 1), texts],
    ["a number", redact("/output/number", 0, 1), texts],
    ["a list", redact("/output/list", 0, 1), texts],
    ["a list's length", redact("/output/list/length", 0, 1), texts],
    ["an index in another spelling", redact("/output/list/00", 0, 1), texts],
    ["an index behind the last", redact("/output/list/-", 0, 1), texts],
    ["what is in a text", redact("/output/text/0", 0, 1), texts],
    ["a text that no UTF-8 can say", redact("/output/lone", 0, 3), texts],
  ];
  for (const [name, redaction, fault] of rows) {
    it(`finds ${fault === undefined ? "none" : "one"} for ${name}`, () => {
      expect(findRedactionFault(output, [redact("/output/list/0", 0, 1), redaction])).to.equal(fault);
    });
  }
});

const words = fc.string({ unit: fc.constantFrom("a", "@", "é", "€", "\ufeff", "😀", "\0", '"', "\\") });
const names = fc.oneof(fc.constantFrom("", "~", "/", "~1", "0", "__proto__", "é"), fc.string({ maxLength: 3 }));
const outputs: fc.Arbitrary<Json> = fc
  .letrec<{ value: Json; object: Json }>((tie) => ({
    value: fc.oneof({ depthSize: "small" }, words, fc.constant(null), fc.array(tie("value")), tie("object")),
    object: fc.array(fc.tuple(names, tie("value"))).map((members) => Object.fromEntries(members)),
  }))
  .object.map((value) => deepFreeze(value));
const marks = fc.array(fc.record({ text: fc.nat(), from: fc.nat(), length: fc.nat(), replacement: words.map(plain) }));

function plain(text: string): string {
  return text.replace(/[^ -~]/gu, "x").slice(0, 64);
}

/** Redactions of texts that are there, between characters that are there. */
function spansIn(output: Json, wanted: readonly { text: number; from: number; length: number; replacement: string }[]) {
  const texts = textsIn("/output", output).filter(([, text]) => text !== "");
  return wanted.flatMap(({ text: which, from, length, replacement }, at): Redaction[] => {
    const [pointer, text] = texts[which % Math.max(1, texts.length)] ?? [];
    if (pointer === undefined || text === undefined) return [];
    const characters = Array.from(text);
    const first = from % characters.length;
    const last = first + 1 + (length % (characters.length - first));
    const bytes = (upTo: number): number => new TextEncoder().encode(characters.slice(0, upTo).join("")).length;
    return [{ rule: `p.r${at}`, pointer, start: bytes(first), end: bytes(last), replacement }];
  });
}

function textsIn(pointer: string, value: Json): (readonly [pointer: string, text: string])[] {
  if (typeof value === "string") return [[pointer, value]];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) =>
    textsIn(`${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`, member as Json),
  );
}

/** Every byte that any redaction strikes; each run of redactions that overlap is told by the first of them. */
function struckOut(value: Json, list: readonly Redaction[], pointer = "/output"): Json {
  if (Array.isArray(value)) return value.map((item: Json, at) => struckOut(item, list, `${pointer}/${at}`));
  if (isJsonObject(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => {
        return [name, struckOut(member, list, `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`)];
      }),
    );
  }
  if (typeof value !== "string") return value;
  const own = list.filter((each) => each.pointer === pointer);
  const bytes = new TextEncoder().encode(value);
  const kept: number[] = [];
  for (let at = 0; at < bytes.length; at++) {
    const end = runFrom(own, at);
    if (end === undefined) kept.push(bytes[at] as number);
    else {
      const teller = own.find(({ start }) => start >= at && start < end) as Redaction;
      kept.push(...new TextEncoder().encode(teller.replacement));
      at = end - 1;
    }
  }
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(kept));
}

/** Where the run of overlapping redactions ends that begins at this byte; undefined where none begins. */
function runFrom(own: readonly Redaction[], at: number): number | undefined {
  if (!own.some(({ start }) => start === at)) return undefined;
  let end = at + 1;
  while (own.some((each) => each.start < end && each.end > end)) end++;
  return end;
}
