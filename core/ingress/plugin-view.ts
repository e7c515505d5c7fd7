import type { StandingPolicy } from "../kernel/policy.ts";

/** The plugins among the policies in force. */
export function pluginsOf(policies: readonly StandingPolicy[]): readonly StandingPolicy[] {
  return policies.filter(({ kind }) => kind === "plugin");
}
