import type { ActionEffect } from "../action/action-fact.ts";
import { type EffectTable, ownMember, type ProgramRule } from "./effect-table.ts";

/** The operator's own effects, by what they are about: `mytool`, `kubectl get`, `kubectl get --raw`. */
export type EffectStatements = Readonly<Record<string, ActionEffect>>;

const statementKey =
  /^[A-Za-z0-9][\w.+-]{0,63}(?: [A-Za-z0-9][\w.:+-]{0,63}){0,5}(?: (?:--[A-Za-z0-9][\w-]{0,63}|-[A-Za-z0-9]))?$/;

/** Returns true for the name of a program, with its subcommands and one flag behind it where they are given. */
export function isEffectKey(key: string): boolean {
  return statementKey.test(key);
}

/** The reason why a table takes no statement about a program: it would have no effect, or undo the judgement of code. */
export type UnstatedReason = "wrapper" | "checked";

/** Returns why nothing can be stated of the program of a key; undefined where it can. */
export function unstatedReason(table: EffectTable, key: string): UnstatedReason | undefined {
  const { program } = partsOf(key);
  if (table.wrappers.has(program)) return "wrapper";
  return table.programs.get(program)?.check === undefined ? undefined : "checked";
}

/** Returns the effect that a table states for exactly this program, subcommand or flag; undefined where it names no such one. */
export function effectAt(table: EffectTable, key: string): ActionEffect | undefined {
  const { program, path, flag } = partsOf(key);
  let rule = table.programs.get(program);
  for (const [at, name] of path.entries()) {
    const inner = ownMember(rule?.subcommands, name);
    if (typeof inner === "string") return at === path.length - 1 && flag === undefined ? inner : undefined;
    rule = inner;
  }
  return flag === undefined ? rule?.effect : ownMember(rule?.flags, flag);
}

/**
 * Returns the table with the operator's own effects. What the table says of other subcommands and flags of a program stays, and
 * a flag only makes an effect stricter.
 */
export function extendTable(table: EffectTable, own: EffectStatements): EffectTable {
  const programs = new Map(table.programs);
  for (const [key, effect] of Object.entries(own)) {
    const { program, path, flag } = partsOf(key);
    const rule = programs.get(program) ?? { effect: "unknown" };
    programs.set(program, withStatement(rule, path, flag, effect));
  }
  return { ...table, programs };
}

function partsOf(key: string): { readonly program: string; readonly path: readonly string[]; readonly flag?: string } {
  const [program = "", ...words] = key.split(" ");
  const last = words.at(-1);
  return last?.startsWith("-") === true ? { program, path: words.slice(0, -1), flag: last } : { program, path: words };
}

function withStatement(
  rule: ProgramRule,
  [name, ...path]: readonly string[],
  flag: string | undefined,
  effect: ActionEffect,
): ProgramRule {
  if (name !== undefined) {
    const given = ownMember(rule.subcommands, name) ?? rule.effect;
    const inner = typeof given === "string" ? { effect: given } : given;
    return { ...rule, subcommands: { ...rule.subcommands, [name]: withStatement(inner, path, flag, effect) } };
  }
  return flag === undefined ? { ...rule, effect } : { ...rule, flags: { ...rule.flags, [flag]: effect } };
}
