import type { CancelSignal } from "../../action/cancellation.ts";
import { strictest } from "../../action/decision.ts";
import type { ActionEnvelope } from "../../action/envelope.ts";
import { isJsonObject } from "../../action/json.ts";
import type { Finding, Policy, Verdict } from "../../action/policy.ts";
import { mergeRedactions } from "../../action/redaction.ts";
import { checkVerdict } from "../verdict.ts";
import { type OutputScan, scanOutput } from "./output-scan.ts";
import { Reading } from "./reading.ts";

/**
 * Asks a policy about an answer, and again about the answer as a reader takes it where that says more. Returns one answer
 * of both: the stricter decision, and redactions of the answer as it stands. Throws and rejects as the policy does.
 */
export function judgeAnswer(policy: Policy, action: ActionEnvelope, scan: OutputScan, cancel?: CancelSignal): unknown {
  const answer: unknown = policy.evaluate(action, cancel);
  const again = (first: unknown): unknown => judgeAgain(policy, action, scan, cancel, first);
  return answer instanceof Promise ? answer.then(again) : again(answer);
}

/** Returns what a reader sees in an answer beside its texts one by one; undefined where there is nothing. */
export function scanAnswer({ phase, output }: ActionEnvelope): OutputScan | undefined {
  return phase === "output" && isJsonObject(output) ? scanOutput(output) : undefined;
}

function judgeAgain(
  policy: Policy,
  action: ActionEnvelope,
  scan: OutputScan,
  cancel: CancelSignal | undefined,
  answer: unknown,
): unknown {
  const first = checkVerdict(answer, action);
  // What is no verdict, and what is blocked, is not changed by more.
  if (typeof first === "string" || first.decision === "block") return answer;
  const own = mergeRedactions(first.redactions ?? []);
  const reading = new Reading(action, scan, own);
  const again: unknown = policy.evaluate(reading.action, cancel);
  if (again instanceof Promise) return again.then((second: unknown) => joinVerdicts(first, second, reading));
  return joinVerdicts(first, again, reading);
}

/** Throws TypeError for an answer that is no verdict. */
function joinVerdicts(first: Verdict, answer: unknown, reading: Reading): unknown {
  const second = checkVerdict(answer, reading.action);
  if (typeof second === "string") throw new TypeError(second);
  const findings = second.findings
    .filter(({ rule, decision }) => !first.findings.some((each) => each.rule === rule && each.decision === decision))
    .map((finding) => placeFinding(finding, reading));
  const redactions = [...(first.redactions ?? []), ...reading.place(second.redactions ?? [])];
  return {
    ...second,
    decision: joinDecisions(first.decision, second.decision),
    findings: [...first.findings, ...findings],
    risk: Math.max(first.risk, second.risk),
    ...(redactions.length === 0 ? {} : { redactions: mergeRedactions(redactions) }),
  };
}

function joinDecisions(first: Verdict["decision"], second: Verdict["decision"]): Verdict["decision"] {
  if (first === "abstain") return second;
  return second === "abstain" ? first : strictest(first, second);
}

function placeFinding(finding: Finding, reading: Reading): Finding {
  return finding.pointer === undefined ? finding : { ...finding, pointer: reading.placePointer(finding.pointer) };
}
