import type { Protocol } from "./envelope.ts";
import type { Finding, Policy, Verdict } from "./policy.ts";

/** The same policy, of which `allow` counts as abstaining: what it allows is recorded, and has no effect. */
export function tightenPolicy(policy: Policy): Policy {
  const { ref, mode, taints = [] } = policy;
  const readsOutput = (protocol: Protocol): boolean => policy.readsOutput?.(protocol) ?? true;
  const taintsOutput = (protocol: Protocol): boolean => policy.taintsOutput?.(protocol) ?? false;
  return { ref, mode, taints, readsOutput, taintsOutput, evaluate: (action) => tighten(policy.evaluate(action)) };
}

function tighten(verdict: Verdict | Promise<Verdict>): Verdict | Promise<Verdict> {
  return verdict instanceof Promise ? verdict.then(withoutAllow) : withoutAllow(verdict);
}

function withoutAllow(verdict: Verdict): Verdict {
  const findings = verdict.findings.map(
    (finding): Finding => (finding.decision === "allow" ? { ...finding, mode: "shadow" } : finding),
  );
  return { ...verdict, findings, decision: verdict.decision === "allow" ? "abstain" : verdict.decision };
}
