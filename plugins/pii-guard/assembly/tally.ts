import { Severity, Verdict } from "agent-governance-sdk/assembly";
import { Kind, riskOf, ruleOf, wordOf } from "./kind";

/** The finds of each kind and the first place of each: one finding per kind. */
class Tally {
  count: i32 = 0;
  pointer: string = "";

  add(pointer: string): void {
    if (this.count++ === 0) this.pointer = pointer;
  }
}

const inTexts = new StaticArray<Tally>(Kind.count);
const inFixed = new StaticArray<Tally>(Kind.count);

for (let kind = 0; kind < Kind.count; kind++) {
  inTexts[kind] = new Tally();
  inFixed[kind] = new Tally();
}

export function countText(kind: i32, pointer: string): void {
  inTexts[kind].add(pointer);
}

/** Finds that cannot be redacted: the name of a member, or a number. */
export function countFixed(kind: i32, pointer: string): void {
  inFixed[kind].add(pointer);
}

/** Adds the finding of a kind, as the settings decide. */
export function tell(verdict: Verdict, kind: i32, manner: string): void {
  const isRedacted = manner === "redact";
  const texts = inTexts[kind];
  if (texts.count > 0) {
    const decision = isRedacted ? "allow" : manner;
    verdict.decide(decision, ruleOf(kind), `${wordOf(kind)}: ${places(texts.count)}${isRedacted ? ", redacted" : ""}`);
    weigh(verdict, kind, texts.pointer);
  }
  const fixed = inFixed[kind];
  if (fixed.count > 0) {
    const message = `${wordOf(kind)}: ${places(fixed.count)} where nothing can be redacted, a name or a number`;
    verdict.decide(isRedacted ? "block" : manner, ruleOf(kind), message);
    weigh(verdict, kind, fixed.pointer);
  }
}

function places(count: i32): string {
  return count === 1 ? "1 place" : `${count} places`;
}

function weigh(verdict: Verdict, kind: i32, pointer: string): void {
  verdict
    .severity(riskOf(kind) < 50 ? Severity.medium : Severity.high)
    .risk(riskOf(kind))
    .at(pointer);
}
