import type { ActionEnvelope, Protocol } from "../kernel/envelope.ts";
import type { Evaluation } from "../kernel/evaluation.ts";
import type { PolicyRef } from "../kernel/policy.ts";

/** The chain, as the road needs it. */
export interface Evaluator {
  evaluate(action: ActionEnvelope): Evaluation | Promise<Evaluation>;
  /** Whether the answer's text may change what is said of it. */
  readsOutput(protocol: Protocol): boolean;
}

const chainRef: PolicyRef = { kind: "external", name: "chain", version: "1", digest: "", signer: null };

/**
 * The chain's answer, or `block` where the chain itself throws.
 * The chain already turns each policy's failure into a block; this is the wall behind that one.
 */
export async function evaluateOrBlock(
  chain: Evaluator,
  action: ActionEnvelope,
  newId: () => string,
): Promise<Evaluation> {
  try {
    return await chain.evaluate(action);
  } catch (cause) {
    const error = `policy_error: ${cause instanceof Error ? cause.message : String(cause)}`;
    return {
      id: newId(),
      actionId: action.id,
      phase: action.phase,
      decision: "block",
      verdicts: [{ policy: chainRef, decision: "block", findings: [], risk: 100, error, durationUs: 0 }],
      shadow: [],
      determining: [],
      byDefault: false,
      approvals: 1,
      risk: 100,
      redactions: [],
      durationUs: 0,
    };
  }
}
