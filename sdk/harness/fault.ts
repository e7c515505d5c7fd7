/** Why a plugin gave no verdict; the gateway blocks, and says the same word in its evidence. */
export type FaultReason =
  | "trap"
  | "plugin_error"
  | "missing_output"
  | "malformed_verdict"
  | "host_call"
  | "output_cap"
  | "log_cap"
  | "input_cap";

/** A plugin that did not answer as the contract says. */
export class PluginFault extends Error {
  readonly reason: FaultReason;

  constructor(reason: FaultReason, detail: string, options?: ErrorOptions) {
    super(`${reason}: ${detail}`, options);
    this.name = "PluginFault";
    this.reason = reason;
  }
}
