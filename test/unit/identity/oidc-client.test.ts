import { expect } from "chai";
import { createLocalJWKSet, type JWTPayload } from "jose";
import { GatewayError } from "../../../core/action/error.ts";
import { OidcClient } from "../../../core/identity/oidc-client.ts";
import { tokenError } from "../../../core/identity/token-error.ts";
import { egress } from "../../support/egress.ts";
import {
  encodePart,
  jsonAnswer,
  type KeyServer,
  newIssuerKey,
  publishedKey,
  signToken,
  startKeyServer,
} from "../../support/token-issuer.ts";

const now = Date.parse("2026-11-23T06:00:00Z");
const seconds = now / 1_000;
const canary = "canary-of-the-provider";
const secrets = { state: "state", nonce: "nonce-of-this-sign-in", verifier: "verifier", challenge: "challenge" };
const own = newIssuerKey("own");

/** What the token endpoint got. */
interface Posted {
  readonly form: Readonly<Record<string, string>>;
  readonly authorization: string | undefined;
}

describe("OidcClient", () => {
  let server: KeyServer;
  let issuer: string;
  let posted: Posted[];
  let faults: string[];
  let elapsed: number;

  beforeEach(async () => {
    server = await startKeyServer();
    issuer = `${server.issuer}/team`;
    [posted, faults, elapsed] = [[], [], 0];
  });
  afterEach(() => server.close());

  /** Serves the metadata with these members in place of good ones, and this answer of the token endpoint. */
  function provide(answer: object, metadata: object = {}, status = 200): void {
    const endpoints = { authorization_endpoint: `${issuer}/auth?tenant=a`, token_endpoint: `${issuer}/token` };
    server.answerWith((request, response) => {
      if (request.url !== "/team/token") {
        jsonAnswer({ issuer, ...endpoints, jwks_uri: `${issuer}/keys`, ...metadata })(request, response);
        return;
      }
      let body = "";
      request.on("data", (chunk) => (body += String(chunk)));
      request.on("end", () => {
        posted.push({
          form: Object.fromEntries(new URLSearchParams(body)),
          authorization: request.headers.authorization,
        });
        response.statusCode = status;
        jsonAnswer(answer)(request, response);
      });
    });
  }

  async function client(clientSecret: string | null = null, find?: never): Promise<OidcClient> {
    const keys = { find: find ?? createLocalJWKSet({ keys: [await publishedKey(own)] }) };
    const config = { issuer, clientId: "console", clientSecret, secretVariable: null, scopes: ["openid", "groups"] };
    const mapping = { tenant: "acme", tenantClaim: null, tenants: {}, role: null, roleClaim: null, roles: {} };
    return new OidcClient({
      config: { ...config, ...mapping, nameClaim: "name" },
      redirectUri: "https://console.example/console/callback",
      keys: keys as never,
      egress,
      clock: () => now,
      elapsedMs: () => elapsed,
      onFault: (fault) => faults.push(fault),
    });
  }

  const claims = (): JWTPayload => ({
    iss: issuer,
    aud: "console",
    sub: "ada",
    nonce: secrets.nonce,
    iat: seconds,
    exp: seconds + 60,
  });

  /** The code of the error with which a code is refused; nothing that the provider said is part of it. */
  async function codeOf(work: Promise<unknown>): Promise<string> {
    const cause = await work.then(
      () => undefined,
      (error: unknown) => GatewayError.from(error),
    );
    expect(cause?.message ?? "").not.to.contain(canary);
    return cause?.code ?? "none";
  }

  async function redeemed(token: unknown): Promise<string> {
    provide({ id_token: token, access_token: canary });
    return codeOf((await client()).redeem("code", secrets));
  }

  it("begins at the address that the metadata names, each scope asked for once", async () => {
    provide({});
    const url = new URL(await (await client()).signInUrl(secrets, 900));
    expect(url.origin + url.pathname).to.equal(`${issuer}/auth`);
    expect(Object.fromEntries(url.searchParams)).to.deep.include({
      tenant: "a",
      scope: "openid groups",
      max_age: "900",
    });
    expect(url.href).not.to.contain(secrets.verifier);
  });

  it("returns the claims of an ID token for this sign-in", async () => {
    provide({ id_token: await signToken(own, claims(), { typ: "JWT" }) });
    expect(await (await client()).redeem("code", secrets)).to.deep.equal(claims());
    const { form, authorization } = posted[0] as Posted;
    expect([form, authorization]).to.deep.equal([
      {
        grant_type: "authorization_code",
        code: "code",
        redirect_uri: "https://console.example/console/callback",
        code_verifier: secrets.verifier,
        client_id: "console",
      },
      undefined,
    ]);
  });

  it("proves itself by its secret, where the provider wants it", async () => {
    const id_token = await signToken(own, claims());
    for (const methods of [undefined, ["client_secret_basic", "client_secret_post"], ["client_secret_post"]]) {
      provide({ id_token }, { token_endpoint_auth_methods_supported: methods });
      await (await client("a secret:+%")).redeem("code", secrets);
    }
    const basic = `Basic ${Buffer.from("console:a+secret%3A%2B%25").toString("base64")}`;
    expect(posted.map(({ authorization }) => authorization)).to.deep.equal([basic, basic, undefined]);
    expect(posted.map(({ form }) => form.client_secret)).to.deep.equal([undefined, undefined, "a secret:+%"]);
  });

  it("refuses ID tokens for another client, sign-in, time or issuer, and those that nobody signed [S85]", async () => {
    const changed = (more: Readonly<Record<string, unknown>>, header = {}, key = own): Promise<string> =>
      signToken(key, { ...claims(), ...more }, header);
    const unsigned = `${encodePart({ alg: "none" })}.${encodePart(claims())}.`;
    const tokens = [
      await changed({ nonce: "of-another" }),
      await changed({ nonce: undefined }),
      await changed({ aud: "another" }),
      await changed({ aud: ["console", "another"] }),
      await changed({ azp: "another" }),
      await changed({ iss: "https://other.example" }),
      await changed({ exp: seconds - 31 }),
      await changed({ exp: undefined }),
      await changed({ iat: undefined }),
      await changed({ sub: undefined }),
      await changed({}, {}, newIssuerKey("own")),
      await changed({}, { kid: "unknown" }),
      unsigned,
      canary,
      "a".repeat(40_000),
      7,
      undefined,
    ];
    for (const token of tokens) expect(await redeemed(token), String(token)).to.equal("SIGN_IN_REFUSED");
    expect(await redeemed(await changed({ aud: ["console", "another"], azp: "console" }))).to.equal("none");
    expect(faults).to.deep.equal([]);
  });

  it("tells a code that is refused from a provider that cannot be asked", async () => {
    provide({ error: "invalid_grant", error_description: canary }, {}, 400);
    expect(await codeOf((await client()).redeem("code", secrets))).to.equal("SIGN_IN_REFUSED");
    for (const status of [401, 302, 500, 503]) {
      provide({ error: canary }, {}, status);
      expect(await codeOf((await client()).redeem("code", secrets))).to.equal("SIGN_IN_UNAVAILABLE");
    }
    for (const name of ["authorization_endpoint", "token_endpoint"]) {
      for (const address of [undefined, 7, "/token", "https://127.0.0.1/token"]) {
        provide({}, { [name]: address });
        const [one, begin] = [await client(), name === "authorization_endpoint"];
        const work = begin ? one.signInUrl(secrets, 1) : one.redeem("code", secrets);
        expect(await codeOf(work), `${name} ${address}`).to.equal("SIGN_IN_UNAVAILABLE");
      }
    }
    const keyless = await client(null, (() => Promise.reject(tokenError("keys_unavailable"))) as never);
    provide({ id_token: await signToken(own, claims()) });
    expect(await codeOf(keyless.redeem("code", secrets))).to.equal("SIGN_IN_UNAVAILABLE");
    expect(faults.length).to.equal(13);
  });

  it("reads the metadata once for many people, and after a failure no sooner than after 2 s", async () => {
    const one = await client();
    server.answerWith((_, response) => void response.writeHead(500).end(canary));
    const asked = await Promise.all([1, 2, 3].map(() => codeOf(one.signInUrl(secrets, 1))));
    expect(asked).to.deep.equal(Array(3).fill("SIGN_IN_UNAVAILABLE"));
    const failed = server.fetchCount;
    provide({});
    elapsed = 1_999;
    expect(await codeOf(one.signInUrl(secrets, 1))).to.equal("SIGN_IN_UNAVAILABLE");
    elapsed = 2_000;
    expect(await codeOf(one.signInUrl(secrets, 1))).to.equal("none");
    elapsed = 601_999;
    expect(await codeOf(one.signInUrl(secrets, 1))).to.equal("none");
    const read = server.fetchCount;
    elapsed = 602_000;
    expect(await codeOf(one.signInUrl(secrets, 1))).to.equal("none");
    expect([failed, read > failed, server.fetchCount > read]).to.deep.equal([2, true, true]);
  });
});
