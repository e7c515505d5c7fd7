import { type JWTPayload, jwtVerify } from "jose";
import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import type { JsonObject } from "../action/json.ts";
import type { OidcConfig } from "../config/gateway-config.ts";
import type { EgressGuard } from "../egress/egress-guard.ts";
import { endpointOf, fetchMetadata, type IssuerFetch, issuerFetch, KeyFetchError, sourceOf } from "./key-fetch.ts";
import type { SigningKeys } from "./signing-keys.ts";

interface OidcClientOptions {
  readonly config: OidcConfig;
  /** The address to which the provider sends people back. */
  readonly redirectUri: string;
  readonly keys: Pick<SigningKeys, "find">;
  readonly egress: EgressGuard;
  readonly clock: Clock;
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
  /** Called where the provider cannot be asked, or answers something else. `fault` contains nothing that it sent. */
  readonly onFault: (fault: string, detail: string | undefined) => void;
}

/** The values that bind a sign-in to the browser that began it. */
export interface SignInSecrets {
  readonly state: string;
  readonly nonce: string;
  /** For PKCE, RFC 7636. */
  readonly verifier: string;
  readonly challenge: string;
}

const metadataMs = 600_000;
const refetchMs = 2_000;
const maxTokenLength = 32_768;
const leewaySeconds = 30;
const algorithms = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];

/** A client of an OpenID provider: the authorization code flow with PKCE. */
export class OidcClient {
  readonly #options: OidcClientOptions;
  #metadata: { readonly promise: Promise<JsonObject>; readonly endMs: number } | undefined;

  constructor(options: OidcClientOptions) {
    this.#options = options;
  }

  /**
   * Returns the address at which a person signs in. `maxAgeS`: the provider asks anew for a sign-in that is older. Rejects with
   * SIGN_IN_UNAVAILABLE.
   */
  async signInUrl({ state, nonce, challenge }: SignInSecrets, maxAgeS: number): Promise<string> {
    const { config, redirectUri } = this.#options;
    const metadata = await this.#read();
    const url = new URL(this.#endpoint(metadata, "authorization_endpoint"));
    const query = {
      response_type: "code",
      client_id: config.clientId,
      redirect_uri: redirectUri,
      scope: ["openid", ...config.scopes.filter((scope) => scope !== "openid")].join(" "),
      state,
      nonce,
      code_challenge: challenge,
      code_challenge_method: "S256",
      max_age: String(maxAgeS),
    };
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return url.href;
  }

  /**
   * Exchanges a code for the claims of the person who signed in. Rejects with SIGN_IN_REFUSED, and with SIGN_IN_UNAVAILABLE where
   * the provider cannot be asked; neither contains anything of code and token.
   */
  async redeem(code: string, { nonce, verifier }: SignInSecrets): Promise<JWTPayload> {
    const { config, redirectUri, egress } = this.#options;
    const metadata = await this.#read();
    const address = this.#endpoint(metadata, "token_endpoint");
    const form = new URLSearchParams({
      grant_type: "authorization_code",
      code,
      redirect_uri: redirectUri,
      code_verifier: verifier,
    });
    const authorization = authenticate(config, metadata, form);
    const answer = await issuerFetch(egress)(address, sourceOf(address, config.issuer), { form, authorization }).catch(
      (cause: unknown) => {
        // RFC 6749, section 5.2: the answer to a code that is used, too old, of another client or of another sign-in.
        if (cause instanceof KeyFetchError && cause.status === 400)
          throw refused("expected a code that the provider takes");
        throw this.#unavailable(cause);
      },
    );
    return this.#verify(answer.id_token, nonce);
  }

  async #verify(token: unknown, nonce: string): Promise<JWTPayload> {
    const { config, keys, clock } = this.#options;
    if (typeof token !== "string" || token.length > maxTokenLength) throw refused("expected an ID token");
    const rule = {
      issuer: config.issuer,
      audience: config.clientId,
      algorithms,
      requiredClaims: ["exp", "iat", "sub"],
      clockTolerance: leewaySeconds,
      currentDate: new Date(clock()),
    };
    const { payload } = await jwtVerify(token, keys.find.bind(keys), rule).catch((cause: unknown) => {
      // Without a cause: the errors of jose carry the claims.
      if (cause instanceof GatewayError && cause.data?.reason === "keys_unavailable") throw this.#unavailable(cause);
      throw refused("expected an ID token of the provider for this client, valid now");
    });
    const { azp, aud } = payload;
    if (payload.nonce !== nonce) throw refused("expected an ID token for this sign-in");
    if (azp === undefined ? Array.isArray(aud) && aud.length > 1 : azp !== config.clientId) {
      throw refused("expected an ID token for this client alone");
    }
    return payload;
  }

  /** One request at a time, and none sooner than 2 s after the last, however many people ask. */
  #read(): Promise<JsonObject> {
    const { elapsedMs, config, egress } = this.#options;
    const now = elapsedMs();
    if (this.#metadata !== undefined && now < this.#metadata.endMs) return this.#metadata.promise;
    const fetchFrom: IssuerFetch = issuerFetch(egress);
    const promise = fetchMetadata(config.issuer, fetchFrom).catch((cause: unknown) => {
      this.#metadata = { promise, endMs: now + refetchMs };
      throw this.#unavailable(cause);
    });
    this.#metadata = { promise, endMs: now + metadataMs };
    return promise;
  }

  #endpoint(metadata: JsonObject, name: string): string {
    try {
      return endpointOf(metadata, name, this.#options.config.issuer);
    } catch (cause) {
      throw this.#unavailable(cause);
    }
  }

  #unavailable(cause: unknown): GatewayError {
    const isFetch = cause instanceof KeyFetchError;
    this.#options.onFault(isFetch ? cause.fault : "keys", isFetch ? cause.message : undefined);
    const detail = "it cannot be asked now, or answers something else; sessions go on, and the log says more";
    return new GatewayError("SIGN_IN_UNAVAILABLE", detail, { data: { retry_after_s: refetchMs / 1_000 } });
  }
}

/** Adds what proves the client to a request for tokens. Returns its `Authorization` header; null where it has none. */
function authenticate(
  { clientId, clientSecret }: OidcConfig,
  metadata: JsonObject,
  form: URLSearchParams,
): string | null {
  const { token_endpoint_auth_methods_supported: methods } = metadata;
  // By RFC 8414, a provider that lists none takes `client_secret_basic`.
  const isPosted =
    Array.isArray(methods) && methods.includes("client_secret_post") && !methods.includes("client_secret_basic");
  if (clientSecret !== null && !isPosted) {
    const pair = [clientId, clientSecret].map((text) => new URLSearchParams({ "": text }).toString().slice(1));
    return `Basic ${Buffer.from(pair.join(":")).toString("base64")}`;
  }
  form.set("client_id", clientId);
  if (clientSecret !== null) form.set("client_secret", clientSecret);
  return null;
}

function refused(detail: string): GatewayError {
  return new GatewayError("SIGN_IN_REFUSED", `${detail}; sign in again`);
}
