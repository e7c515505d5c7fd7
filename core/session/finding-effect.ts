import type { ActionEnvelope } from "../kernel/envelope.ts";
import type { Evaluation } from "../kernel/evaluation.ts";
import type { Finding } from "../kernel/policy.ts";
import { untrustedTaint } from "../kernel/session-state.ts";

/** What an action adds to the risk of its session: of each finding what its rule says, else a tenth of its risk. Shadow adds nothing. */
export function riskOf({ verdicts }: Evaluation): number {
  return verdicts.reduce((sum, { findings }) => findings.reduce((total, each) => total + pointsOf(each), sum), 0);
}

/** What an action brings in that its session is to be tainted with. What nobody gets to see taints nobody. */
export function taintsOf(
  { untrusted }: ActionEnvelope,
  { phase, decision, verdicts, shadow }: Evaluation,
): readonly string[] {
  if (decision !== "allow" && phase === "output") return [];
  const found = [...verdicts, ...shadow].flatMap(({ findings }) => findings.flatMap(({ taints = [] }) => taints));
  const names = untrusted === true && phase === "output" ? [untrustedTaint, ...found] : found;
  return names.length === 0 ? names : [...new Set(names)];
}

function pointsOf({ mode, decision, risk, session_risk: own }: Finding): number {
  if (mode === "shadow") return 0;
  return own ?? (decision === "allow" ? 0 : risk / 10);
}
