import { execFileSync } from "node:child_process";
import type { Command } from "commander";

/** A command, and the words that call it. */
export interface CommandPath {
  /** `gateway approvals list` */
  readonly path: string;
  readonly command: Command;
}

/** A command and all below it. */
export function everyCommand(command: Command, parents: readonly string[] = []): readonly CommandPath[] {
  const path = [...parents, command.name()];
  return [{ path: path.join(" "), command }, ...command.commands.flatMap((child) => everyCommand(child, path))];
}

/** Those that do something, and do not only hold others. */
export function everyLeaf(command: Command): readonly CommandPath[] {
  return everyCommand(command).filter((each) => each.command.commands.length === 0);
}

/** What the shell would hand over of a line that calls `gateway`: it reads quotation marks its own way. */
export function argumentsOf(line: string): readonly string[] {
  const call = /\bgateway ((?:'[^']*'|"[^"]*"|[^|<>)'"])*)/.exec(line)?.[1] ?? "";
  const words = execFileSync("bash", ["--norc", "-c", `set -f; set -- ${call}\nprintf '%s\\0' "$@"`], {
    encoding: "utf8",
  });
  return words.split("\0").slice(0, -1);
}
