import {
  type ActionEffect,
  type GitFact,
  type ShellCommand,
  type ShellRedirect,
  strictestEffect,
} from "../../action/action-fact.ts";
import type { EffectTable, ProgramRule } from "../effect-table.ts";
import { readGit } from "../git/git-command.ts";
import { environmentEffect, variableEffect } from "./environment.ts";
import { printsNames } from "./name-list.ts";
import { isOddText } from "./odd-text.ts";
import { folderAfter, pathFrom } from "./path-from.ts";
import { findPrograms } from "./program-check.ts";
import { programEffect } from "./program-effect.ts";
import { addWordPlaces, gitPlaces, wordPlaces } from "./program-place.ts";
import { censusAgrees, takeCensus } from "./second-opinion.ts";
import {
  maxCommands,
  readSyntax,
  type SyntaxAssignment,
  type SyntaxCommand,
  type SyntaxRedirect,
} from "./shell-syntax.ts";
import type { ShellWord } from "./shell-word.ts";
import { unwrap } from "./wrapper.ts";

/** Bytes of a command line. */
const maxLineLength = 8192;
const maxDepth = 4;
const maxScripts = 16;
const maxArguments = 64;
const maxPlaces = 20;
const maxWrappers = 16;

/** Folders whose programs are those of the table. */
const programFolder = /^(?:\/usr(?:\/local)?)?\/s?bin\/([^/]+)$|^\/opt\/homebrew\/bin\/([^/]+)$/;

/** The surroundings of a command: what wraps it, and what is set and redirected for it. */
interface Surroundings {
  readonly wrappers: readonly string[];
  readonly assignments: readonly SyntaxAssignment[];
  readonly redirects: readonly SyntaxRedirect[];
  readonly place: ShellCommand["place"];
  readonly from?: SyntaxCommand | undefined;
  /** The least effect, of the wrappers. */
  readonly least: ActionEffect;
  readonly depth: number;
}

export const topLevel: Surroundings = {
  wrappers: [],
  assignments: [],
  redirects: [],
  place: "top",
  least: "read",
  depth: 0,
};

/** Judges the commands of one line, those of the command lines in it included. */
export class LineJudge {
  readonly commands: ShellCommand[] = [];
  readonly git: GitFact[] = [];
  parsed = true;
  dynamic = false;
  more = false;
  readonly #table: EffectTable;
  #isUnknown = false;
  #scriptCount = 0;
  /** The folder that the commands so far went to; empty for the one that the line begins in. */
  #folder = "";

  constructor(table: EffectTable) {
    this.#table = table;
  }

  /** Returns the strictest effect of all; `unknown` where something could not be judged. */
  effect(): ActionEffect {
    if (this.#isUnknown || !this.parsed || this.commands.length === 0) return "unknown";
    return strictestEffect(this.commands.map(({ effect }) => effect));
  }

  judgeScript(source: string, around: Surroundings): void {
    this.#scriptCount += 1;
    const isTooLong = Buffer.byteLength(source) > maxLineLength;
    if (isTooLong || isOddText(source) || around.depth > maxDepth || this.#scriptCount > maxScripts) {
      this.#refuse();
      return;
    }
    const syntax = readSyntax(source);
    // What the first parser refuses, the second one may take seconds for.
    if (syntax.errors) this.#refuse();
    else if (!syntax.plain) this.#isUnknown = true;
    for (const command of syntax.commands) {
      const where = around.place === "top" ? command.place : around.place;
      this.judgeCommand(command.words, {
        ...around,
        assignments: [...around.assignments, ...command.assignments],
        redirects: command.redirects,
        place: where,
        from: command.from,
      });
    }
    // INVARIANT: nothing has an effect that the second parser does not share; what is unknown anyway needs none.
    if (this.effect() !== "unknown" && !censusAgrees(syntax.census, takeCensus(source))) this.#isUnknown = true;
  }

  /** Judges one command: its wrappers are taken off until a program is left. */
  judgeCommand(words: readonly ShellWord[], around: Surroundings): void {
    const [first, ...rest] = words;
    if (first === undefined) {
      this.#addSetting(around);
      return;
    }
    const name = programName(first);
    const rule = name === null ? undefined : this.#table.wrappers.get(name);
    if (name === null || rule === undefined) {
      this.#addProgram(name, first, rest, around);
      return;
    }
    const inner: Surroundings = {
      ...around,
      wrappers: [...around.wrappers, name].slice(0, maxWrappers),
      least: strictestEffect([around.least, rule.effect]),
      depth: around.depth + (around.wrappers.length >= maxWrappers ? maxDepth : 0),
    };
    const found = unwrap(rule, rest, this.#inputWord(around));
    switch (found.kind) {
      case "words":
        if (inner.depth > maxDepth) this.#refuse();
        else this.judgeCommand(found.words, { ...inner, assignments: [...around.assignments, ...found.assignments] });
        return;
      case "script":
        this.#addScript(name, words, found.source, inner);
        return;
      case "shown":
      case "bare":
        this.#push(name, words, rule.effect, around);
        return;
      case "input":
        this.#push(name, words, "execute", around);
        return;
      default:
        this.#push(name, words, "unknown", around);
        return;
    }
  }

  #refuse(): void {
    this.parsed = false;
    this.more = true;
  }

  #addScript(name: string, words: readonly ShellWord[], source: ShellWord, around: Surroundings): void {
    if (source.text === null || source.doubt !== "known") {
      this.#push(name, words, "unknown", { ...around, wrappers: around.wrappers.slice(0, -1) });
      return;
    }
    if (around.redirects.length > 0) this.#addSetting({ ...around, assignments: [] });
    const before = this.commands.length;
    this.judgeScript(source.text, { ...around, redirects: [], depth: around.depth + 1 });
    // A shell that is given nothing to run still runs what its variables name.
    if (this.commands.length === before) this.#push(name, words, "unknown", around);
  }

  /** A command without a program: variables, or the redirects of a group. */
  #addSetting(around: Surroundings): void {
    const effects = around.assignments.map((assignment) => variableEffect(this.#table.environment, assignment));
    this.#push("", [], strictestEffect(effects), { ...around, assignments: [] }, around.assignments);
  }

  #addProgram(name: string | null, first: ShellWord, rest: readonly ShellWord[], around: Surroundings): void {
    const words = [first, ...rest];
    if (name === null) {
      this.#push(name, words, isOwnProgram(first) ? "execute" : "unknown", around);
      return;
    }
    const rule = this.#table.programs.get(name);
    if (rule?.check === "git") {
      this.#addGit(name, words, around);
      return;
    }
    const effect = rule === undefined ? "unknown" : programEffect(rule, rest, this.#table.environment);
    this.#push(name, words, effect, around, [], rule);
    if (name === "cd" || name === "pushd") this.#folder = folderAfter(this.#folder, rest);
    if (rule?.check !== "find") return;
    for (const program of findPrograms(rest)) {
      this.judgeCommand(program, {
        ...around,
        redirects: [],
        wrappers: [...around.wrappers, name].slice(0, maxWrappers),
      });
    }
  }

  #addGit(name: string, words: readonly ShellWord[], around: Surroundings): void {
    const environment = around.assignments
      .filter((assignment) => environmentEffect(this.#table.environment, assignment) !== "read")
      .map((assignment) => assignment.name);
    const { fact, hosts } = readGit(
      words.slice(1).map((word) => (word.doubt === "known" ? word.text : null)),
      environment,
      this.#folder,
    );
    this.git.push(fact);
    this.#push(name, words, fact.effect, around, [], gitPlaces(fact), hosts);
  }

  /** The words that `xargs` appends: names of files, where a program that lists them is before it in the pipe, or a text. */
  #inputWord({ from }: Surroundings): ShellWord {
    return { text: null, doubt: from !== undefined && printsNames(from, this.#table) ? "names" : "output" };
  }

  #push(
    name: string | null,
    words: readonly ShellWord[],
    effect: ActionEffect,
    around: Surroundings,
    variables: readonly SyntaxAssignment[] = [],
    rule?: ProgramRule,
    gitHosts: readonly string[] = [],
  ): void {
    if (this.commands.length >= maxCommands) {
      this.more = true;
      this.#isUnknown = true;
      return;
    }
    const { environment } = this.#table;
    const redirects = around.redirects.map(({ op, target }): ShellRedirect => ({ op, path: target.text }));
    const { hosts, paths } = wordPlaces(rule, words.slice(1));
    const redirected = { hosts: new Set([...hosts, ...gitHosts]), paths: new Set(paths) };
    for (const { path } of redirects) if (path !== null && !isDescriptor(path)) addRedirect(path, redirected);
    for (const { value } of [...around.assignments, ...variables])
      if (value.text !== null) addWordPlaces(value.text, redirected);
    if (words.some(({ text }) => text === null)) this.dynamic = true;
    if (variables.some(({ value }) => value.text === null)) this.dynamic = true;
    this.commands.push({
      name,
      argv: this.#cut(
        words.map(({ text }) => text),
        maxArguments,
      ),
      wrappers: around.wrappers,
      env: this.#cut(
        [...around.assignments, ...variables].map((assignment) => assignment.name),
        maxPlaces,
      ),
      effect: strictestEffect([
        effect,
        around.least,
        ...around.assignments.map((assignment) => environmentEffect(environment, assignment)),
        ...around.redirects.map(redirectEffect),
      ]),
      redirects: this.#cut(redirects, maxPlaces),
      hosts: this.#cut([...redirected.hosts], maxPlaces),
      paths: this.#cut([...new Set([...redirected.paths].map((path) => pathFrom(this.#folder, path)))], maxPlaces),
      place: around.place,
    });
  }

  #cut<T>(list: readonly T[], count: number): readonly T[] {
    if (list.length > count) this.more = true;
    return list.slice(0, count);
  }
}

/** Returns the name of a program of the system; null for a computed one and for a program of another folder. */
function programName({ text, doubt }: ShellWord): string | null {
  if (text === null || doubt !== "known" || text === "") return null;
  if (!text.includes("/")) return text;
  const [, name, brewed] = programFolder.exec(text) ?? [];
  return name ?? brewed ?? null;
}

/** An option is no program: it belongs to `time`, as a shell or as a program reads it. */
function isOwnProgram({ text, doubt }: ShellWord): boolean {
  return text?.includes("/") === true && !text.startsWith("-") && doubt === "known";
}

const sinks = new Set(["/dev/null", "/dev/stdout", "/dev/stderr"]);

function isDescriptor(path: string): boolean {
  return /^\d+-?$|^-$/.test(path);
}

function addRedirect(path: string, places: { readonly hosts: Set<string>; readonly paths: Set<string> }): void {
  if (sinks.has(path)) return;
  places.paths.add(path);
  addWordPlaces(path, places);
}

function redirectEffect({ op, target: { text, doubt } }: SyntaxRedirect): ActionEffect {
  if (op.startsWith("<<")) return "read";
  if (text === null || doubt !== "known") return "unknown";
  if (/\/dev\/(?:tcp|udp)\b/.test(text)) return "network";
  if (op === "<&" || op === ">&") {
    if (isDescriptor(text)) return "read";
  }
  if (op === "<") return "read";
  return sinks.has(text) ? "read" : "write";
}
