import type { Draft } from "./check.ts";
import { type FaultList, quoteInput } from "./fault.ts";
import type { FileDraft, FileForm } from "./file-schema.ts";

type OauthDraft = NonNullable<Draft<FileForm["oauth"]>>;

/** The part of `checkRules` about access tokens. */
export function checkOauth({ oauth, keys, mcp_gateway: mcp }: FileDraft, faults: FaultList): void {
  if (oauth?.issuer === undefined) return; // a fault already
  if (oauth.issuer === null) {
    checkUnused(oauth, faults);
    return;
  }
  checkAudience(oauth.audience, faults);
  checkRefetch(oauth, faults);
  checkClaims(oauth, faults);
  checkMappedTenants(oauth, keys, "oauth", faults);
  if (mcp?.require_auth === false) {
    const because = "because `oauth.issuer` is given: no client would be asked for a token";
    faults.add("mcp_gateway.require_auth", `expected \`true\`, got \`false\`, ${because}`);
  }
}

/** Settings without an issuer look like protection that is not there. */
function checkUnused(oauth: OauthDraft, faults: FaultList): void {
  const given = (["audience", "jwks_uri", "tenant", "tenant_claim", "role_claim"] as const).find(
    (key) => typeof oauth[key] === "string",
  );
  if (given !== undefined) faults.add("oauth.issuer", `expected an issuer, got none, because \`${given}\` is given`);
}

/** Clients look for the metadata of a resource below the root of its host, where the gateway serves that of `/mcp` and of `/`. */
function checkAudience(audience: string | null | undefined, faults: FaultList): void {
  if (audience === undefined) return;
  if (audience === null) {
    faults.add("oauth.audience", "expected the URL of the MCP endpoint, got none, because `issuer` is given");
  } else if (!["/", "/mcp"].includes(new URL(audience).pathname)) {
    faults.add("oauth.audience", `expected a URL with the path \`/mcp\` or none, got ${quoteInput(audience)}`);
  }
}

function checkRefetch(
  { jwks_cache_seconds: cache, jwks_refetch_seconds: refetch }: OauthDraft,
  faults: FaultList,
): void {
  if (cache === undefined || refetch === undefined || refetch <= cache) return;
  faults.add("oauth.jwks_refetch_seconds", `expected at most \`jwks_cache_seconds\` (${cache}), got ${refetch}`);
}

function checkClaims(oauth: OauthDraft, faults: FaultList): void {
  const { tenant, tenant_claim: tenantClaim, tenants, role_claim: roleClaim, roles } = oauth;
  refuseBoth([tenant, tenantClaim], ["tenant", "tenant_claim"], "oauth", faults);
  checkClaimValues(tenantClaim, tenants, ["tenants", "tenant_claim"], "oauth", faults);
  checkClaimValues(roleClaim, roles, ["roles", "role_claim"], "oauth", faults);
}

/** Adds a fault unless one of two settings of the section `at` is given, and no more. */
export function refuseBoth(
  [value, claim]: readonly [unknown, unknown],
  [key, claimKey]: readonly [string, string],
  at: string,
  faults: FaultList,
): void {
  const expected = `expected either \`${key}\` or \`${claimKey}\``;
  if (value === null && claim === null) faults.add(`${at}.${key}`, `${expected}, got neither`);
  else if (typeof value === "string" && typeof claim === "string") faults.add(`${at}.${key}`, `${expected}, got both`);
}

/** A claim without values maps nothing, and values without a claim are never looked at. */
export function checkClaimValues(
  claim: string | null | undefined,
  values: Readonly<Record<string, string | undefined>> | undefined,
  [key, claimKey]: readonly [string, string],
  at: string,
  faults: FaultList,
): void {
  if (claim === undefined || values === undefined) return;
  const count = Object.keys(values).length;
  if (claim !== null && count === 0)
    faults.add(`${at}.${key}`, `expected values, got none, because \`${claimKey}\` is given`);
  if (claim === null && count > 0)
    faults.add(`${at}.${claimKey}`, `expected a claim, got none, because \`${key}\` is given`);
}

/** A tenant without keys has nobody who reviews what its agents ask for, or stops them. */
export function checkMappedTenants(
  { tenant, tenants }: Pick<OauthDraft, "tenant" | "tenants">,
  keys: FileDraft["keys"],
  at: string,
  faults: FaultList,
): void {
  const known = keys?.map((key) => key?.tenant);
  if (known === undefined || known.includes(undefined)) return;
  const named = [
    [`${at}.tenant`, tenant],
    ...Object.entries(tenants ?? {}).map(([value, each]) => [`${at}.tenants.${value}`, each]),
  ];
  for (const [place, each] of named) {
    if (typeof each !== "string" || known.includes(each)) continue;
    faults.add(String(place), `expected the tenant of a key, got ${quoteInput(each)}`);
  }
}
