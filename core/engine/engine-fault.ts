/** The reasons for which an engine could not answer; each blocks the action. A closed list: it labels a metric. */
export const engineFailures = [
  ...(["input", "evaluation", "answer", "lost"] as const),
  ...(["unreachable", "timeout", "status", "overloaded", "circuit_open", "cancelled"] as const),
] as const;
export type EngineFailure = (typeof engineFailures)[number];

/**
 * An engine could not answer, so that the chain blocks. `input`: the action does not fit what the engine's policies
 * expect. `evaluation`: a policy failed. `answer`: the answer is no answer. `lost`: the engine itself is gone. The others are
 * those of an engine's server. The message holds no value of the action.
 */
export class EngineError extends Error {
  readonly reason: EngineFailure;
  /** `sha256:<hex>` over the answer of a server; undefined where it gave none, or one that is too large. */
  readonly answerDigest: string | undefined;

  constructor(reason: EngineFailure, message: string, answerDigest?: string) {
    super(message);
    this.name = "EngineError";
    this.reason = reason;
    this.answerDigest = answerDigest;
  }
}
