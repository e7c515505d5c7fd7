import { Command } from "commander";
import { evidenceEraseCommand } from "./evidence-erase.ts";
import { evidenceExportCommand, evidenceReportCommand } from "./evidence-export.ts";
import { evidenceKeysCommand } from "./evidence-keys.ts";
import { evidencePruneCommand } from "./evidence-prune.ts";
import { evidenceVerifyCommand } from "./evidence-verify.ts";

/** `gateway evidence`. */
export function evidenceCommand(): Command {
  return new Command("evidence")
    .description("the evidence of what agents did")
    .addCommand(evidenceVerifyCommand())
    .addCommand(evidenceExportCommand())
    .addCommand(evidenceReportCommand())
    .addCommand(evidenceKeysCommand())
    .addCommand(evidenceEraseCommand())
    .addCommand(evidencePruneCommand());
}
