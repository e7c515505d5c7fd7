import { expect } from "chai";
import { createLocalJWKSet, type JWTPayload, SignJWT } from "jose";
import { GatewayError } from "../../../core/action/error.ts";
import { type Principal, principalId, tokenPrincipalId } from "../../../core/action/principal.ts";
import type { OauthConfig } from "../../../core/config/gateway-config.ts";
import { AccessTokens } from "../../../core/identity/access-token.ts";
import { encodePart, newIssuerKey, publishedKey, signToken } from "../../support/token-issuer.ts";

const issuer = "https://login.example";
const audience = "https://gateway.example/mcp";
const now = Date.parse("2026-11-23T06:00:00Z");
const seconds = now / 1_000;
const config: OauthConfig = {
  issuer,
  audience,
  scopes: [],
  jwksUri: null,
  jwksCacheMs: 600_000,
  jwksRefetchMs: 10_000,
  algorithms: ["RS256", "ES256"],
  tokenType: "at+jwt",
  leewaySeconds: 30,
  tenant: "acme",
  tenantClaim: null,
  tenants: {},
  role: "viewer",
  roleClaim: null,
  roles: {},
};

const rsa = newIssuerKey("rsa", "RS256");
const own = newIssuerKey("own");
const stranger = newIssuerKey("own");
const claims: JWTPayload = { iss: issuer, aud: audience, sub: "agent-7", exp: seconds + 600 };

describe("AccessTokens", () => {
  let published: ReturnType<typeof createLocalJWKSet>;
  before(async () => {
    published = createLocalJWKSet({ keys: [await publishedKey(rsa), await publishedKey(own)] });
  });

  function authenticate(token: string, changed: Partial<OauthConfig> = {}): Promise<Principal> {
    const tokens = new AccessTokens({ config: { ...config, ...changed }, keys: { find: published }, clock: () => now });
    return tokens.authenticate(token);
  }

  /** The reason of the refusal, or `accepted`; an error contains nothing of the token. */
  async function verdict(token: string, changed: Partial<OauthConfig> = {}): Promise<string> {
    const error = await authenticate(token, changed).catch((cause: unknown) => cause);
    if (!(error instanceof GatewayError)) return "accepted";
    expect(error.row.status).to.equal(401);
    expect(error.cause).to.equal(undefined);
    const text = JSON.stringify([error.message, error.data]);
    for (const part of token.split(".")) if (part.length > 8) expect(text).not.to.contain(part);
    return error.code === "TOKEN_INVALID" ? String(error.data?.reason) : error.code;
  }

  const signed = (changed: JWTPayload, header: Record<string, unknown> = {}): Promise<string> =>
    signToken(own, { ...claims, ...changed }, header);

  it("derives the principal from tenant, issuer and subject", async () => {
    const principal = await authenticate(await signed({}));
    expect(principal).to.deep.equal({
      id: tokenPrincipalId("acme", issuer, "agent-7"),
      tenant: "acme",
      role: "viewer",
      keyId: "oauth:agent-7",
    });
    const others = [
      tokenPrincipalId("other", issuer, "agent-7"),
      tokenPrincipalId("acme", `${issuer}/`, "agent-7"),
      tokenPrincipalId("acme", issuer, "agent-8"),
      principalId("acme", "agent-7"),
    ];
    expect(new Set([principal.id, ...others]).size).to.equal(5);
  });

  it("gives a subject one principal through all of its tokens", async () => {
    const tokens = await Promise.all([signed({ jti: "a" }), signed({ jti: "b" }), signToken(rsa, claims)]);
    const principals = await Promise.all(tokens.map((token) => authenticate(token)));
    expect(new Set(principals.map(({ id }) => id)).size).to.equal(1);
  });

  it("accepts an audience in a list, and that of a host with a slash at the end", async () => {
    expect(await verdict(await signed({ aud: ["https://other.example", audience] }))).to.equal("accepted");
    expect(await verdict(await signed({ aud: "https://a.example/" }), { audience: "https://a.example" })).to.equal(
      "accepted",
    );
  });

  const refused: readonly [what: string, reason: string, changed: JWTPayload, header?: Record<string, unknown>][] = [
    ["an expired token", "expired", { exp: seconds - 30 }],
    ["a token of a later time", "not_yet_valid", { nbf: seconds + 31 }],
    ["another audience", "audience", { aud: "https://other.example/mcp" }],
    ["an audience that begins with the right one", "audience", { aud: `${audience}/x` }],
    ["an audience that is an object", "audience", { aud: { [audience]: true } as never }],
    ["no audience", "audience", { aud: undefined as never }],
    ["another issuer", "issuer", { iss: "https://login.example.evil.example" }],
    ["an issuer with a slash at the end", "issuer", { iss: `${issuer}/` }],
    ["no issuer", "issuer", { iss: undefined as never }],
    ["no expiry", "claims", { exp: undefined as never }],
    ["an expiry that is a text", "claims", { exp: "2999" as never }],
    ["no subject", "claims", { sub: undefined as never }],
    ["an empty subject", "claims", { sub: "" }],
    ["a subject that is a list", "claims", { sub: ["agent-7"] as never }],
    ["a subject with a line break", "claims", { sub: "a\nb" }],
    ["a subject with a backtick", "claims", { sub: "a`b" }],
    ["a subject of 256 characters", "claims", { sub: "x".repeat(256) }],
    ["the type of an ID token", "type", {}, { typ: "JWT" }],
    ["no type", "type", {}, { typ: undefined }],
    ["a key id that nobody published", "unknown_key", {}, { kid: "other" }],
    ["a critical header that nobody knows", "malformed", {}, { crit: ["x"], x: 1 }],
  ];
  for (const [what, reason, changed, header] of refused) {
    it(`refuses ${what}`, async () => {
      const { privateKey, alg, kid } = own;
      const protectedHeader = { alg, kid, typ: "at+jwt", ...header };
      const jwt = new SignJWT({ ...claims, ...changed }).setProtectedHeader(protectedHeader);
      const token =
        header?.crit === undefined ? await jwt.sign(privateKey) : await jwt.sign(privateKey, { crit: { x: true } });
      expect(await verdict(token)).to.equal(reason);
    });
  }

  it("allows clocks to differ by the configured seconds, and by none where it says 0", async () => {
    const late = await signed({ exp: seconds - 29 });
    const early = await signed({ nbf: seconds + 30 });
    expect([await verdict(late), await verdict(early)]).to.deep.equal(["accepted", "accepted"]);
    const strict = { leewaySeconds: 0 };
    expect([await verdict(late, strict), await verdict(early, strict)]).to.deep.equal(["expired", "not_yet_valid"]);
  });

  it("accepts tokens without the mark of an access token where the configuration says `any`", async () => {
    expect(await verdict(await signed({}, { typ: "JWT" }), { tokenType: "any" })).to.equal("accepted");
  });

  describe("signatures", () => {
    const parts = (header: object): string => `${encodePart(header)}.${encodePart(claims)}`;

    it("are required: `alg: none` in any spelling is refused", async () => {
      for (const alg of ["none", "None", "NONE", ""]) {
        expect(await verdict(`${parts({ alg, typ: "at+jwt", kid: "own" })}.`), alg).to.be.oneOf([
          "algorithm",
          "malformed",
        ]);
      }
    });

    it("by HMAC with the public key as the secret are refused, even where the key would fit", async () => {
      for (const { publicKey, kid } of [rsa, own]) {
        for (const form of ["pem", "der"] as const) {
          const exported = publicKey.export({ type: "spki", format: form as "pem" });
          const secret = new Uint8Array(Buffer.from(exported));
          const token = await new SignJWT(claims).setProtectedHeader({ alg: "HS256", kid, typ: "at+jwt" }).sign(secret);
          expect(await verdict(token)).to.equal("algorithm");
        }
      }
    });

    it("by an algorithm that is not listed are refused", async () => {
      expect(await verdict(await signToken(rsa, claims), { algorithms: ["ES256"] })).to.equal("algorithm");
    });

    it("by a stranger's key under a known id are refused", async () => {
      expect(await verdict(await signToken(stranger, claims))).to.equal("signature");
    });

    it("of other claims are refused", async () => {
      const [header, , signature] = (await signed({})).split(".");
      expect(await verdict(`${header}.${encodePart({ ...claims, sub: "admin" })}.${signature}`)).to.equal("signature");
    });

    it("by a key that the token brings along are refused", async () => {
      const jwk = await publishedKey(stranger);
      expect(await verdict(await signToken(stranger, claims, { jwk, jku: "http://127.0.0.1:1/" }))).to.equal(
        "signature",
      );
    });
  });

  it("refuses what is no signed JWT", async () => {
    const [header, payload, signature] = (await signed({})).split(".");
    const texts: readonly [string, string][] = [
      ["agw_unknown", "KEY_UNKNOWN"],
      ["a.b", "KEY_UNKNOWN"],
      [`${header}.${payload}.${signature}.x.y`, "KEY_UNKNOWN"],
      [`${header}.${payload}.${signature}=`, "KEY_UNKNOWN"],
      ["..", "KEY_UNKNOWN"],
      ["a.b.c", "malformed"],
      [`${encodePart([])}.${payload}.${signature}`, "malformed"],
      [`${encodePart({})}.${payload}.${signature}`, "malformed"],
      [`${header}.${payload}.`, "signature"],
      [`${header}.${payload}.${"A".repeat(8_192)}`, "too_large"],
    ];
    for (const [text, reason] of texts) expect(await verdict(text), text.slice(0, 40)).to.equal(reason);
  });

  it("needs every scope that is configured, as a text or as a list", async () => {
    const scopes = { scopes: ["tools", "mcp:call"] };
    for (const claim of [
      { scope: "mcp:call other tools" },
      { scp: ["tools", "mcp:call"] },
      { scp: "tools mcp:call" },
    ]) {
      expect(await verdict(await signed(claim), scopes), JSON.stringify(claim)).to.equal("accepted");
    }
    for (const claim of [
      {},
      { scope: "tools" },
      { scope: "tools,mcp:call" },
      { scope: "toolsmcp:call" },
      { scope: 1 },
      { scp: [["tools", "mcp:call"]] },
    ]) {
      expect(await verdict(await signed(claim), scopes), JSON.stringify(claim)).to.equal("scope");
    }
  });

  describe("tenant_claim", () => {
    const byClaim = { tenant: null, tenantClaim: "org", tenants: { "org-1": "acme", "org-2": "other" } };

    it("says the tenant by the values that are listed", async () => {
      expect(await authenticate(await signed({ org: "org-2" }), byClaim)).to.include({ tenant: "other" });
    });

    it("with any other value is refused", async () => {
      for (const org of ["acme", "org-3", "", "__proto__", "toString", 1, null, ["org-1"], { 0: "org-1" }]) {
        expect(await verdict(await signed({ org }), byClaim), JSON.stringify(org)).to.equal("tenant");
      }
      expect(await verdict(await signed({}), byClaim)).to.equal("tenant");
      expect(await verdict(await signed({}), { ...byClaim, tenantClaim: "constructor" })).to.equal("tenant");
    });

    it("means nothing where one tenant is configured", async () => {
      expect(await authenticate(await signed({ org: "org-2", tenant: "other" }))).to.include({ tenant: "acme" });
    });
  });

  describe("role_claim", () => {
    const byClaim = { roleClaim: "groups", roles: { ops: "operator", admins: "admin" } as const };

    it("says the role by the values that are listed, the strongest of several", async () => {
      const role = async (groups: unknown): Promise<string> =>
        (await authenticate(await signed({ groups }), byClaim)).role;
      expect(await role("ops")).to.equal("operator");
      expect(await role(["people", "ops"])).to.equal("operator");
      expect(await role(["ops", "admins"])).to.equal("admin");
    });

    it("with any other value, or none, leaves the configured role", async () => {
      for (const groups of ["admin", "operator", "__proto__", 1, null, {}, [["admins"]], []]) {
        expect((await authenticate(await signed({ groups }), byClaim)).role, JSON.stringify(groups)).to.equal("viewer");
      }
      expect((await authenticate(await signed({}), byClaim)).role).to.equal("viewer");
    });

    it("is ignored unless configured", async () => {
      expect((await authenticate(await signed({ role: "admin", roles: ["admin"], groups: ["admins"] }))).role).to.equal(
        "viewer",
      );
    });
  });
});
