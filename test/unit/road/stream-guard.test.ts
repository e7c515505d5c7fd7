import { expect } from "chai";
import fc from "fast-check";
import type { Evaluation } from "../../../core/action/evaluation.ts";
import type { Json, JsonObject } from "../../../core/action/json.ts";
import { valueAt } from "../../../core/action/json-pointer.ts";
import { redactOutput } from "../../../core/action/redaction.ts";
import { type AnswerReader, StreamGuard } from "../../../core/road/stream.ts";
import { findSecret, secret } from "../../support/secret.ts";

interface Delta {
  readonly pointer: string;
  readonly text: string;
  readonly unknown?: boolean;
  readonly finished?: readonly string[];
  readonly last?: boolean;
  readonly call?: boolean;
}

const holdback = 32;

function readerOf(whole: readonly string[] = []): AnswerReader<Delta> {
  const body: Record<string, string> = {};
  return {
    read: (event) => {
      const piece = { pointer: event.pointer, text: event.text };
      if (event.unknown !== true) body[event.pointer.slice(1)] = (body[event.pointer.slice(1)] ?? "") + event.text;
      const isUnknown = event.unknown === true;
      const texts = { pieces: isUnknown ? [] : [piece], unknown: isUnknown ? [piece] : [] };
      const call = event.call === true ? ({ call: true } as const) : {};
      return { ...texts, finished: event.finished ?? [], terminal: event.last === true, ...call };
    },
    sizeOf: ({ text }) => Buffer.byteLength(text),
    body: () => ({ ...body }),
    rewrite: (event, [text]) => ({ ...event, text: text as string }),
    isStale: () => false,
    isWhole: (pointer) => whole.includes(pointer),
  };
}

/** Finds the secret as a policy would: where it is whole, in any text of the output. */
function judgeWith(decision: "allow" | "block", seen: Json[] = []): (output: Json) => Promise<Evaluation> {
  return async (output) => {
    seen.push(output);
    const redactions = findSecret(output, "/output");
    const found = redactions.length > 0;
    return {
      decision: found ? decision : "allow",
      redactions: decision === "allow" ? redactions : [],
    } as unknown as Evaluation;
  };
}

async function pass(
  events: readonly Delta[],
  judge: (output: Json) => Promise<Evaluation>,
  options: { holdback?: number; whole?: readonly string[]; most?: number; holdsCalls?: boolean } = {},
): Promise<{ readonly out: readonly Delta[]; readonly held: number; readonly stopped: boolean }> {
  const guard = new StreamGuard({
    reader: readerOf(options.whole),
    judge,
    holdback: options.holdback ?? holdback,
    maxHeldBytes: options.most ?? 100_000,
    holdsCalls: options.holdsCalls ?? false,
  });
  const out: Delta[] = [];
  let held = 0;
  let come = 0;
  for (const event of events) {
    guard.push(event);
    come += event.text.length;
    if (guard.ended) break;
    const release = await guard.release();
    if (release.kind === "withheld") return { out, held, stopped: true };
    out.push(...release.events);
    held = Math.max(held, come - out.reduce((sum, { text }) => sum + text.length, 0));
  }
  const output = guard.whole();
  const evaluation = await judge(output);
  if (evaluation.decision !== "allow") return { out, held, stopped: true };
  out.push(...guard.finish(evaluation.redactions, redactOutput(output, evaluation.redactions) as JsonObject));
  return { out, held, stopped: false };
}

function split(text: string, cuts: readonly number[], pointer = "/text"): Delta[] {
  const ends = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  const pieces = [...ends, text.length].map((end, index) => text.slice(ends[index - 1] ?? 0, end));
  return pieces.map((piece, index) => ({ pointer, text: piece, last: index === pieces.length - 1 }));
}

const textOf = (events: readonly Delta[], pointer = "/text"): string =>
  events.flatMap((event) => (event.pointer === pointer ? [event.text] : [])).join("");

describe("StreamGuard", () => {
  it("never lets a part of a secret through, however a text is cut into events", async () => {
    const filler = fc.string({ unit: fc.constantFrom("a", "é", "😀", " "), maxLength: 120 });
    await fc.assert(
      fc.asyncProperty(filler, filler, fc.array(fc.nat(), { maxLength: 12 }), async (before, after, cuts) => {
        const { out } = await pass(split(`${before}${secret}${after}`, cuts), judgeWith("allow"));
        expect(textOf(out)).to.equal(`${before}[key]${after}`);
        for (const { text } of out) expect(text).to.not.match(/AKIA|\d/);
      }),
    );
  });

  it("stops before the first part of a secret is out, where policy blocks it", async () => {
    for (let cut = 1; cut < secret.length; cut++) {
      const text = `${"x".repeat(80)}${secret}${"y".repeat(80)}`;
      const { out, stopped } = await pass(split(text, [80 + cut, 90, 130]), judgeWith("block"));
      expect(stopped).to.equal(true);
      expect(textOf(out)).to.match(/^x*$/);
    }
  });

  it("lets the secret through where nothing is held back", async () => {
    const { out } = await pass(split(`${secret} is it`, [4, 9]), judgeWith("allow"), { holdback: 0 });
    expect(out[0]?.text).to.equal("AKIA");
  });

  it("gives the very events where nothing in them is replaced, in their order", async () => {
    const events = split("quite harmless ".repeat(40), [5, 50, 99, 120, 333, 400]);
    const { out } = await pass(events, judgeWith("allow"));
    expect(out).to.have.length(events.length);
    for (const [index, event] of events.entries()) expect(out[index]).to.equal(event);
  });

  it("holds back at most what was agreed and one event", async () => {
    const events = split(
      "z".repeat(5_000),
      Array.from({ length: 1_000 }, (_, index) => index * 5),
    );
    const { held } = await pass(events, judgeWith("allow"));
    expect(held).to.be.at.most(holdback + holdback / 4 + 10);
  });

  it("shows policy each text with what came before it, as far as it is held back", async () => {
    const seen: Json[] = [];
    await pass(split("0123456789".repeat(30), [40, 80, 120, 160, 200]), judgeWith("allow", seen));
    for (const [index, output] of seen.entries()) {
      const text = valueAt(output, "/text") as string;
      if (index > 0 && index < seen.length - 1) expect(text.length).to.be.at.least(2 * holdback);
    }
  });

  it("keeps texts apart, and lets none overtake another", async () => {
    const events: Delta[] = [
      { pointer: "/a", text: "first ".repeat(20) },
      { pointer: "/b", text: secret },
      { pointer: "/a", text: "second ".repeat(20), last: true },
    ];
    const { out } = await pass(events, judgeWith("allow"));
    expect(out.map(({ pointer }) => pointer)).to.deep.equal(["/a", "/b", "/a"]);
    expect(textOf(out, "/b")).to.equal("[key]");
  });

  for (const held of [0, holdback]) {
    it(`keeps a tool call and all behind it for the end where calls are held, with a holdback of ${held}`, async () => {
      const text = (last = false): Delta => ({ pointer: "/text", text: "words ".repeat(20), last });
      const call: Delta = { pointer: "/name", text: "run", unknown: true, finished: ["/text"], call: true };
      for (const holdsCalls of [false, true]) {
        const guard = new StreamGuard({
          reader: readerOf(),
          judge: judgeWith("allow"),
          holdback: held,
          maxHeldBytes: 1_000,
          holdsCalls,
        });
        guard.push({ pointer: "/first", text: "words ".repeat(20), finished: ["/first"] });
        guard.push(call);
        for (let more = 0; more < 3; more++)
          guard.push({ ...text(), pointer: `/more${more}`, finished: [`/more${more}`] });
        const release = await guard.release();
        const out = release.kind === "released" ? release.events.map(({ pointer }) => pointer) : [];
        expect(out.includes("/more0")).to.equal(!holdsCalls && held === 0);
        expect(out.includes("/name")).to.equal(!holdsCalls && held === 0);
        expect(out).to.include("/first");
        expect(guard.finish([], guard.whole()).map(({ pointer }) => pointer)).to.include.members(
          holdsCalls ? ["/name", "/more0", "/more2"] : [],
        );
      }
    });
  }

  describe("when a text is whole before the answer is", () => {
    const thinking = { pointer: "/thinking", text: "short" };
    const text = (last = false): Delta => ({ pointer: "/text", text: "words ".repeat(20), last });
    const released = async (finished: readonly string[]): Promise<number> => {
      const guard = new StreamGuard({
        reader: readerOf(),
        judge: judgeWith("allow"),
        holdback,
        maxHeldBytes: 1_000,
        holdsCalls: false,
      });
      guard.push({ ...thinking, finished });
      guard.push(text());
      guard.push(text());
      const release = await guard.release();
      return release.kind === "released" ? release.events.length : Number.NaN;
    };

    it("lets go of all of it, and of what waits behind it; of nothing where it may still grow", async () => {
      expect(await released(["/thinking"])).to.equal(2);
      expect(await released([])).to.equal(0);
    });

    it("shows its end to policy before it lets go of it", async () => {
      const events = [{ pointer: "/thinking", text: `so ${secret}`, finished: ["/thinking"] }, text(), text(true)];
      expect(textOf((await pass(events, judgeWith("allow"))).out, "/thinking")).to.equal("so [key]");
      expect(await pass(events, judgeWith("block"))).to.deep.include({ stopped: true, out: [] });
    });

    it("refuses to add to it", async () => {
      const refused = await pass([{ ...thinking, finished: ["/thinking"] }, thinking], judgeWith("allow")).catch(
        (cause: unknown) => cause,
      );
      expect(refused).to.be.instanceOf(TypeError);
    });
  });

  it("holds a text that is of use only when it is whole until then, and replaces it there", async () => {
    const whole = { whole: ["/input"] };
    const events = split(`{"key":"${secret}${"x".repeat(200)}"}`, [3, 60, 150], "/input");
    const { out } = await pass(events, judgeWith("allow"), whole);
    expect(JSON.parse(textOf(out, "/input"))).to.deep.equal({ key: `[key]${"x".repeat(200)}` });
  });

  it("shows members it does not know to policy, and does not let them out where they are to change", async () => {
    const event: Delta = { pointer: "/odd/member", text: `${secret}${"x".repeat(100)}`, unknown: true };
    const harmless = { ...event, text: "n".repeat(100), last: true };
    expect((await pass([harmless], judgeWith("allow"))).out).to.deep.equal([harmless]);
    const refused = await pass([event, harmless], judgeWith("allow")).catch((error: unknown) => error);
    expect(refused).to.include({ code: "POLICY_BLOCKED" });
  });

  it("refuses to hold more than it may", async () => {
    const many = split("w".repeat(500), [100, 200, 300, 400], "/input");
    const refused = await pass(many, judgeWith("allow"), { whole: ["/input"], most: 400 }).catch(
      (cause: unknown) => cause,
    );
    expect(refused).to.include({ code: "PROVIDER_INVALID" });
  });
});
