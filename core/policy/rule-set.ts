import { strictest } from "../action/decision.ts";
import type { FaultList } from "../config/fault.ts";
import type { Rule } from "./rule.ts";

/** Reports rules of a pack that can never have an effect: each looks like protection and is none. */
export function checkRuleSet(rules: readonly Rule[], now: string, faults: FaultList): void {
  checkIds(rules, faults);
  for (const rule of rules) {
    if (rule.expires !== undefined && rule.expires <= now) {
      faults.addAt(rule.place, `rule \`${rule.id}\` expired at ${rule.expires}: the rule is dead`);
    }
    const ids = rule.exceptions.map((exception) => exception.id);
    const repeated = ids.find((id, index) => ids.indexOf(id) !== index);
    if (repeated !== undefined) faults.addAt(rule.place, `rule \`${rule.id}\` has two exceptions \`${repeated}\``);
  }
  // Malformed rules would be compared as if parts were missing.
  if (faults.count > 0) return;
  checkRepeats(rules, faults);
  checkShadowed(rules, faults);
}

function checkIds(rules: readonly Rule[], faults: FaultList): void {
  const first = new Map<string, Rule>();
  for (const rule of rules) {
    const earlier = first.get(rule.id);
    if (earlier === undefined) first.set(rule.id, rule);
    else
      faults.addAt(
        rule.place,
        `duplicate rule id \`${rule.id}\`, first at ${earlier.place.file}:${earlier.place.line}`,
      );
  }
}

function checkRepeats(rules: readonly Rule[], faults: FaultList): void {
  const first = new Map<string, Rule>();
  for (const rule of rules) {
    const says = JSON.stringify([rule.match.identity, rule.when?.text, rule.unless?.text, rule.decision, rule.mode]);
    const earlier = first.get(says);
    if (earlier === undefined) first.set(says, rule);
    else if (earlier.id !== rule.id) faults.addAt(rule.place, `rule \`${rule.id}\` repeats \`${earlier.id}\``);
  }
}

/** Reports rules behind an unconditional, stricter rule of the same match. */
function checkShadowed(rules: readonly Rule[], faults: FaultList): void {
  const always = new Map<string, Rule>();
  for (const rule of rules) {
    if (!isUnconditional(rule)) continue;
    const other = always.get(rule.match.identity);
    const stricter = other === undefined || other.decision !== strictest(other.decision, rule.decision);
    if (stricter) always.set(rule.match.identity, rule);
  }
  for (const rule of rules) {
    const other = always.get(rule.match.identity);
    if (other === undefined || other === rule || rule.mode === "shadow") continue;
    const weaker = rule.decision !== other.decision && strictest(rule.decision, other.decision) === other.decision;
    const covered = rule.decision === other.decision && rule.approvals <= other.approvals;
    const idle = weaker || (covered && !isUnconditional(rule));
    if (idle)
      faults.addAt(
        rule.place,
        `rule \`${rule.id}\` is shadowed by \`${other.id}\`, which always decides ${other.decision}`,
      );
  }
}

function isUnconditional(rule: Rule): boolean {
  const { when, unless, expires, exceptions, mode, requireTicket } = rule;
  return (
    when === undefined &&
    unless === undefined &&
    expires === undefined &&
    exceptions.length === 0 &&
    !requireTicket &&
    mode === "enforce"
  );
}
