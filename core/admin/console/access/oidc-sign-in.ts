import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { GatewayError } from "../../../action/error.ts";
import type { Clock, Random } from "../../../action/id.ts";
import { tokenKeyId, tokenPrincipalId } from "../../../action/principal.ts";
import type { OidcConfig } from "../../../config/gateway-config.ts";
import { mappedRole, mappedTenant, readSubject } from "../../../identity/claim-map.ts";
import type { OidcClient, SignInSecrets } from "../../../identity/oidc-client.ts";
import { valueIn } from "./query.ts";
import type { SignIn } from "./session.ts";

interface OidcSignInOptions {
  readonly config: OidcConfig;
  readonly client: Pick<OidcClient, "signInUrl" | "redeem">;
  /** Age of a sign-in up to which it allows changes: of an older one, the provider asks anew. */
  readonly recentMs: number;
  readonly clock: Clock;
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
  readonly random: Random;
}

/** Time to sign in at the provider. */
const maxMs = 600_000;
const secretBytes = 32;
const maxName = 128;
const maxCode = 4_096;
/** A page of the console, and one thing on it. */
const placeShape = /^[a-z]{1,20}(?:\/[\w-]{1,80})?$/;
const cookieShape = /^(\d{1,15})\.[\w-]{43}(?:\.([a-z]{1,20}(?:\/[\w-]{1,80})?))?$/;

/**
 * Signs people in at an OpenID provider. Nothing is kept of a sign-in that has begun: its browser holds a random value with a time,
 * and state, nonce and PKCE verifier are derived from it by a key that only this process has.
 */
export class OidcSignIn {
  readonly #options: OidcSignInOptions;
  readonly #key: Uint8Array;

  constructor(options: OidcSignInOptions) {
    this.#options = options;
    this.#key = options.random(secretBytes);
  }

  /**
   * Begins a sign-in. Resolves with the provider's address and with the cookie that the callback needs. `place`: where on the page it
   * leads, such as `approvals/apr_…`; any other text leads to its beginning. Rejects as the client does.
   */
  async begin(place: string): Promise<{ readonly url: string; readonly cookie: string }> {
    const { client, elapsedMs, random, recentMs } = this.#options;
    const end = Math.ceil(elapsedMs() + maxMs);
    const secret = Buffer.from(random(secretBytes)).toString("base64url");
    const cookie = [end, secret, ...(placeShape.test(place) ? [place] : [])].join(".");
    return { url: await client.signInUrl(this.#secretsOf(cookie), Math.ceil(recentMs / 1_000)), cookie };
  }

  /**
   * Ends a sign-in by what the provider's redirect says, in the browser that began it. Resolves with who signed in, and where on the
   * page that leads. Rejects with SIGN_IN_REFUSED and SIGN_IN_UNAVAILABLE.
   */
  async finish(
    query: URLSearchParams,
    cookie: string | undefined,
  ): Promise<{ readonly signIn: SignIn; readonly place: string }> {
    const { client, config, elapsedMs } = this.#options;
    const [, until, place = ""] = cookieShape.exec(cookie ?? "") ?? [];
    const end = Number(until ?? Number.NaN);
    if (cookie === undefined || !(elapsedMs() < end)) {
      throw refused("expected it to end in the browser in which it began, within 10 min");
    }
    const secrets = this.#secretsOf(cookie);
    if (!isSame(secrets.state, valueIn(query, "state"))) throw refused("expected the `state` with which it began");
    // RFC 9207: a provider that says who it is must be the one that was asked.
    if (query.has("iss") && valueIn(query, "iss") !== config.issuer)
      throw refused("expected the answer of `console.oidc.issuer`");
    const code = valueIn(query, "code");
    if (code === "" || code.length > maxCode) throw refused("the provider gave no code: nobody signed in there");
    return { signIn: this.#signInOf(await client.redeem(code, secrets)), place };
  }

  #signInOf(claims: Parameters<typeof mappedTenant>[0]): SignIn {
    const { config, clock } = this.#options;
    const subject = readSubject(claims);
    if (subject === undefined) throw refused("expected a subject of at most 255 printable ASCII characters");
    const tenant = mappedTenant(claims, config);
    if (tenant === undefined) throw refused("expected a tenant of `console.oidc.tenants`, got another, or none");
    const role = config.role ?? mappedRole(claims, config);
    if (role === undefined) throw refused("expected a role of `console.oidc.roles`, got another, or none");
    const id = tokenPrincipalId(tenant, config.issuer, subject);
    const principal = Object.freeze({ id, tenant, role, keyId: tokenKeyId(subject) });
    const { auth_time: at } = claims;
    // A provider that does not say when it asked for the password leaves us the time of this.
    const ageMs = typeof at === "number" ? Math.max(0, clock() - at * 1_000) : 0;
    return { by: "oidc", principal, name: nameOf(claims, config.nameClaim) ?? subject, ageMs };
  }

  #secretsOf(cookie: string): SignInSecrets {
    const derive = (name: string): string =>
      createHmac("sha256", this.#key).update(`${name} ${cookie}`).digest("base64url");
    const verifier = derive("verifier");
    const challenge = createHash("sha256").update(verifier).digest("base64url");
    return { state: derive("state"), nonce: derive("nonce"), verifier, challenge };
  }
}

function nameOf(claims: Readonly<Record<string, unknown>>, claim: string): string | undefined {
  const name = Object.hasOwn(claims, claim) ? claims[claim] : undefined;
  return typeof name === "string" && name.trim() !== "" ? name.slice(0, maxName).toWellFormed() : undefined;
}

function isSame(expected: string, got: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(got)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function refused(detail: string): GatewayError {
  return new GatewayError("SIGN_IN_REFUSED", `${detail}; sign in again`);
}
