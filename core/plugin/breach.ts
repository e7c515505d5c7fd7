/** Every way a plugin fails to answer. The list is closed: evidence and metrics say these words and no others. */
const breachReasons = [
  "fuel_exhausted",
  "call_depth",
  "memory_cap",
  "trap",
  "host_call",
  "input_cap",
  "output_cap",
  "log_cap",
  "missing_output",
  "plugin_error",
  "malformed_verdict",
  "circuit_open",
  "overloaded",
  "timeout",
  "thread_lost",
] as const;
export type BreachReason = (typeof breachReasons)[number];

/** A plugin that did not answer within its bounds. The chain makes `block` of it, and the verdict's `error` says why. */
export class PluginBreach extends Error {
  readonly reason: BreachReason;
  readonly detail: string;

  /** `detail` is in our words: it never quotes the plugin or its input. `cause` is the engine's own error, if there is one. */
  constructor(reason: BreachReason, detail: string, options: ErrorOptions = {}) {
    super(`${reason}: ${detail}`, options);
    this.name = "PluginBreach";
    this.reason = reason;
    this.detail = detail;
  }
}
