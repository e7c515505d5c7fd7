import type { ActionEnvelope } from "../kernel/envelope.ts";
import { compileGlob } from "../kernel/glob.ts";
import { isJsonObject, type Json } from "../kernel/json.ts";
import { hiddenValue } from "./shown-action.ts";

/** What hides the members of arguments and answers whose values evidence never keeps: globs over `<tool>:<member>`. */
export function memberHider(patterns: readonly string[]): (action: ActionEnvelope) => ActionEnvelope {
  const globs = patterns.map(compileGlob);
  if (globs.length === 0) return (action) => action;
  const isPrivate = (tool: string, member: string): boolean => globs.some((glob) => glob.test(`${tool}:${member}`));
  return (action) => {
    const { tool, arguments: args, output } = action;
    const hide = (value: Json): Json => {
      if (!isJsonObject(value)) return isPrivate(tool, "") ? hiddenValue : value;
      const members = Object.entries(value);
      if (!members.some(([name]) => isPrivate(tool, name))) return value;
      return Object.fromEntries(members.map(([name, each]) => [name, isPrivate(tool, name) ? hiddenValue : each]));
    };
    const left = hide(args);
    const answer = output === undefined ? undefined : hide(output);
    if (left === args && answer === output) return action;
    return { ...action, arguments: left, ...(answer === undefined ? {} : { output: answer }) };
  };
}
