import { compileGlob } from "../action/glob.ts";
import { didYouMean } from "../action/suggestion.ts";
import type { FaultList, Place } from "../config/fault.ts";
import type { Rule } from "./rule.ts";

/**
 * Applies the operator's globs of rules that run in shadow mode. A glob that matches no rule is a fault: the rule would
 * be enforced against the operator's intent. So are globs that match every rule.
 */
export function applyShadowRules(
  rules: readonly Rule[],
  globs: readonly string[],
  place: Place,
  faults: FaultList,
): Rule[] {
  const tried = new Set<Rule>();
  for (const pattern of globs) {
    const glob = compileGlob(pattern);
    const found = rules.filter(({ id }) => glob.test(id));
    for (const rule of found) tried.add(rule);
    if (found.length > 0) continue;
    const ids = rules.map(({ id }) => id);
    faults.addAt(
      place,
      `\`shadow_rules\`: expected a rule of this pack, got \`${pattern}\`${didYouMean(pattern, ids)}`,
    );
  }
  if (tried.size === rules.length)
    faults.addAt(place, "`shadow_rules`: expected to leave a rule in force; `mode: shadow` tries out the whole pack");
  return rules.map((rule) => (tried.has(rule) ? { ...rule, mode: "shadow" } : rule));
}
