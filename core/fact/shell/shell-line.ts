import type { ActionPlaces, GitFact, ShellFacts } from "../../action/action-fact.ts";
import type { EffectTable } from "../effect-table.ts";
import { LineJudge, topLevel } from "./line-judge.ts";
import { isOddText } from "./odd-text.ts";
import { loadSecondOpinion } from "./second-opinion.ts";
import { knownWord } from "./shell-word.ts";

export interface ShellReading {
  readonly shell: ShellFacts;
  /** Every run of git among its commands. */
  readonly git: readonly GitFact[];
  readonly places: ActionPlaces;
}

const maxListLength = 8192;
const maxPlaces = 20;

/** Loads the parsers. Before it has, every command line is `unknown`. */
export async function loadShellParsers(): Promise<void> {
  await loadSecondOpinion();
}

/**
 * Reads a command line, or a program with its arguments. Never throws: a line that cannot be read, is longer than 8 KB, has more
 * than 50 commands, or is read differently by two parsers has the effect `unknown`.
 */
export function readShell(line: string | readonly string[], table: EffectTable): ShellReading {
  const judge = new LineJudge(table);
  try {
    if (typeof line === "string") judge.judgeScript(line, topLevel);
    else judgeList(line, judge);
  } catch {
    return unreadable;
  }
  const isUnknown = judge.effect() === "unknown" && !judge.commands.some(({ effect }) => effect === "unknown");
  const commands = isUnknown
    ? judge.commands.map((command) => ({ ...command, effect: "unknown" as const }))
    : judge.commands;
  const { parsed, dynamic } = judge;
  const places = placesOf(judge);
  return {
    shell: { parsed, dynamic, more: judge.more, effect: judge.effect(), commands },
    git: judge.git.slice(0, maxPlaces),
    places,
  };
}

const unreadable: ShellReading = {
  shell: { parsed: false, dynamic: true, more: true, effect: "unknown", commands: [] },
  git: [],
  places: { hosts: [], paths: [], more: true },
};

/** No shell reads a list: its words are what the program gets. */
function judgeList(words: readonly string[], judge: LineJudge): void {
  const length = words.reduce((sum, word) => sum + Buffer.byteLength(word) + 1, 0);
  const isReadable = length <= maxListLength && !words.some((word) => isOddText(word));
  if (isReadable) judge.judgeCommand(words.map(knownWord), topLevel);
  else judge.judgeScript("\0", topLevel);
}

function placesOf(judge: LineJudge): ActionPlaces {
  const hosts = new Set(judge.commands.flatMap((command) => command.hosts));
  const paths = new Set(judge.commands.flatMap((command) => command.paths).filter(leavesFolder));
  const isCut = hosts.size > maxPlaces || paths.size > maxPlaces;
  return {
    hosts: [...hosts].slice(0, maxPlaces),
    paths: [...paths].slice(0, maxPlaces),
    more: isCut || judge.more || judge.dynamic || !judge.parsed,
  };
}

/** Absolute and home-relative paths, and those that climb. */
function leavesFolder(path: string): boolean {
  return /^[/~]/.test(path) || path.split("/").includes("..");
}
