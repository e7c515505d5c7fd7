import { Command } from "commander";
import { signingKeysCommand } from "./extension-keys.ts";
import { signCommand } from "./extension-sign.ts";
import { inspectCommand, verifyCommand } from "./extension-verify.ts";
import { benchCommand } from "./plugin-bench.ts";
import { buildCommand } from "./plugin-build.ts";
import { newPluginCommand } from "./plugin-new.ts";
import { testCommand } from "./plugin-test.ts";
import { listPluginsCommand } from "./policies.ts";

/** `gateway plugin`. */
export function pluginCommand(): Command {
  return new Command("plugin")
    .description("WASM plugins")
    .addCommand(newPluginCommand())
    .addCommand(buildCommand())
    .addCommand(testCommand())
    .addCommand(benchCommand())
    .addCommand(signCommand("plugin"))
    .addCommand(verifyCommand("plugin"))
    .addCommand(inspectCommand("plugin"))
    .addCommand(signingKeysCommand())
    .addCommand(listPluginsCommand());
}
