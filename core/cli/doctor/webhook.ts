import { type Examine, ok, warn } from "./finding.ts";
import { examineHost } from "./reach.ts";

/** Whether those who are told of approvals can be connected to. */
export const examineWebhooks: Examine = async ({ config: { approvals } }) => {
  if (approvals.webhooks.length === 0) return [ok("nobody is told of approvals")];
  return Promise.all(approvals.webhooks.map(({ name, url }) => examineHost(name, url, warn)));
};
