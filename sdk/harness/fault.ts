/** The reason why a plugin failed; the gateway blocks and reports the same word. */
export type FaultReason =
  | "trap"
  | "plugin_error"
  | "missing_output"
  | "malformed_verdict"
  | "host_call"
  | "output_cap"
  | "log_cap"
  | "input_cap";

/** A plugin that violated the contract. */
export class PluginFault extends Error {
  readonly reason: FaultReason;

  constructor(reason: FaultReason, detail: string, options?: ErrorOptions) {
    super(`${reason}: ${detail}`, options);
    this.name = "PluginFault";
    this.reason = reason;
  }
}
