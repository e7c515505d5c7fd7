import type { Command } from "commander";
import { authorExamples } from "./example/author.ts";
import { operateExamples } from "./example/operate.ts";
import { proveExamples } from "./example/prove.ts";
import { reviewExamples } from "./example/review.ts";
import { startExamples } from "./example/start.ts";

/**
 * By the words of a command: lines that a shell runs, each below a `#` that says what for, the one to begin with first.
 * A command that only holds others has none of its own.
 */
const examples: Readonly<Record<string, string>> = {
  ...startExamples,
  ...authorExamples,
  ...reviewExamples,
  ...proveExamples,
  ...operateExamples,
};

/** The examples of a command: its own, or else the first of each command below it. Empty where there are none. */
export function examplesOf(command: Command, path: string): string {
  const own = examples[path]?.trim();
  if (own !== undefined) return own;
  const below = command.commands.map((child) => examplesOf(child, `${path} ${child.name()}`));
  return below.map((text) => text.split("\n").slice(0, 2).join("\n")).join("\n");
}
