#!/usr/bin/env node
import { applyUsage, tellFailure, wantsJson } from "./failure.ts";
import { buildProgram } from "./program.ts";

// Who reads through a pipe may stop before the end, as `head` does: an end like that of SIGPIPE, and no fault of ours.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(141);
});

try {
  await applyUsage(buildProgram(), wantsJson(process.argv)).parseAsync();
} catch (cause) {
  process.exitCode = tellFailure(cause, wantsJson(process.argv));
}
