import { expect } from "chai";
import fc from "fast-check";
import type { Evaluation } from "../../../core/action/evaluation.ts";
import type { Json, JsonObject } from "../../../core/action/json.ts";
import type { ModelApi } from "../../../core/action/model-api.ts";
import type { Redaction } from "../../../core/action/policy.ts";
import { redactOutput } from "../../../core/action/redaction.ts";
import type { WireEvent } from "../../../core/provider/wire/event-reader.ts";
import { StreamReader } from "../../../core/provider/wire/stream-reader.ts";
import { StreamGuard } from "../../../core/road/stream.ts";
import { type Answer, meaningOf } from "../../support/model-answer.ts";
import { bodyOf, type Manner, manner, readEvents, streamOf } from "../../support/model-stream.ts";

const secret = "AKIA1234567890ABCDEF";
const usage = { input: 1, output: 1, cached: 0, written: 0 };

/** Finds the secret where it is whole, in any text, as a policy would. */
function findSecret(value: Json | undefined, pointer: string): Redaction[] {
  if (typeof value === "object" && value !== null) {
    return Object.entries(value).flatMap(([name, member]) => findSecret(member as Json, `${pointer}/${name}`));
  }
  if (typeof value !== "string" || !value.includes(secret)) return [];
  const start = Buffer.byteLength(value.slice(0, value.indexOf(secret)));
  return [{ rule: "x.secret", pointer, start, end: start + secret.length, replacement: "[key]" }];
}

/** What a client gets of a stream, where policy redacts the secret; `early`: how many events before the last was read. */
async function guarded(
  api: ModelApi,
  events: readonly WireEvent[],
): Promise<{ readonly got: readonly WireEvent[]; readonly early: number }> {
  const judge = async (output: Json): Promise<Evaluation> =>
    ({ decision: "allow", redactions: findSecret(output, "/output") }) as unknown as Evaluation;
  const guard = new StreamGuard({
    reader: new StreamReader(api),
    judge,
    holdback: 32,
    maxHeldBytes: 1_000_000,
    holdsCalls: false,
  });
  const got: WireEvent[] = [];
  for (const event of events) {
    guard.push(event);
    if (guard.ended) break;
    const release = await guard.release();
    if (release.kind === "released") got.push(...release.events);
  }
  const early = got.length;
  const whole = guard.whole();
  const redactions = findSecret(whole, "/output");
  return { got: [...got, ...guard.finish(redactions, redactOutput(whole, redactions) as JsonObject)], early };
}

describe("StreamGuard with the reader of either API", () => {
  const filler = fc.string({ unit: fc.constantFrom("a", "é", "😀", " "), maxLength: 80 });
  const around = fc.tuple(filler, filler).map(([before, after]) => `${before}${secret}${after}`);

  it("lets no part of a secret through, in words, thoughts or arguments, however they are cut", async () => {
    await fc.assert(
      fc.asyncProperty(around, around, around, manner, async (thinking, text, argument, how) => {
        const calls = [{ id: "call_1", name: "f", input: { argument } }];
        const a: Answer = { thinking, text, calls, stop: "tool", refusal: undefined, usage };
        for (const api of ["chat", "messages"] as const) {
          const { got } = await guarded(api, readEvents([streamOf(api, a, how)]));
          expect(Buffer.concat(got.map(({ raw }) => raw)).toString(), api).not.to.match(/AKIA|1234|ABCDEF/);
          const redacted = (each: string): string => each.replace(secret, "[key]");
          expect(meaningOf(api, bodyOf(api, got)), api).to.deep.include({
            thinking: redacted(thinking),
            text: redacted(text),
            calls: [{ id: "call_1", name: "f", input: { argument: redacted(argument) } }],
          });
        }
      }),
    );
  });

  it("gives the very events where there is nothing to redact, most of them before the answer ends", async () => {
    const how: Manner = { sizes: [5], woven: false, lineEnd: "\n" };
    const words = "some words ".repeat(40);
    const a: Answer = { thinking: words, text: words, calls: [], stop: "end", refusal: undefined, usage };
    for (const api of ["chat", "messages"] as const) {
      const events = readEvents([streamOf(api, a, how)]);
      const { got, early } = await guarded(api, events);
      expect(got).to.deep.equal(events);
      expect(early, api).to.be.above(events.length * 0.8);
    }
  });
});
