#!/usr/bin/env node
import { GatewayError } from "../kernel/error.ts";
import { buildProgram } from "./program.ts";
import { applyUsage } from "./usage.ts";

// Who reads through a pipe may stop before the end, as `head` does: an end like that of SIGPIPE, and no fault of ours.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(141);
});

try {
  await applyUsage(buildProgram()).parseAsync();
} catch (cause) {
  process.stderr.write(`gateway: ${GatewayError.from(cause).message}\n`);
  process.exitCode = 1;
}
