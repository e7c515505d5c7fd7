import { withoutBrackets } from "../action/parsed-url.ts";
import type { Draft } from "./check.ts";
import { type FaultList, quoteInput } from "./fault.ts";
import type { FileDraft, FileForm } from "./file-schema.ts";
import { checkClaimValues, checkMappedTenants, refuseBoth } from "./oauth-rule.ts";
import { isLoopback } from "./repetition.ts";

type OidcDraft = NonNullable<Draft<FileForm["console"]["oidc"]>>;

/** The part of `checkRules` about the console. */
export function checkConsole({ console, keys }: FileDraft, faults: FaultList): void {
  if (console === undefined) return; // a fault already
  const { public_url: address, oidc } = console;
  if (typeof address === "string") {
    const { origin, pathname, search } = new URL(address);
    // Cookies and routes of the console begin at the root.
    if (pathname !== "/" || search !== "")
      faults.add("console.public_url", `expected a URL without a path, got more than ${quoteInput(origin)}`);
  }
  if (oidc?.issuer === undefined) return;
  if (oidc.issuer === null) {
    checkUnused(oidc, faults);
    return;
  }
  if (address !== undefined) checkAddress(address, faults);
  if (oidc.client_id === null)
    faults.add("console.oidc.client_id", "expected the id of this client, got none, because `issuer` is given");
  const at = "console.oidc";
  refuseBoth([oidc.tenant, oidc.tenant_claim], ["tenant", "tenant_claim"], at, faults);
  refuseBoth([oidc.role, oidc.role_claim], ["role", "role_claim"], at, faults);
  checkClaimValues(oidc.tenant_claim, oidc.tenants, ["tenants", "tenant_claim"], at, faults);
  checkClaimValues(oidc.role_claim, oidc.roles, ["roles", "role_claim"], at, faults);
  checkMappedTenants(oidc, keys, at, faults);
}

/** Settings without an issuer look like a way in that is not there. */
function checkUnused(oidc: OidcDraft, faults: FaultList): void {
  const given = (["client_id", "client_secret_env", "tenant", "tenant_claim", "role", "role_claim"] as const).find(
    (key) => typeof oidc[key] === "string",
  );
  if (given === undefined) return;
  faults.add("console.oidc.issuer", `expected an issuer, got none, because \`${given}\` is given`);
}

/** Codes come back to a fixed address, and nobody on the network may read them. */
function checkAddress(address: string | null, faults: FaultList): void {
  const at = "console.public_url";
  if (address === null) {
    faults.add(at, "expected the URL at which people reach the console, got none, because `oidc.issuer` is given");
    return;
  }
  const { protocol, hostname } = new URL(address);
  if (protocol === "https:" || isLoopback(withoutBrackets(hostname))) return;
  faults.add(at, "expected an https: URL, or one of this machine, because `oidc.issuer` is given");
}
