import { readFileSync } from "node:fs";
import { type ActionEffect, actionEffects } from "../action/action-fact.ts";

/** The parts of programs' languages that code judges; see `shell/program-check.ts`. */
export const programChecks = [
  "test",
  "printf",
  "set",
  "declaration",
  "find",
  "sed",
  "awk",
  "tar",
  "jq",
  "ps",
  "git",
] as const;
export type ProgramCheck = (typeof programChecks)[number];

/** The effect of one program, and of its flags and words. The strictest that applies decides. */
export interface ProgramRule {
  readonly effect: ActionEffect;
  /** Flags as written, `-o` in a cluster and abbreviations of `--output` included. */
  readonly flags?: Readonly<Record<string, ActionEffect>>;
  /** Short options that take a value: a cluster ends with them. */
  readonly values?: string;
  readonly long_values?: readonly string[];
  /** The first word decides; another first word leaves `effect`. */
  readonly subcommands?: Readonly<Record<string, ActionEffect | ProgramRule>>;
  /** The effect without any word. */
  readonly bare?: ActionEffect;
  /** The effect where this is the only word. */
  readonly exactly?: Readonly<Record<string, ActionEffect>>;
  /** Words by their beginning, such as `of=`. */
  readonly operands?: Readonly<Record<string, ActionEffect>>;
  /** Words that are no flags begin with this; another one writes. */
  readonly operand_prefix?: string;
  readonly max_operands?: { readonly count: number; readonly effect: ActionEffect };
  readonly check?: ProgramCheck;
  /** The words that are hosts: all, the first, or those with a colon. */
  readonly hosts?: "all" | "first" | "remote";
  /** True where words that are no flags are files. */
  readonly files?: boolean;
  /** The first words among `files` that are none: what is looked for. */
  readonly skips?: number;
  /** True where a file may stand after a revision and a colon. */
  readonly revisions?: boolean;
  /** True where words are only printed or compared. */
  readonly prints?: boolean;
  /** True where the output is a list of names of files. */
  readonly lists?: boolean;
}

/** A program that runs the one named by its words. */
export interface WrapperRule {
  readonly effect: ActionEffect;
  readonly flags?: string;
  readonly values?: string;
  readonly longs?: readonly string[];
  readonly long_values?: readonly string[];
  readonly operands?: number;
  readonly assignments?: boolean;
  readonly bare?: ActionEffect;
  /** Options with which the program is shown and not run. */
  readonly shows?: string;
  /** True for shells: `-c` is followed by a command line. */
  readonly script?: boolean;
  /** True where the words are joined to a command line. */
  readonly joins?: boolean;
  /** True where words read from the input are appended. */
  readonly appends?: boolean;
}

export interface EnvironmentRule {
  readonly harmless: readonly string[];
  readonly execute: readonly string[];
  readonly pagers: { readonly names: readonly string[]; readonly values: readonly string[] };
}

/** The effects of programs, wrappers and variables. */
export interface EffectTable {
  readonly programs: ReadonlyMap<string, ProgramRule>;
  readonly wrappers: ReadonlyMap<string, WrapperRule>;
  readonly environment: EnvironmentRule;
}

interface TableFile {
  readonly program: ProgramFile;
  readonly wrapper: Readonly<Record<string, WrapperRule>>;
  readonly environment: EnvironmentRule;
}

interface ProgramFile {
  readonly simple: Readonly<Record<"files" | "others", Partial<Record<ActionEffect, readonly string[]>>>>;
  readonly versions: readonly string[];
  readonly programs: Readonly<Record<string, ProgramRule>>;
}

const versionFlags = { "--version": "read", "-version": "read" } as const;

let shipped: EffectTable | undefined;

/** Returns the table that the gateway ships. Its file is read once. */
export function shippedEffectTable(): EffectTable {
  if (shipped === undefined) {
    const { program, wrapper, environment } = readTable();
    shipped = { programs: programsOf(program), wrappers: new Map(Object.entries(wrapper)), environment };
  }
  return shipped;
}

/** Returns a member that the record itself has. */
export function ownMember<T>(record: Readonly<Record<string, T>> | undefined, key: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined;
}

function programsOf({ simple, versions, programs }: ProgramFile): ReadonlyMap<string, ProgramRule> {
  const rules = new Map<string, ProgramRule>();
  for (const [kind, byEffect] of Object.entries(simple)) {
    for (const effect of actionEffects) {
      for (const name of byEffect[effect] ?? []) rules.set(name, { effect, files: kind === "files" });
    }
  }
  for (const [name, rule] of Object.entries(programs)) rules.set(name, rule);
  for (const name of versions) {
    const rule = rules.get(name) ?? { effect: "unknown" };
    rules.set(name, { ...rule, exactly: { ...versionFlags, ...rule.exactly } });
  }
  return rules;
}

/** Reads `effect/table.json`, which `npm run reference` makes of the YAML files beside it: they take a start 20 times longer. */
function readTable(): TableFile {
  return JSON.parse(readFileSync(new URL("../../../core/fact/effect/table.json", import.meta.url), "utf8"));
}
