import type { GatewayConfig, OauthConfig } from "../config/gateway-config.ts";
import type { EgressGuard } from "../egress/egress-guard.ts";
import { oauthChallenge } from "../gateway/protected-resource.ts";
import { AccessRule, type CallerRule, type Challenge, keyChallenge, TokenRule } from "../http/access.ts";
import { FailureRate } from "../http/rate.ts";
import type { AccessTokens } from "../identity/access-token.ts";
import { KeyRing } from "../identity/key-ring.ts";
import type { SigningKeys } from "../identity/signing-keys.ts";
import type { Log } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import { elapsedMs } from "./identity.ts";

/** The parts that find out who calls. */
export interface AccessParts {
  readonly keys: KeyRing;
  /** Identifies callers of every port by key. */
  readonly keyRule: AccessRule;
  /** Identifies callers of the gateway port. */
  readonly callerRule: CallerRule;
  /** Answers those of the gateway port that cannot be identified. */
  readonly challenge: Challenge;
  /** Counts failed attempts to authenticate at the gateway port and the metrics port. */
  readonly failures: FailureRate;
}

/** Opens the keys and, where OAuth is configured, the access tokens. Without it nothing of jose is loaded. */
export async function openAccess(
  config: GatewayConfig,
  log: Log,
  egress: EgressGuard,
  metrics: Metrics,
): Promise<AccessParts> {
  const { oauth } = config;
  const keys = new KeyRing(config.keys, tokenTenantsOf(oauth));
  const keyRule = new AccessRule(keys, config.mcpGateway.anonymousTenant);
  const failures = new FailureRate({
    perMinute: config.limits.unauthenticatedPerMinute,
    elapsedMs,
    onLimited: () => metrics.shareRefused("address"),
  });
  if (oauth === null) return { keys, keyRule, callerRule: keyRule, challenge: keyChallenge, failures };
  const tokens = await openAccessTokens(oauth, log, egress);
  const callerRule = new TokenRule(keys, keyRule, (token) => tokens.authenticate(token));
  return { keys, keyRule, callerRule, challenge: oauthChallenge(oauth), failures };
}

function tokenTenantsOf(oauth: OauthConfig | null): ReadonlySet<string> {
  if (oauth === null) return new Set();
  return new Set(oauth.tenant === null ? Object.values(oauth.tenants) : [oauth.tenant]);
}

async function openAccessTokens(config: OauthConfig, log: Log, egress: EgressGuard): Promise<AccessTokens> {
  const { AccessTokens } = await import("../identity/access-token.ts");
  return new AccessTokens({ config, keys: await openSigningKeys(config, log, egress), clock: Date.now });
}

/** Opens the signing keys of an issuer. None are fetched yet. */
export async function openSigningKeys(
  config: Pick<OauthConfig, "issuer" | "jwksUri" | "jwksCacheMs" | "jwksRefetchMs">,
  log: Log,
  egress: EgressGuard,
): Promise<SigningKeys> {
  const [{ SigningKeys }, { fetchSigningKeys, KeyFetchError }] = await Promise.all([
    import("../identity/signing-keys.ts"),
    import("../identity/key-fetch.ts"),
  ]);
  const { issuer } = config;
  return new SigningKeys({
    fetch: () => fetchSigningKeys(config, egress),
    cacheMs: config.jwksCacheMs,
    refetchMs: config.jwksRefetchMs,
    elapsedMs,
    onFetched: (keyCount) => log.info({ issuer, keys: keyCount }, "signing_keys_fetched"),
    onFault: (cause) => {
      const fault = cause instanceof KeyFetchError ? cause.fault : "invalid";
      const detail = cause instanceof KeyFetchError ? cause.message : undefined;
      log.warn({ issuer, fault, detail }, "signing_keys_fetch_failed");
    },
  });
}
