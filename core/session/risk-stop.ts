import type { ActionEnvelope } from "../kernel/envelope.ts";
import type { Evaluation } from "../kernel/evaluation.ts";
import type { Clock } from "../kernel/port.ts";
import { riskOf } from "./finding-effect.ts";
import type { KillSwitch } from "./kill-switch.ts";
import type { RiskLimit } from "./risk-meter.ts";
import type { SessionEntry } from "./session-entry.ts";

export interface RiskParts {
  readonly clock: Clock;
  readonly limit: RiskLimit;
  readonly killSwitch: Pick<KillSwitch, "ref" | "isKilled" | "kill">;
  /** Called when a session came to the threshold while risk is in shadow mode. */
  readonly onWouldKill: () => void;
}

/** Whether the kill switch has blocked it: what a stopped session attempts adds nothing to its risk. */
export function isStopped({ killSwitch }: RiskParts, { verdicts }: Evaluation): boolean {
  return verdicts.some(({ policy, decision }) => policy === killSwitch.ref && decision === "block");
}

/**
 * Adds what policy found to the risk of the session, which is stopped when this returns where that is too much. Whether
 * there was anything to add.
 */
export function raiseRisk(
  parts: RiskParts,
  { risk }: SessionEntry,
  action: ActionEnvelope,
  evaluation: Evaluation,
): boolean {
  const points = riskOf(evaluation);
  if (points === 0) return false;
  const { clock, limit, onWouldKill } = parts;
  const now = clock();
  const before = risk.score(now);
  const score = risk.add(points, now);
  if (limit.killAt === 0 || score < limit.killAt) return true;
  if (limit.mode === "enforce") stop(parts, action, score);
  else if (before < limit.killAt) onWouldKill();
  return true;
}

function stop({ killSwitch, limit }: RiskParts, { tenant, session }: ActionEnvelope, score: number): void {
  // Several may come to it at once.
  const target = { scope: "session", subject: session.id } as const;
  if (killSwitch.isKilled(tenant, target)) return;
  const note = `its risk came to ${score} of ${limit.killAt}`;
  // Where it cannot be recorded now, the switch tries again.
  void killSwitch.kill(tenant, { ...target, reason: "risk", by: null, note });
}
