import { Command } from "commander";
import { identity } from "../compose/identity.ts";
import { approvalsCommand } from "./approvals.ts";
import { backupCommand } from "./backup.ts";
import { breakGlassCommand } from "./break-glass.ts";
import { completionCommand } from "./completion.ts";
import { configCommand } from "./config.ts";
import { doctorCommand } from "./doctor/doctor.ts";
import { evidenceCommand } from "./evidence.ts";
import { explainCommand } from "./explain.ts";
import { providersCommand, upstreamsCommand } from "./fleet.ts";
import { completeHelp } from "./help.ts";
import { initCommand } from "./init.ts";
import { keysCommand } from "./keys.ts";
import { manifestsCommand } from "./manifests.ts";
import { usageCommand } from "./model-usage.ts";
import { packCommand } from "./pack.ts";
import { pluginCommand } from "./plugin.ts";
import { policiesCommand } from "./policies.ts";
import { restoreCommand } from "./restore.ts";
import { serveCommand } from "./serve.ts";
import { sessionsCommand } from "./sessions.ts";
import { simulateCommand } from "./simulate.ts";
import { testActionCommand } from "./test-action.ts";
import { ticketsCommand } from "./tickets.ts";
import { webhookCommand } from "./webhook.ts";

/** The whole command line, by what its user is about to do. */
export function buildProgram(): Command {
  const program = new Command("gateway")
    .description("Governs what AI agents do: every action is judged by policy and leaves evidence.")
    .version(identity.version)
    .commandsGroup("Start:")
    .addCommand(initCommand())
    .addCommand(doctorCommand())
    .addCommand(serveCommand())
    .addCommand(keysCommand())
    .addCommand(configCommand())
    .addCommand(completionCommand())
    .commandsGroup("Author policy:")
    .addCommand(packCommand())
    .addCommand(pluginCommand())
    .addCommand(testActionCommand())
    .addCommand(simulateCommand())
    .addCommand(policiesCommand())
    .commandsGroup("Review:")
    .addCommand(approvalsCommand())
    .addCommand(explainCommand())
    .addCommand(breakGlassCommand())
    .addCommand(sessionsCommand())
    .addCommand(ticketsCommand())
    .addCommand(manifestsCommand())
    .commandsGroup("Prove:")
    .addCommand(evidenceCommand())
    .commandsGroup("Operate:")
    .addCommand(usageCommand())
    .addCommand(upstreamsCommand())
    .addCommand(providersCommand())
    .addCommand(webhookCommand())
    .addCommand(backupCommand())
    .addCommand(restoreCommand());
  return completeHelp(program);
}
