import { expect } from "chai";
import { faultsOf, hashA, hashB, loadText } from "./fixture.ts";

const keys = `keys: [{id: a, tenant: acme, role: admin, key_hash: '${hashA}'}, {id: b, tenant: other, role: admin, key_hash: '${hashB}'}]`;
const issuer = "issuer: https://login.example";
const resource = "audience: https://gateway.example/mcp";

/** The faults of a configuration with these members of `oauth`, without file and place. */
async function textsOf(oauth: string, more = ""): Promise<string[]> {
  const faults = await faultsOf(`${keys}\noauth: {${oauth}}\n${more}`);
  return faults.map((fault) => fault.replace(/^gateway\.yaml:\d+:\d+: /, ""));
}

describe("oauth", () => {
  it("is off where the file says nothing", async () => {
    expect((await loadText(keys)).oauth).to.equal(null);
    expect((await loadText(`${keys}\noauth: {}`)).oauth).to.equal(null);
  });

  it("has safe defaults", async () => {
    expect((await loadText(`${keys}\noauth: {${issuer}, ${resource}, tenant: acme}`)).oauth).to.deep.equal({
      issuer: "https://login.example",
      audience: "https://gateway.example/mcp",
      scopes: [],
      jwksUri: null,
      jwksCacheMs: 600_000,
      jwksRefetchMs: 10_000,
      algorithms: ["RS256", "PS256", "ES256", "EdDSA", "Ed25519"],
      tokenType: "at+jwt",
      leewaySeconds: 30,
      tenant: "acme",
      tenantClaim: null,
      tenants: {},
      role: "viewer",
      roleClaim: null,
      roles: {},
    });
  });

  it("maps values of claims to tenants and roles", async () => {
    const text = `${issuer}, ${resource}, tenant_claim: org, tenants: {Org_1: acme, 'https://b': other}, role_claim: groups, roles: {Ops: operator}`;
    expect((await loadText(`${keys}\noauth: {${text}}`)).oauth).to.deep.include({
      tenants: { Org_1: "acme", "https://b": "other" },
      roles: { Ops: "operator" },
    });
  });

  for (const algorithm of ["none", "HS256", "HS512", "RSA1_5", "dir"]) {
    it(`accepts no algorithm ${algorithm}`, async () => {
      const [fault = "", ...more] = await textsOf(`${issuer}, ${resource}, tenant: acme, algorithms: [${algorithm}]`);
      expect(fault).to.match(/^oauth\.algorithms\[0\]: expected `RS256`, /);
      expect(more).to.deep.equal([]);
    });
  }

  it("accepts no empty list of algorithms", async () => {
    expect(await textsOf(`${issuer}, ${resource}, tenant: acme, algorithms: []`)).to.have.length(1);
  });

  it("refuses settings without an issuer, which would protect nothing", async () => {
    expect(await textsOf(`${resource}, tenant: acme`)).to.deep.equal([
      "oauth.issuer: expected an issuer, got none, because `audience` is given",
    ]);
  });

  it("needs an audience whose path is that of the endpoint, or none", async () => {
    expect(await textsOf(`${issuer}, tenant: acme`)).to.deep.equal([
      "oauth.audience: expected the URL of the MCP endpoint, got none, because `issuer` is given",
    ]);
    expect(await textsOf(`${issuer}, tenant: acme, audience: https://gateway.example/ai/mcp`)).to.deep.equal([
      "oauth.audience: expected a URL with the path `/mcp` or none, got `https://gateway.example/ai/mcp`",
    ]);
    for (const url of ["https://gateway.example", "https://gateway.example/", "http://127.0.0.1:8080/mcp"]) {
      expect(await textsOf(`${issuer}, tenant: acme, audience: '${url}'`), url).to.deep.equal([]);
    }
  });

  it("needs a tenant, or a claim that says it, and not both", async () => {
    expect(await textsOf(`${issuer}, ${resource}`)).to.deep.equal([
      "oauth.tenant: expected either `tenant` or `tenant_claim`, got neither",
    ]);
    expect(await textsOf(`${issuer}, ${resource}, tenant: acme, tenant_claim: org, tenants: {x: acme}`)).to.deep.equal([
      "oauth.tenant: expected either `tenant` or `tenant_claim`, got both",
    ]);
  });

  it("needs values beside each claim, and a claim beside values", async () => {
    expect(await textsOf(`${issuer}, ${resource}, tenant_claim: org, role_claim: groups`)).to.deep.equal([
      "oauth.tenants: expected values, got none, because `tenant_claim` is given",
      "oauth.roles: expected values, got none, because `role_claim` is given",
    ]);
    expect(await textsOf(`${issuer}, ${resource}, tenant: acme, tenants: {x: acme}, roles: {x: viewer}`)).to.deep.equal(
      [
        "oauth.tenant_claim: expected a claim, got none, because `tenants` is given",
        "oauth.role_claim: expected a claim, got none, because `roles` is given",
      ],
    );
  });

  it("knows tenants by their keys: without one, nobody could review", async () => {
    expect(await textsOf(`${issuer}, ${resource}, tenant: amce`)).to.deep.equal([
      "oauth.tenant: expected the tenant of a key, got `amce`",
    ]);
    expect(await textsOf(`${issuer}, ${resource}, tenant_claim: org, tenants: {x: acme, y: third}`)).to.deep.equal([
      "oauth.tenants.y: expected the tenant of a key, got `third`",
    ]);
  });

  it("does not keep keys for a shorter time than it may take to fetch them again", async () => {
    const text = `${issuer}, ${resource}, tenant: acme, jwks_cache_seconds: 5, jwks_refetch_seconds: 6`;
    expect(await textsOf(text)).to.deep.equal([
      "oauth.jwks_refetch_seconds: expected at most `jwks_cache_seconds` (5), got 6",
    ]);
  });

  it("asks for a token, which open access would not", async () => {
    const open = "mcp_gateway: {require_auth: false, anonymous_tenant: acme}";
    expect(await textsOf(`${issuer}, ${resource}, tenant: acme`, open)).to.deep.equal([
      "mcp_gateway.require_auth: expected `true`, got `false`, because `oauth.issuer` is given: no client would be asked for a token",
    ]);
  });

  it("reads keys over https, or from this machine", async () => {
    expect(await textsOf("issuer: http://login.example")).to.have.length(1);
    expect(await textsOf(`${issuer}, ${resource}, tenant: acme, jwks_uri: http://login.example/keys`)).to.have.length(
      1,
    );
  });
});
