import { expect } from "chai";
import fc from "fast-check";
import type { ActionEnvelope } from "../../../core/action/envelope.ts";
import type { Json, JsonObject } from "../../../core/action/json.ts";
import type { Verdict } from "../../../core/action/policy.ts";
import { compileModule } from "../../../core/plugin/compiled-module.ts";
import { type CompiledModule, PluginMachine } from "../../../core/plugin/plugin-machine.ts";
import { readPluginVerdict } from "../../../core/plugin/plugin-verdict.ts";
import { makeAction } from "../../support/action.ts";
import { buildAssembly } from "../../support/assembly.ts";
import { beginWithPages } from "../../support/changed-module.ts";
import { roundsOf } from "../../support/rounds.ts";

interface Redaction {
  readonly rule: string;
  readonly pointer: string;
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

const fuel = 50_000_000;

describe("the kit for plugins in AssemblyScript", () => {
  before(async () => {
    const compiled: CompiledModule = await compileModule({
      // Memory enough for all that is asked: a machine whose memory grew is not ready at once.
      bytes: beginWithPages(await buildAssembly("test/fixture/kit-probe"), 128),
      memoryPages: 256,
      fuel,
      settings: {},
    });
    const machine = await PluginMachine.open(compiled);
    answer = (action, settings = {}) => machine.call(Buffer.from(JSON.stringify({ settings, action })), fuel);
  });

  let answer: (action: ActionEnvelope, settings?: JsonObject) => Uint8Array;
  const redactions = (action: ActionEnvelope, settings?: JsonObject): readonly Redaction[] =>
    JSON.parse(Buffer.from(answer(action, settings)).toString()).redactions ?? [];
  const verdict = (action: ActionEnvelope): Verdict => readPluginVerdict(answer(action), "probe", action.phase);

  describe("Reader", () => {
    it("stops at each name, text and literal, with its pointer and what it says in UTF-8", () => {
      fc.assert(
        fc.property(smallJson, (value) => {
          const found = redactions(makeAction({ tool: "read", arguments: value }));
          expect(found).to.deep.equal(tokensOf(value, "/arguments", 0));
        }),
        { numRuns: roundsOf(150, 5_000) },
      );
    });

    it("counts bytes as the gateway does, of characters of every length and behind every escape", () => {
      const text = 'é🔑"\\\n\t\b\f\r/\u0001\u2028ключ';
      const [, found] = redactions(makeAction({ tool: "read", arguments: { text } }));
      expect([found?.end, found?.replacement]).to.deep.equal([Buffer.byteLength(text), text]);
    });

    it("follows 255 levels, and traps beyond: the call is blocked", () => {
      const deep = (levels: number): Json => JSON.parse(`${"[".repeat(levels)}1${"]".repeat(levels)}`);
      const found = redactions(makeAction({ tool: "read", arguments: deep(255) }));
      expect(found.map(({ start }) => start)).to.deep.equal([255]);
      expect(() => answer(makeAction({ tool: "read", arguments: deep(257) }))).to.throw("trap");
    });
  });

  describe("Value", () => {
    it("finds what stands at a JSON Pointer, and nothing where nothing stands", () => {
      fc.assert(
        fc.property(
          smallJson,
          fc.array(fc.string({ unit: "binary", maxLength: 3 }), { maxLength: 4 }),
          (value, chance) => {
            const pointers = [
              ...pointersOf(value, "").slice(0, 60),
              ...chance.map((step) => `/${escapeStep(step)}`),
              "/-",
              "/00",
            ];
            const found = redactions(makeAction({ tool: "get", arguments: value }), { pointers });
            expect(found.map(({ pointer, replacement }) => [pointer, replacement])).to.deep.equal(
              pointers.map((pointer) => [`/arguments${pointer}`, describeAt(value, pointer)]),
            );
          },
        ),
        { numRuns: roundsOf(150, 5_000) },
      );
    });

    it("traps where it is asked for what it is not: the call is blocked", () => {
      for (const count of ["4", 4.5, true, null, [4], { a: 4 }, undefined]) {
        const value = count === undefined ? {} : { count };
        expect(() => answer(makeAction({ tool: "facts", arguments: value })), String(count)).to.throw("trap");
      }
      const rules = verdict(makeAction({ tool: "facts", arguments: { count: 4 } })).findings.map(({ rule }) => rule);
      expect(rules).to.deep.equal(["probe.facts", "probe.many"]);
    });
  });

  describe("Action", () => {
    it("says the usual things of the action", () => {
      const action = makeAction({ tool: "facts", arguments: { count: 1 }, continuation: {} });
      const [who, continued] = verdict(action).findings;
      expect(who).to.deep.include({ message: "acme operator mcp notes read input input", approvals: 2, risk: 40 });
      expect(continued).to.deep.include({ rule: "probe.continued", message: "/continuation", severity: "info" });
      const [after, output] = verdict({ ...action, phase: "output", output: { text: "done" } }).findings;
      expect(after?.message).to.equal("acme operator mcp notes read output output");
      expect(output?.message).to.equal("done");
    });
  });

  describe("Unescaped", () => {
    const undo = (text: string, places: readonly number[] = []): readonly Redaction[] =>
      redactions(makeAction({ tool: "unescape", arguments: { text, places } }));

    it("says what JSON inside a text says, and where each character of it stood", () => {
      fc.assert(
        fc.property(fc.string({ unit: "binary", maxLength: 40 }), fc.boolean(), (said, everything) => {
          const characters = [...said].map((character) => escapeOf(character, everything));
          const ends = characters.map((_, index) => Buffer.byteLength([...said].slice(0, index + 1).join("")));
          const [text, ...places] = undo(characters.join(""), ends);
          expect(text?.replacement).to.equal(said);
          expect(text?.start).to.equal(characters.join("") === said ? 0 : 1);
          const sources = characters.map((_, index) => Buffer.byteLength(characters.slice(0, index + 1).join("")));
          expect(places.map(({ end }) => end)).to.deep.equal(sources);
        }),
      );
    });

    it("leaves what is no escape as it is, and makes U+FFFD of half a character", () => {
      for (const text of ["C:\\work", "\\", "\\u12", "\\u12g4", "\\x41", "a\\"]) {
        expect(undo(text)[0]).to.include({ start: 0, replacement: text });
      }
      expect(undo("\\ud83d!\\ude00")[0]?.replacement).to.equal("\ufffd!\ufffd");
    });
  });

  describe("decodeBase64", () => {
    const decode = (text: string): Redaction | undefined =>
      redactions(makeAction({ tool: "base64", arguments: { text } }))[0];

    it("says what a run says, in either alphabet, with padding or without, and where it ends", () => {
      const readable = fc.string({ maxLength: 60 }).filter((text) => text !== "");
      fc.assert(
        fc.property(readable, fc.constantFrom("base64", "base64url"), (text, alphabet) => {
          const run = Buffer.from(text).toString(alphabet);
          expect(decode(`${run} end`)).to.include({ end: run.length, replacement: text });
        }),
      );
    });

    it("goes on over the line breaks of a long one, and over no others", () => {
      const text = "a mail has lines of 76 characters ".repeat(5);
      const lines =
        Buffer.from(text)
          .toString("base64")
          .match(/.{1,76}/g) ?? [];
      for (const mark of ["\n", "\r\n"]) {
        const run = lines.join(mark);
        expect(decode(`${run}${mark}`)).to.include({ end: run.length, replacement: text });
      }
      expect(decode("QUJD\nREVG")).to.include({ end: 4, replacement: "ABC" });
    });

    it("ends where what it says is no text", () => {
      const picture = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
      expect(decode(picture.toString("base64"))?.replacement).to.equal("");
      const mixed = Buffer.concat([Buffer.from("text"), Buffer.from([0]), Buffer.from("more")]);
      expect(decode(mixed.toString("base64"))?.replacement).to.equal("text");
    });
  });

  describe("Verdict", () => {
    it("permits nothing by a note, and what else it says counts", () => {
      const said = (list: readonly string[]): Verdict => verdict(makeAction({ tool: "note", arguments: list }));
      expect(said(["note"])).to.deep.include({ decision: "abstain" });
      expect(said(["note"]).findings).to.have.length(1);
      expect(said(["note", "allow"]).decision).to.equal("allow");
      expect(said(["note", "review"]).decision).to.equal("review");
    });

    it("abstains where nothing was said", () => {
      expect(verdict(makeAction())).to.deep.equal({ decision: "abstain", findings: [], risk: 0 });
    });

    it("says any text so that the gateway takes it", () => {
      fc.assert(
        fc.property(
          fc.array(fc.string({ unit: "binary", minLength: 1, maxLength: 600 }), { minLength: 1, maxLength: 20 }),
          (said) => {
            const { findings } = verdict(makeAction({ tool: "say", arguments: said }));
            expect(findings).to.have.length(said.length);
          },
        ),
        { numRuns: roundsOf(100, 3_000) },
      );
      const every = Array.from({ length: 0x30 }, (_, block) =>
        String.fromCharCode(...Array.from({ length: 256 }, (_, low) => block * 256 + low)),
      );
      const [first] = verdict(makeAction({ tool: "say", arguments: every })).findings;
      expect(first?.message).to.include("0123456789");
      const [told] = verdict(
        makeAction({ tool: "say", arguments: ['the "ключ" in C:\\users, 100 %: \\u{200b}'] }),
      ).findings;
      expect(told?.message).to.equal('the "ключ" in C:\\users, 100 %: \ufffdu{200b}');
    });

    it("keeps the strictest where there are more findings than the gateway takes, and says so", () => {
      fc.assert(
        fc.property(
          fc.array(fc.constantFrom("allow", "review", "block"), { minLength: 1, maxLength: 600 }),
          (rounds) => {
            const { decision, findings, risk } = verdict(makeAction({ tool: "find", arguments: { rounds } }));
            const strictestFirst = ["block", "review", "allow"].flatMap((each) =>
              rounds.filter((round) => round === each),
            );
            const rest = strictestFirst.slice(255);
            expect(decision).to.equal(strictestFirst[0]);
            expect(risk).to.equal(Math.max(...rounds.map((_, index) => index % 100)));
            if (rounds.length <= 256) {
              expect(findings.map((each) => each.decision)).to.deep.equal(rounds);
              return;
            }
            const count = (list: readonly string[], one: string): number => list.filter((each) => each === one).length;
            const kept = findings.slice(0, -1).map((each) => each.decision);
            for (const each of ["block", "review", "allow"]) {
              expect(count(kept, each)).to.equal(count(strictestFirst.slice(0, 255), each));
            }
            expect(findings.at(-1)).to.deep.include({
              rule: "probe.more-findings",
              decision: rest[0],
              message: `${rest.length} more findings are left out`,
            });
          },
        ),
        { numRuns: 60 },
      );
    });

    it("asks for as many reviewers as any of the findings did, also of those that are left out", () => {
      const rounds = Array(300).fill("review") as string[];
      const { findings } = verdict(makeAction({ tool: "find", arguments: { rounds, approvals: 3 } }));
      expect(findings.filter(({ approvals }) => approvals !== undefined).map(({ rule }) => rule)).to.deep.equal([
        "probe.more-findings",
      ]);
      expect(findings.at(-1)?.approvals).to.equal(3);
    });

    it("fits the output's bytes, however long its texts are", () => {
      const rounds = Array.from({ length: 100 }, (_, index) => (index === 99 ? "block" : "review"));
      const pointer = `/arguments${"/\u0001".repeat(600)}`;
      const bytes = answer(makeAction({ tool: "find", arguments: { rounds, pointer, message: "ключ ".repeat(110) } }));
      const { decision, findings } = readPluginVerdict(bytes, "probe", "input");
      expect(decision).to.equal("block");
      expect(findings.at(-1)?.rule).to.equal("probe.more-findings");
      expect(findings[0]?.pointer).to.equal(pointer.slice(0, 1_024));
      expect(findings[0]?.message).to.have.length(512);
    });

    it("hands on redactions, and blocks where they are more than a verdict holds", () => {
      const find = (redactions: number, pointer = "/output/text", rounds: readonly string[] = []): ActionEnvelope =>
        makeAction({
          tool: "find",
          phase: "output",
          output: {},
          arguments: { rounds: [...rounds], redactions, pointer },
        });
      const all = verdict(find(256, "/output/text", Array(256).fill("review")));
      expect(all.findings).to.have.length(256);
      expect(all.redactions?.at(-1)).to.deep.equal({
        rule: "probe.hidden",
        pointer: "/output/text",
        start: 255,
        end: 256,
        replacement: "[x]",
      });
      expect(verdict(find(1))).to.deep.include({ decision: "abstain", findings: [] });
      for (const many of [
        find(257),
        find(1, `/output/${"x".repeat(1_024)}`),
        find(200, `/output/${"ы".repeat(1_000)}`),
      ]) {
        const { decision, findings, redactions: kept } = verdict(many);
        expect([decision, findings[0]?.rule, kept]).to.deep.equal(["block", "probe.too-many-redactions", undefined]);
      }
    });
  });
});

/** JSON of at most some 200 tokens, whose texts need every kind of escape. */
const smallJson: fc.Arbitrary<Json> = fc
  .letrec<{ value: Json }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.constantFrom(null, true, false, 0, -1, 12_345, 1.5, 1e21),
      fc.string({ unit: "binary", maxLength: 12 }),
      fc.string({ maxLength: 40 }),
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(fc.string({ unit: "binary", maxLength: 6 }), tie("value"), { maxKeys: 3 }),
    ),
  }))
  .value.map((value) => JSON.parse(JSON.stringify(value)) as Json);

function escapeStep(step: string): string {
  return step.replaceAll("~", "~0").replaceAll("/", "~1");
}

function tokensOf(value: Json, pointer: string, depth: number): Redaction[] {
  const token = (kind: string, at: string, start: number, said: string): Redaction => ({
    rule: `probe.${kind}`,
    pointer: at,
    start,
    end: Buffer.byteLength(said),
    replacement: said,
  });
  if (typeof value === "string") return [token("text", pointer, depth, value)];
  if (value === null || typeof value !== "object") return [token("literal", pointer, depth, JSON.stringify(value))];
  if (Array.isArray(value)) return value.flatMap((each, index) => tokensOf(each, `${pointer}/${index}`, depth + 1));
  return Object.entries(value).flatMap(([name, each]) => {
    const at = `${pointer}/${escapeStep(name)}`;
    return [token("name", at, depth + 1, name), ...tokensOf(each as Json, at, depth + 1)];
  });
}

function pointersOf(value: Json, pointer: string): string[] {
  if (value === null || typeof value !== "object") return [pointer];
  // Of a list the names are its indices.
  const below = Object.entries(value).map(([step, each]) => pointersOf(each as Json, `${pointer}/${escapeStep(step)}`));
  return [pointer, ...below.flat()];
}

function describeAt(value: Json, pointer: string): string {
  let found: Json | undefined = value;
  for (const step of pointer.split("/").slice(1)) {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(found)) found = /^(0|[1-9]\d*)$/.test(name) ? found[Number(name)] : undefined;
    else
      found =
        typeof found === "object" && found !== null && Object.hasOwn(found, name)
          ? (found as JsonObject)[name]
          : undefined;
  }
  if (found === undefined) return "nothing";
  if (found === null) return "null";
  if (Array.isArray(found)) return `list ${found.length}`;
  if (typeof found === "string") return `text ${found}`;
  if (typeof found === "boolean") return `boolean ${found}`;
  if (typeof found === "object") return "object";
  return Number.isInteger(found) && Math.abs(found) < 1e9 ? `integer ${found}` : `number ${found}`;
}

/** A character as JSON may write it: as it must be, or by its code. */
function escapeOf(character: string, byCode: boolean): string {
  if (!byCode) return JSON.stringify(character).slice(1, -1);
  const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}
