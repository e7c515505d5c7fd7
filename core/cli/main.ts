#!/usr/bin/env node
import { Command } from "commander";
import { identity } from "../instance.ts";
import { GatewayError } from "../kernel/error.ts";
import { approvalsCommand } from "./approvals.ts";
import { backupCommand } from "./backup.ts";
import { breakGlassCommand } from "./break-glass.ts";
import { configCommand } from "./config.ts";
import { evidenceCommand } from "./evidence.ts";
import { keysCommand } from "./keys.ts";
import { manifestsCommand } from "./manifests.ts";
import { packCommand } from "./pack.ts";
import { pluginCommand } from "./plugin.ts";
import { policiesCommand } from "./policies.ts";
import { restoreCommand } from "./restore.ts";
import { serveCommand } from "./serve.ts";
import { sessionsCommand } from "./sessions.ts";
import { simulateCommand } from "./simulate.ts";
import { testActionCommand } from "./test-action.ts";
import { ticketsCommand } from "./tickets.ts";
import { applyUsage } from "./usage.ts";
import { webhookCommand } from "./webhook.ts";

const program = new Command("gateway")
  .description("Governs what AI agents do: every action is judged by policy and leaves evidence.")
  .version(identity.version)
  .addCommand(serveCommand())
  .addCommand(keysCommand())
  .addCommand(configCommand())
  .addCommand(packCommand())
  .addCommand(pluginCommand())
  .addCommand(approvalsCommand())
  .addCommand(breakGlassCommand())
  .addCommand(evidenceCommand())
  .addCommand(webhookCommand())
  .addCommand(sessionsCommand())
  .addCommand(policiesCommand())
  .addCommand(ticketsCommand())
  .addCommand(manifestsCommand())
  .addCommand(testActionCommand())
  .addCommand(simulateCommand())
  .addCommand(backupCommand())
  .addCommand(restoreCommand());

// Who reads through a pipe may stop before the end, as `head` does: an end like that of SIGPIPE, and no fault of ours.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(141);
});

try {
  await applyUsage(program).parseAsync();
} catch (cause) {
  process.stderr.write(`gateway: ${GatewayError.from(cause).message}\n`);
  process.exitCode = 1;
}
