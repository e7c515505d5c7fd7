import { type FaultList, quoteInput } from "./fault.ts";
import type { Draft } from "./field.ts";
import { refuseRepeats } from "./repetition.ts";
import type { FileForm } from "./schema.ts";

/** The secrets of one webhook: an old and a new one, with room for a mishap. */
const mostSecrets = 4;

/** The part of `checkRules` about approvals. */
export function checkApprovals({ approvals, keys }: NonNullable<Draft<FileForm>>, faults: FaultList): void {
  const at = (index: number): string => `approvals.webhooks[${index}]`;
  const webhooks = approvals?.webhooks ?? [];
  refuseRepeats(
    webhooks.map((webhook) => webhook?.name),
    (index) => `${at(index)}.name`,
    "a name of its own",
    faults,
  );
  const tenants = keys?.map((key) => key?.tenant);
  webhooks.forEach((webhook, index) => {
    checkTenant(webhook?.tenant, tenants, `${at(index)}.tenant`, faults);
    checkSecrets(webhook?.secrets_env ?? [], `${at(index)}.secrets_env`, faults);
  });
}

/** Only a caller with a key can be held for review: another tenant is a misspelt one, and nobody would be told. */
function checkTenant(
  tenant: string | undefined,
  known: readonly (string | undefined)[] | undefined,
  path: string,
  faults: FaultList,
): void {
  if (tenant === undefined || known === undefined || known.includes(undefined) || known.includes(tenant)) return;
  faults.add(path, `expected the tenant of a key, got ${quoteInput(tenant)}`);
}

function checkSecrets(variables: readonly (string | undefined)[], path: string, faults: FaultList): void {
  if (variables.length > mostSecrets)
    faults.add(path, `expected at most ${mostSecrets} variables, got ${variables.length}`);
  refuseRepeats(variables, (index) => `${path}[${index}]`, "each variable once", faults);
}
