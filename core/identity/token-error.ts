import { GatewayError } from "../action/error.ts";

/** The texts of refused access tokens, by the `reason` in the data of the error. They contain nothing of the token. */
const texts = {
  too_large: "expected at most 8192 characters, got more",
  malformed: "expected a signed JWT",
  algorithm: "expected a signature by an algorithm of oauth.algorithms, got another",
  signature: "expected the signature of its issuer, got another",
  unknown_key: "expected a key that its issuer publishes, got another",
  keys_unavailable: "the keys of its issuer cannot be read now",
  type: "expected a token of type at+jwt, got another",
  issuer: "expected the issuer of oauth.issuer, got another",
  audience: "expected the audience of oauth.audience, got another",
  expired: "expected a token that has not expired",
  not_yet_valid: "expected a token that is valid already",
  claims: "expected well-formed claims exp and sub",
  scope: "expected every scope of oauth.scopes",
  tenant: "expected a tenant of oauth.tenants, got another",
} as const;

export type TokenFault = keyof typeof texts;

/** The error of a refused access token. `data`: further particulars, none of them from the token. */
export function tokenError(reason: TokenFault, data: Readonly<Record<string, unknown>> = {}): GatewayError {
  return new GatewayError("TOKEN_INVALID", texts[reason], { data: { reason, ...data } });
}
