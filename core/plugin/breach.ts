/** The ways in which a plugin fails. Closed: metrics and messages use these words only. */
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

/**
 * A plugin call that failed or exceeded its limits. The chain turns it into `block`, with the reason in the verdict's
 * `error`.
 */
export class PluginBreach extends Error {
  readonly reason: BreachReason;
  readonly detail: string;

  /** `detail` never quotes the plugin or its input. `cause` is the engine's own error, if there is one. */
  constructor(reason: BreachReason, detail: string, options: ErrorOptions = {}) {
    super(`${reason}: ${detail}`, options);
    this.name = "PluginBreach";
    this.reason = reason;
    this.detail = detail;
  }
}
