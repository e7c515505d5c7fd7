import { Command } from "commander";
import { configCommand } from "../../../core/cli/config.ts";
import { keysCommand } from "../../../core/cli/keys.ts";

/** A program of the commands that need no gateway, for tests to run as a process. */
await new Command("gateway").addCommand(keysCommand()).addCommand(configCommand()).parseAsync();
