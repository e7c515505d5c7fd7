import { Command } from "commander";
import { signCommand } from "./extension-sign.ts";
import { inspectCommand, verifyCommand } from "./extension-verify.ts";

/** `gateway plugin`. */
export function pluginCommand(): Command {
  return new Command("plugin")
    .description("WASM plugins")
    .addCommand(signCommand("plugin"))
    .addCommand(verifyCommand("plugin"))
    .addCommand(inspectCommand("plugin"));
}
