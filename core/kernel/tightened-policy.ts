import type { ActionEnvelope, Protocol } from "./envelope.ts";
import type { Finding, Policy, Verdict } from "./policy.ts";

/** A policy that answers at once. */
export interface ImmediatePolicy extends Policy {
  evaluate(action: ActionEnvelope): Verdict;
}

/** The same policy, of which `allow` counts as abstaining: what it allows is recorded, and has no effect. */
export function tightenPolicy(policy: ImmediatePolicy): ImmediatePolicy {
  const { ref, mode } = policy;
  const readsOutput = (protocol: Protocol): boolean => policy.readsOutput?.(protocol) ?? true;
  return { ref, mode, readsOutput, evaluate: (action) => withoutAllow(policy.evaluate(action)) };
}

function withoutAllow(verdict: Verdict): Verdict {
  const findings = verdict.findings.map(
    (finding): Finding => (finding.decision === "allow" ? { ...finding, mode: "shadow" } : finding),
  );
  return { ...verdict, findings, decision: verdict.decision === "allow" ? "abstain" : verdict.decision };
}
