import { type Examine, ok, warn } from "./finding.ts";
import { hostOf, reachProblem } from "./reach.ts";

/** Whether those who are told of approvals can be connected to. */
export const examineWebhooks: Examine = async ({ config: { approvals } }) => {
  if (approvals.webhooks.length === 0) return [ok("nobody is told of approvals")];
  return Promise.all(
    approvals.webhooks.map(async ({ name, url }) => {
      const problem = await reachProblem(url);
      if (problem === undefined) return ok(`\`${name}\` is there, at ${hostOf(url)}`);
      return warn(`\`${name}\` at ${hostOf(url)} cannot be reached: ${problem}`, "mend its `url`, or the way there");
    }),
  );
};
