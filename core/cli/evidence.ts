import { Command } from "commander";
import { evidenceKeysCommand } from "./evidence-keys.ts";
import { evidenceVerifyCommand } from "./evidence-verify.ts";

/** `gateway evidence`. */
export function evidenceCommand(): Command {
  return new Command("evidence")
    .description("the evidence of what agents did")
    .addCommand(evidenceVerifyCommand())
    .addCommand(evidenceKeysCommand());
}
