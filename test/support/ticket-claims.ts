import type { TicketClaims } from "../../core/ticket/claims.ts";

/** The claims of a ticket of tenant `acme` for three uses of `echo`; `iat` and `exp` in seconds. */
export function ticketClaims(iat: number, exp: number): TicketClaims {
  return {
    jti: `tkt_${"0a".repeat(16)}`,
    sub: `principal-v1-${"ab".repeat(32)}`,
    tenant: "acme",
    tools: ["echo"],
    targets: ["*"],
    capabilities: ["execute"],
    max_uses: 3,
    nonce: "AAAAAAAAAAAAAAAAAAAAAA",
    iat,
    exp,
  };
}
