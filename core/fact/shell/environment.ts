import type { ActionEffect } from "../../action/action-fact.ts";
import type { EnvironmentRule } from "../effect-table.ts";
import type { SyntaxAssignment } from "./shell-syntax.ts";

/** Returns the effect of a variable that is set for a program. */
export function environmentEffect(rule: EnvironmentRule, { name, value }: SyntaxAssignment): ActionEffect {
  if (holdsCommand(value.text)) return "execute";
  if (value.text === null) return isNamed(rule.execute, name) ? "execute" : "unknown";
  if (rule.pagers.names.includes(name) && rule.pagers.values.includes(value.text)) return "read";
  if (isNamed(rule.harmless, name)) return "read";
  return isNamed(rule.execute, name) ? "execute" : "unknown";
}

/** Returns the effect of a variable that is set in the shell itself. */
export function variableEffect(rule: EnvironmentRule, { name, value }: SyntaxAssignment): ActionEffect {
  if (holdsCommand(value.text) || !/^[A-Za-z_]\w*$/.test(name)) return "execute";
  if (isNamed(rule.harmless, name)) return "read";
  return isNamed(rule.execute, name) ? "execute" : "read";
}

/** Returns true for a text that runs a command once arithmetic, `@P` or a second reading evaluates it. */
export function holdsCommand(text: string | null): boolean {
  return text !== null && /\$\(|`|\$\{|[<>]\(/.test(text);
}

function isNamed(names: readonly string[], name: string): boolean {
  return names.some((known) => (known.endsWith("*") ? name.startsWith(known.slice(0, -1)) : name === known));
}
