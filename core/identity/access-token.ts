import { errors, type JWTPayload, type JWTVerifyOptions, jwtVerify } from "jose";
import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import { type Principal, tokenKeyId, tokenPrincipalId } from "../action/principal.ts";
import type { OauthConfig } from "../config/gateway-config.ts";
import { mappedRole, mappedTenant, readSubject } from "./claim-map.ts";
import type { SigningKeys } from "./signing-keys.ts";
import { type TokenFault, tokenError } from "./token-error.ts";

/** Three parts of base64url. An empty signature is one of `alg: none`. */
const tokenShape = /^[\w-]+\.[\w-]+\.[\w-]*$/;

const maxTokenLength = 8_192;

interface AccessTokenOptions {
  readonly config: OauthConfig;
  readonly keys: Pick<SigningKeys, "find">;
  readonly clock: Clock;
}

/** Authenticates callers by access tokens: JWTs (RFC 9068) of one issuer, for this gateway. */
export class AccessTokens {
  readonly #options: AccessTokenOptions;
  readonly #rule: JWTVerifyOptions;

  constructor(options: AccessTokenOptions) {
    this.#options = options;
    const { issuer, audience, algorithms, tokenType, leewaySeconds } = options.config;
    this.#rule = {
      issuer,
      // Clients write the address of a host with a slash at the end.
      audience: [audience, new URL(audience).href],
      algorithms: [...algorithms],
      requiredClaims: ["exp", "sub"],
      clockTolerance: leewaySeconds,
      ...(tokenType === "at+jwt" ? { typ: tokenType } : {}),
    };
  }

  /**
   * Returns the principal of a token. Rejects with TOKEN_INVALID, and with KEY_UNKNOWN for a text that is no JWT; neither
   * contains anything of the text.
   */
  async authenticate(token: string): Promise<Principal> {
    if (token.length > maxTokenLength) throw tokenError("too_large");
    if (!tokenShape.test(token)) throw new GatewayError("KEY_UNKNOWN");
    const { keys, clock } = this.#options;
    const rule = { ...this.#rule, currentDate: new Date(clock()) };
    const verified = await jwtVerify(token, keys.find.bind(keys), rule).catch((cause: unknown) => {
      // Without a cause: the errors of jose carry the claims.
      throw cause instanceof GatewayError ? cause : tokenError(faultOf(cause));
    });
    return this.#principalOf(verified.payload);
  }

  #principalOf(claims: JWTPayload): Principal {
    const { config } = this.#options;
    const subject = readSubject(claims);
    if (subject === undefined) throw tokenError("claims");
    const granted = scopesOf(claims);
    if (!config.scopes.every((scope) => granted.includes(scope))) throw tokenError("scope");
    const tenant = mappedTenant(claims, config);
    if (tenant === undefined) throw tokenError("tenant");
    const id = tokenPrincipalId(tenant, config.issuer, subject);
    return Object.freeze({ id, tenant, role: mappedRole(claims, config) ?? config.role, keyId: tokenKeyId(subject) });
  }
}

/** The scopes of a token: by RFC 9068 a text with spaces between them; some issuers write a list, as `scp`. */
function scopesOf({ scope, scp }: JWTPayload): readonly unknown[] {
  const value = scope ?? scp;
  return typeof value === "string" ? value.split(" ") : Array.isArray(value) ? value : [];
}

const faultByClaim: Readonly<Record<string, TokenFault>> = {
  iss: "issuer",
  aud: "audience",
  nbf: "not_yet_valid",
  typ: "type",
};

/** Any error that is not known makes a token no better than a malformed one. */
function faultOf(cause: unknown): TokenFault {
  if (cause instanceof errors.JWTExpired) return "expired";
  if (cause instanceof errors.JWTClaimValidationFailed) return faultByClaim[cause.claim] ?? "claims";
  if (cause instanceof errors.JOSEAlgNotAllowed) return "algorithm";
  if (cause instanceof errors.JWSSignatureVerificationFailed) return "signature";
  if (cause instanceof errors.JWKSNoMatchingKey || cause instanceof errors.JWKSMultipleMatchingKeys) {
    return "unknown_key";
  }
  return "malformed";
}
