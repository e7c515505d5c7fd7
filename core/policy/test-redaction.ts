import type { ActionEnvelope } from "../kernel/envelope.ts";
import type { Redaction, Verdict } from "../kernel/policy.ts";
import { redactedText } from "../kernel/redacted-output.ts";
import type { Faults } from "./fault.ts";
import type { YamlNode } from "./yaml/node.ts";
import { MapReader } from "./yaml/reader.ts";

/** One place that an author expects to be redacted: each member that is given must hold. */
export interface ExpectedRedaction {
  readonly rule: string | undefined;
  readonly pointer: string | undefined;
  /** What stands there. */
  readonly text: string | undefined;
  readonly replacement: string | undefined;
}

const keys = ["rule", "pointer", "text", "replacement"];
const long = { max: 1_024 } as const;

export function parseExpectedRedaction(node: YamlNode, faults: Faults): ExpectedRedaction {
  const reader = new MapReader(node, "a redaction", keys, faults);
  const expected = {
    rule: reader.optionalText("rule", long),
    pointer: reader.optionalText("pointer", long),
    text: reader.optionalText("text", long),
    replacement: reader.optionalText("replacement", long),
  };
  if (Object.values(expected).every((member) => member === undefined)) {
    faults.add(node.place, `expected a redaction to have ${keys.join(", ")}, or some of them`);
  }
  return expected;
}

/** What differs: the expected redactions are all there are, each once, in whatever order. */
export function compareRedactions(
  expected: readonly ExpectedRedaction[],
  { redactions = [] }: Verdict,
  { output = null }: ActionEnvelope,
): readonly string[] {
  const left = redactions.map((redaction) => ({ ...redaction, text: redactedText(output, redaction) }));
  const missing = expected.filter((each) => {
    const found = left.findIndex((redaction) => fits(each, redaction));
    if (found !== -1) left.splice(found, 1);
    return found === -1;
  });
  return [
    ...missing.map((each) => `expected a redaction ${JSON.stringify(each)}, got none such`),
    ...left.map((each) => `expected no redaction of \`${each.text}\` at ${each.pointer} by \`${each.rule}\``),
  ];
}

function fits(expected: ExpectedRedaction, got: Redaction & { readonly text: string }): boolean {
  return (["rule", "pointer", "text", "replacement"] as const).every(
    (key) => expected[key] === undefined || expected[key] === got[key],
  );
}
