import { stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { WitnessConfig } from "../../config/gateway-config.ts";
import { type Examine, type Finding, fail, ok, warn } from "./finding.ts";
import { examineHost } from "./reach.ts";

/** Whether somebody else keeps where each chain stands, and is there. */
export const examineWitnesses: Examine = async ({ config: { evidence, dataDir } }) => {
  if (evidence.witnesses.length > 0)
    return Promise.all(evidence.witnesses.map((witness) => examineWitness(witness, dataDir)));
  const mend = "name one in `evidence.witnesses`: a folder on other storage is enough";
  return [warn("there is none: nobody notices when the whole data folder is replaced by an older copy", mend)];
};

async function examineWitness(witness: WitnessConfig, dataDir: string): Promise<Finding> {
  const { name } = witness;
  if (witness.type === "http") return examineHost(name, witness.url, fail);
  if (witness.type === "git") {
    const heads = [join(witness.repository, "HEAD"), join(witness.repository, ".git")];
    const isThere = (await Promise.all(heads.map((path) => stat(path).catch(() => undefined)))).some((found) => found);
    if (isThere) return ok(`\`${name}\` is a repository`);
    return fail(`\`${name}\`: \`${witness.repository}\` is no repository`, `\`git init --bare\` makes one`);
  }
  const [own, other] = await Promise.all([deviceOf(dataDir), deviceOf(witness.path)]);
  if (own !== other) return ok(`\`${name}\` lies on other storage`);
  const mend = "set its `path` to other storage: who replaces the one would replace both";
  return warn(`\`${name}\` lies on the disk of the data folder`, mend);
}

/** The disk of a folder, or of the closest above it that is there. */
async function deviceOf(path: string): Promise<number> {
  const found = await stat(path).catch(() => undefined);
  return found === undefined && dirname(path) !== path ? deviceOf(dirname(path)) : (found?.dev ?? -1);
}
