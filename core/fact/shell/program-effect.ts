import { type ActionEffect, strictestEffect } from "../../action/action-fact.ts";
import { type EnvironmentRule, ownMember, type ProgramRule } from "../effect-table.ts";
import { checkEffect } from "./program-check.ts";
import type { ShellWord } from "./shell-word.ts";

/** Returns the effect of a program with these words, its name not among them. */
export function programEffect(
  rule: ProgramRule,
  words: readonly ShellWord[],
  environment: EnvironmentRule,
): ActionEffect {
  const first = words[0]?.text ?? undefined;
  if (words.length === 0 && rule.bare !== undefined) return rule.bare;
  if (words.length === 1 && first !== undefined) {
    const exact = ownMember(rule.exactly, first);
    if (exact !== undefined) return exact;
  }
  if (!admits(rule, words)) return "unknown";
  const texts = words.map(({ text }) => text ?? "");
  return strictestEffect([
    baseEffect(rule, words, environment),
    ...flagEffects(rule, texts),
    ...operandEffects(rule, texts),
    ...(rule.check === undefined ? [] : [checkEffect(rule.check, words, environment)]),
  ]);
}

function baseEffect(rule: ProgramRule, words: readonly ShellWord[], environment: EnvironmentRule): ActionEffect {
  const stated = ownMember(rule.subcommands, words[0]?.text ?? "");
  if (stated === undefined) return rule.effect;
  return typeof stated === "string" ? stated : programEffect(stated, words.slice(1), environment);
}

/** A computed word may be a flag: only a program that no word changes takes it. */
function admits(rule: ProgramRule, words: readonly ShellWord[]): boolean {
  const isPlain =
    (rule.flags ?? rule.subcommands ?? rule.operands ?? rule.max_operands ?? rule.operand_prefix ?? rule.check) ===
    undefined;
  return words.every(({ doubt, text }) => {
    if (doubt === "known") return true;
    if (doubt === "output") return rule.prints === true;
    if (doubt !== "names") return false;
    if (isPlain || rule.prints === true || rule.check === "test") return true;
    // A pattern that begins with a letter finds no name that is a flag.
    return rule.max_operands === undefined && rule.subcommands === undefined && text !== null && /^[\w./]/.test(text);
  });
}

function flagEffects({ flags = {}, values = "" }: ProgramRule, texts: readonly string[]): readonly ActionEffect[] {
  const entries = Object.entries(flags);
  if (entries.length === 0) return [];
  const end = texts.indexOf("--");
  return (end === -1 ? texts : texts.slice(0, end)).flatMap((text) =>
    entries.filter(([flag]) => hasFlag(text, flag, values)).map(([, effect]) => effect),
  );
}

/** Returns true where the word is the flag, an abbreviation of it, or a cluster that holds it. */
export function hasFlag(text: string, flag: string, values: string): boolean {
  if (flag.startsWith("--")) {
    const [name = ""] = text.split("=", 1);
    return name.length > 2 && name.startsWith("--") && flag.startsWith(name);
  }
  if (!text.startsWith("-") || text.startsWith("--")) return false;
  for (const char of text.slice(1)) {
    if (flag === `-${char}`) return true;
    if (values.includes(char)) return false;
  }
  return false;
}

function operandEffects(rule: ProgramRule, texts: readonly string[]): readonly ActionEffect[] {
  const effects: ActionEffect[] = [];
  for (const [start, effect] of Object.entries(rule.operands ?? {})) {
    if (texts.some((text) => text.startsWith(start))) effects.push(effect);
  }
  const operands = operandsOf(rule, texts);
  const { operand_prefix: prefix, max_operands: most } = rule;
  if (prefix !== undefined && operands.some((text) => !text.startsWith(prefix))) effects.push("write");
  if (most !== undefined && operands.length > most.count) effects.push(most.effect);
  return effects;
}

/** Returns the words that are neither flags nor values of flags. */
export function operandsOf(
  { values = "", long_values: longs = [] }: ProgramRule,
  texts: readonly string[],
): readonly string[] {
  const operands: string[] = [];
  for (let at = 0; at < texts.length; at += 1) {
    const text = texts[at] ?? "";
    if (text === "--") return [...operands, ...texts.slice(at + 1)];
    if (!text.startsWith("-") || text === "-") operands.push(text);
    else if (takesNext(text, values, longs)) at += 1;
  }
  return operands;
}

function takesNext(text: string, values: string, longs: readonly string[]): boolean {
  if (text.startsWith("--")) return longs.includes(text.slice(2));
  const at = [...text].findIndex((char, index) => index > 0 && values.includes(char));
  return at === text.length - 1 && at > 0;
}
