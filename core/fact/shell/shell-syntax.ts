import {
  type Assignment,
  type Command,
  type CommandArgument,
  type For,
  forEachChild,
  type ParameterExpansionPart,
  type ParsedScript,
  type Pipeline,
  parse,
  type Redirection,
  type SyntaxNode,
  type TestCommand,
} from "unbash";
import { isPlainArithmetic, readWord, readWords, type ShellWord, type VariableScope } from "./shell-word.ts";

export interface SyntaxAssignment {
  readonly name: string;
  readonly value: ShellWord;
}

export interface SyntaxRedirect {
  readonly op: string;
  readonly target: ShellWord;
}

/** A command as written. One without words sets variables, or redirects a group. */
export interface SyntaxCommand {
  readonly words: readonly ShellWord[];
  readonly assignments: readonly SyntaxAssignment[];
  readonly redirects: readonly SyntaxRedirect[];
  readonly place: "top" | "pipe" | "substitution";
  /** The command before it in its pipe. */
  readonly from?: SyntaxCommand | undefined;
}

/** The counts that two parsers must agree on. */
export interface SyntaxCensus {
  /** Names of the commands as written, in their order. */
  readonly names: readonly string[];
  readonly wordCount: number;
  readonly redirectCount: number;
}

export interface ShellSyntax {
  readonly commands: readonly SyntaxCommand[];
  readonly census: SyntaxCensus;
  /** False where a part changes what other parts mean: functions, coprocesses, arithmetic with names. */
  readonly plain: boolean;
  readonly errors: boolean;
}

export const maxCommands = 50;
const maxNodes = 1_000;
/** Each level of `$(…)` is some eight nodes, and is parsed anew. */
const maxDepth = 60;

/** A bound for the first parser, which looks for the end of each `${` in the rest of the text. */
const maxBracedVariables = 200;
/** A bound for the second parser, which tries many readings of brackets that match nothing. */
const maxBrackets = 1_000;

const tooLarge: ShellSyntax = {
  commands: [],
  census: { names: [], wordCount: 0, redirectCount: 0 },
  plain: false,
  errors: true,
};

function countOf(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}

/**
 * Reads a script. More than 1,000 nodes, 1,000 brackets and braces or 200 times `${`, or nodes nested more than 60 deep, are an
 * error: each bound keeps the time of a parser from growing with the square of the text.
 */
export function readSyntax(source: string): ShellSyntax {
  if (countOf(source, /\$\{/g) > maxBracedVariables || countOf(source, /[[\]{}]/g) > maxBrackets) return tooLarge;
  const script = parse(source);
  const scope = readScope(script);
  if (scope === null) return tooLarge;
  const reader = new SyntaxReader(scope);
  reader.visit(script, { place: "top" });
  return reader.result();
}

interface Place {
  readonly place: SyntaxCommand["place"];
  readonly from?: SyntaxCommand | undefined;
}

/** Names that are words of the grammar to the second parser: its words are not counted there. */
const declarations = new Set(["declare", "typeset", "export", "readonly", "local", "unset", "unsetenv", "["]);

class SyntaxReader {
  readonly #scope: VariableScope;
  readonly #commands: SyntaxCommand[] = [];
  readonly #names: { readonly name: string; readonly pos: number }[] = [];
  #wordCount = 0;
  #redirectCount = 0;
  #plain = true;
  #errors = false;

  constructor(scope: VariableScope) {
    this.#scope = scope;
  }

  result(): ShellSyntax {
    const names = this.#names.map(({ name }) => name);
    return {
      commands: this.#commands,
      census: { names, wordCount: this.#wordCount, redirectCount: this.#redirectCount },
      plain: this.#plain,
      errors: this.#errors,
    };
  }

  visit(node: SyntaxNode, place: Place): void {
    if (this.#commands.length > maxCommands) {
      this.#errors = true;
      return;
    }
    switch (node.type) {
      case "Script":
        if ((node.errors?.length ?? 0) > 0) this.#errors = true;
        break;
      case "Pipeline":
        this.#visitPipeline(node, place);
        return;
      case "Command":
        this.#addCommand(node, place);
        break;
      case "Redirected":
        this.#push({ words: [], assignments: [], redirects: this.#readRedirects(node.redirects), place: place.place });
        break;
      case "For":
        this.#addLoop(node, place);
        break;
      case "TestCommand":
        this.#addTest(node, place);
        break;
      case "CommandExpansion":
      case "ProcessSubstitution":
      case "ArithmeticCommandExpansion":
        if (node.script === undefined) this.#errors = true;
        this.#visitChildren(node, { place: "substitution" });
        return;
      case "Function":
      case "Coproc":
      case "Select":
      case "ArithmeticFor":
        this.#plain = false;
        break;
      case "ArithmeticCommand":
        if (!isPlainArithmetic(`((${node.body}))`)) this.#plain = false;
        break;
      case "ArithmeticExpansion":
        if (!isPlainArithmetic(node.text)) this.#plain = false;
        break;
      case "ParameterExpansion":
        if (!isPlainExpansion(node)) this.#plain = false;
        break;
      case "Assignment":
        if (node.index !== undefined) this.#plain = false;
        break;
      case "Redirect":
      case "HereString":
      case "HereDoc":
        this.#redirectCount += 1;
        if (node.type === "HereDoc" && node.closing === undefined) this.#errors = true;
        break;
    }
    this.#visitChildren(node, place);
  }

  #visitChildren(node: SyntaxNode, place: Place): void {
    forEachChild(node, (child) => this.visit(child, place));
  }

  #visitPipeline(node: Pipeline, place: Place): void {
    const inner = node.commands.length > 1 && place.place === "top" ? "pipe" : place.place;
    let from: SyntaxCommand | undefined;
    for (const command of node.commands) {
      const start = this.#commands.length;
      this.visit(command, { place: inner, from });
      from = command.type === "Command" ? this.#commands[start] : undefined;
    }
  }

  #addCommand(node: Command, { place: where, from }: Place): void {
    const args = node.suffix.filter((part): part is CommandArgument => !isRedirection(part));
    const words = node.name === undefined ? [] : readWords(node.name, this.#scope);
    const rest = args.flatMap((arg) =>
      arg.type === "Assignment" ? [this.#assignmentWord(arg)] : readWords(arg, this.#scope),
    );
    const assignments = node.prefix.filter((part): part is Assignment => part.type === "Assignment");
    this.#push({
      words: [...words, ...rest],
      assignments: assignments.map((part) => this.#readAssignment(part)),
      redirects: this.#readRedirects([...node.prefix, ...node.suffix].filter(isRedirection)),
      place: where,
      from,
    });
    if (node.name === undefined) return;
    this.#names.push({ name: node.name.text, pos: node.name.pos });
    if (!declarations.has(node.name.text)) this.#wordCount += args.length;
  }

  #push(command: SyntaxCommand): void {
    this.#commands.push(command);
  }

  #readAssignment(node: Assignment): SyntaxAssignment {
    return { name: node.name, value: this.#assignedValue(node) };
  }

  #assignmentWord(node: Assignment): ShellWord {
    const { text, doubt } = this.#assignedValue(node);
    return { text: text === null ? null : `${node.name}=${text}`, doubt };
  }

  #assignedValue({ value, index }: Assignment): ShellWord {
    if (value.type === "ArrayValue" || index !== undefined) return { text: null, doubt: "computed" };
    return readWord(value, this.#scope);
  }

  #readRedirects(nodes: readonly Redirection[]): readonly SyntaxRedirect[] {
    return nodes.map((node) => {
      if (node.type !== "Redirect") return { op: node.operator, target: { text: null, doubt: "known" } };
      const target = node.target === undefined ? undefined : readWord(node.target, this.#scope);
      return { op: node.operator, target: target ?? { text: null, doubt: "computed" } };
    });
  }

  /** A loop's list appears as a command of its own: the names of files in it are found nowhere else. */
  #addLoop(node: For, { place: where }: Place): void {
    if (node.wordlist === undefined) this.#plain = false;
    const list = (node.wordlist ?? []).flatMap((word) => readWords(word, this.#scope));
    const name = readWord(node.name, this.#scope);
    const variable = { name: name.text ?? "IFS", value: { text: "", doubt: "known" as const } };
    this.#push({ words: [], assignments: [variable], redirects: [], place: where });
    this.#push({ words: [{ text: "for", doubt: "known" }, ...list], assignments: [], redirects: [], place: where });
  }

  #addTest(node: TestCommand, { place: where }: Place): void {
    const words: ShellWord[] = [];
    const collect = (child: SyntaxNode): void => {
      if (child.type === "TestUnary" || child.type === "TestBinary")
        words.push({ text: child.operator, doubt: "known" });
      if (child.type === "Word") words.push(readWord(child, this.#scope));
      else forEachChild(child, collect);
    };
    forEachChild(node, collect);
    this.#names.push({ name: "[[", pos: node.pos });
    this.#push({ words: [{ text: "[[", doubt: "known" }, ...words], assignments: [], redirects: [], place: where });
  }
}

/** Transformations, indirection, subscripts and slices evaluate the text of a variable. */
function isPlainExpansion({ operation, index, prefix }: ParameterExpansionPart): boolean {
  return operation?.type !== "Transform" && operation?.type !== "Slice" && index === undefined && prefix !== "!";
}

function isRedirection(node: SyntaxNode): node is Redirection {
  return node.type === "Redirect" || node.type === "HereString" || node.type === "HereDoc";
}

const assigners = new Set(["read", "mapfile", "readarray", "getopts", "printf", "let", ...declarations]);

/**
 * Finds the names that the script sets: a loop variable is known where nothing else sets it and no word of its list is a flag.
 * Null for a script that is too large.
 */
function readScope(script: ParsedScript): VariableScope | null {
  const loops = new Set<string>();
  const assigned = new Set<string>();
  let nodeCount = 0;
  const empty: VariableScope = { loops, assigned: new Set(["HOME", "PWD"]) };
  let depth = 0;
  let isTooLarge = false;
  const visit = (node: SyntaxNode): void => {
    nodeCount += 1;
    isTooLarge ||= nodeCount > maxNodes || depth > maxDepth;
    if (isTooLarge) return;
    noteAssigned(node, assigned);
    if (node.type === "For") {
      const list = (node.wordlist ?? []).flatMap((word) => readWords(word, empty));
      const isKnown =
        !mayBeInherited(node.name.value) && node.wordlist !== undefined && list.every((word) => isName(word));
      if (isKnown && !loops.has(node.name.value)) loops.add(node.name.value);
      else assigned.add(node.name.value);
    }
    depth += 1;
    forEachChild(node, visit);
    depth -= 1;
  };
  visit(script);
  return isTooLarge ? null : { loops, assigned };
}

/** A name that the environment may hold: before the loop, and after an empty one, it stands for that value. */
function mayBeInherited(name: string): boolean {
  return !/^[a-z]/.test(name) || name.endsWith("_proxy");
}

function noteAssigned(node: SyntaxNode, assigned: Set<string>): void {
  if (node.type === "Assignment") assigned.add(node.name);
  if (node.type === "ArithmeticWord") assigned.add(node.value);
  if (node.type === "ParameterExpansion" && node.operation !== undefined) assigned.add(node.parameter);
  if (node.type !== "Command" || !assigners.has(node.name?.value ?? "")) return;
  for (const part of node.suffix) if (part.type === "Word") assigned.add(part.value);
}

function isName({ text, doubt }: ShellWord): boolean {
  return doubt === "names" || (doubt === "known" && text !== null && !text.startsWith("-"));
}
