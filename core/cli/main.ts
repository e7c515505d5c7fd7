#!/usr/bin/env node
import { Command } from "commander";
import { identity } from "../gateway.ts";
import { configCommand } from "./config.ts";
import { keysCommand } from "./keys.ts";
import { packCommand } from "./pack.ts";
import { serveCommand } from "./serve.ts";

const program = new Command("gateway")
  .description("Governs what AI agents do: every action is judged by policy and leaves evidence.")
  .version(identity.version)
  .addCommand(serveCommand(), { isDefault: true })
  .addCommand(keysCommand())
  .addCommand(configCommand())
  .addCommand(packCommand())
  .showHelpAfterError("(add --help for usage)")
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2));
for (const command of program.commands) command.exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2));

await program.parseAsync();
