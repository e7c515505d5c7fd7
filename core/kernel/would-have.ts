import type { Decision } from "./decision.ts";
import type { Evaluation } from "./evaluation.ts";
import type { PolicyRef } from "./policy.ts";

/** What a rule in shadow mode, or of a policy in shadow mode, would have made of an action. */
export interface WouldHave {
  readonly decision: Exclude<Decision, "allow">;
  readonly rule: string;
  readonly policy: Pick<PolicyRef, "kind" | "name">;
}

/** The most that is told of one evaluation. */
const mostTold = 32;

/** What would have held or blocked the action, were it enforced: each rule once, in the order of the chain. */
export function wouldHave({ verdicts, shadow }: Evaluation): readonly WouldHave[] {
  const found = new Map<string, WouldHave>();
  for (const { policy, findings } of verdicts) {
    for (const { rule, decision, mode } of findings) if (mode === "shadow") take(found, policy, rule, decision);
  }
  for (const { policy, findings } of shadow) {
    for (const { rule, decision } of findings) take(found, policy, rule, decision);
  }
  return [...found.values()];
}

function take(found: Map<string, WouldHave>, policy: PolicyRef, rule: string, decision: Decision): void {
  if (decision === "allow" || found.size === mostTold) return;
  const key = JSON.stringify([policy.kind, policy.name, rule, decision]);
  if (!found.has(key)) found.set(key, { decision, rule, policy: { kind: policy.kind, name: policy.name } });
}
