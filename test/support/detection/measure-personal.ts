import { withOutput } from "../../../core/action/envelope.ts";
import type { JsonObject } from "../../../core/action/json.ts";
import type { Verdict } from "../../../core/action/policy.ts";
import { mergeRedactions, redactOutput } from "../../../core/action/redaction.ts";
import { makeAction } from "../action.ts";
import type { ImmediatePolicy } from "../plugin-port.ts";
import { type Carrier, carriers, sentenceCarrier } from "./carrier.ts";
import { harmlessTexts } from "./harmless.ts";
import { type Datum, personalData, personalKinds, unusualData } from "./personal-data.ts";

/** How often something was as it should be. */
export interface Share {
  readonly name: string;
  readonly count: number;
  readonly of: number;
}

export interface PersonalMeasure {
  /** By kind: gone from the answer, in every carrier; and where nothing else of a sentence went with it. */
  readonly gone: readonly Share[];
  readonly exact: readonly Share[];
  readonly byCarrier: readonly Share[];
  /** Of forms that nobody promises. */
  readonly unusual: readonly Share[];
  /** Harmless texts of which something was taken for personal data. */
  readonly harmed: readonly Share[];
}

/** What the plugin makes of all data in all carriers, and of what is harmless. All kinds must be redacted. */
export function measurePersonal(plugin: ImmediatePolicy): PersonalMeasure {
  const data = personalData();
  const runs = carriers.flatMap((carrier) => data.map((datum) => ({ carrier, datum, ...run(plugin, carrier, datum) })));
  const share = (name: string, some: typeof runs, good: (run: (typeof runs)[number]) => boolean): Share => ({
    name,
    count: some.filter(good).length,
    of: some.length,
  });
  const sentence = runs.filter(({ carrier }) => carrier === sentenceCarrier);
  const ofKind = (some: typeof runs, kind: string): typeof runs => some.filter(({ datum }) => datum.kind === kind);
  return {
    gone: personalKinds.map((kind) => share(kind, ofKind(runs, kind), ({ gone }) => gone)),
    exact: personalKinds.map((kind) => share(kind, ofKind(sentence, kind), ({ exact }) => exact)),
    byCarrier: carriers.map((carrier) =>
      share(
        carrier.name,
        runs.filter((each) => each.carrier === carrier),
        ({ gone }) => gone,
      ),
    ),
    unusual: Array.from(unusualData(), ([name, texts]) => ({
      name,
      count: texts.filter((text) => run(plugin, sentenceCarrier, { kind: "email", text }).gone).length,
      of: texts.length,
    })),
    harmed: measureHarm(plugin),
  };
}

function measureHarm(plugin: ImmediatePolicy): readonly Share[] {
  return Array.from(harmlessTexts(), ([name, texts]) => ({
    name,
    count: texts.filter((text) => judge(plugin, { content: [{ type: "text", text }] }).decision !== "abstain").length,
    of: texts.length,
  }));
}

function run(plugin: ImmediatePolicy, carrier: Carrier, datum: Datum): { gone: boolean; exact: boolean } {
  const output = carrier.wrap(datum.text);
  const verdict = judge(plugin, output);
  if (verdict.decision === "block") return { gone: true, exact: false };
  const redacted = redactOutput(output, mergeRedactions(verdict.redactions ?? [])) as JsonObject;
  const left = carrier.read(redacted);
  const exact = /^It says (phone: |SSN )?\[[a-z]+\] there, as of today\.$/m.test(left);
  return { gone: !plain(left).includes(plain(essenceOf(datum))), exact };
}

/** What must not be read any more: not the words before it. */
function essenceOf({ text }: Datum): string {
  return text.replace(/^(phone:|SSN) /, "");
}

function plain(text: string): string {
  return text.replace(/[^\p{L}\p{N}@]/gu, "");
}

function judge(plugin: ImmediatePolicy, output: JsonObject): Verdict {
  return plugin.evaluate(withOutput(makeAction(), output));
}
