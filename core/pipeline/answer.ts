import type { AuthorizedAction } from "../kernel/authorized-action.ts";
import type { Evaluation } from "../kernel/evaluation.ts";
import type { Json } from "../kernel/json.ts";
import type { Redaction } from "../kernel/policy.ts";

/**
 * What an upstream answered, for policy to judge, and how a reply is made of what policy leaves of it: of that and
 * nothing else, so that what was redacted is in no reply.
 */
export interface Answer<Reply> {
  readonly status: "success" | "error";
  readonly output: Json;
  /** `redactions` are those that were applied to make this output. */
  readonly makeReply: (output: Json, redactions: readonly Redaction[]) => Reply | Promise<Reply>;
}

/** Sends one permitted action to where it belongs. Rejects when no answer can be vouched for. */
export type Dispatch<Reply> = (permission: AuthorizedAction) => Promise<Answer<Reply> | StreamedAnswer<Reply>>;

/** Asks policy about an answer, or a part of one. */
export type Judge = (output: Json) => Promise<Evaluation>;

/** An answer that policy stopped on its way. */
export interface Stopped {
  readonly stopped: Evaluation;
}

/** An answer that comes event by event. */
export interface StreamedAnswer<Reply> {
  /**
   * Lets go what policy has seen. Resolves with the answer once it is whole, its last events still held back, or with
   * the evaluation that stopped it. Rejects with what ended the stream early.
   */
  readonly flow: (judge: Judge) => Promise<Answer<Reply> | Stopped>;
}
