import { basename } from "node:path";
import { type DoctorCheck, type DoctorFinding, ok, quantity, warn } from "./finding.ts";

/** Checks that the packs decide. One in shadow mode, as `gateway adopt` begins with, only records what it would have done. */
export const checkEnforcement: DoctorCheck = async ({ config: { policy } }) => {
  const inShadow = policy.packs.filter(({ mode }) => mode === "shadow").map(({ path }) => `\`${basename(path)}\``);
  const found: DoctorFinding[] = [];
  if (inShadow.length > 0) {
    const text = `${inShadow.join(", ")} in shadow mode: what they would hold or block runs`;
    found.push(warn(text, "`gateway adopt --report` shows what that was, and proposes what to enforce"));
  }
  for (const { path, mode, shadowRules } of policy.packs) {
    if (mode !== "enforce" || shadowRules.length === 0) continue;
    found.push(ok(`\`${basename(path)}\` is enforced but for ${quantity(shadowRules.length, "rule")} in shadow mode`));
  }
  return found.length === 0 ? [ok(`${quantity(policy.packs.length, "pack")}, each enforced`)] : found;
};
