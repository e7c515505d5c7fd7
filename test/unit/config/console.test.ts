import { expect } from "chai";
import { faultsOf, hashA, loadText } from "./fixture.ts";

const keys = `keys: [{id: k, tenant: acme, role: admin, key_hash: '${hashA}'}]`;
const address = "public_url: 'https://console.example'";
const provider = "issuer: 'https://login.example', client_id: console";

/** The faults of a configuration with these members of `console`, without file and place. */
async function textsOf(members: string): Promise<string[]> {
  const faults = await faultsOf(`${keys}\nconsole: {${members}}\n`);
  return faults.map((fault) => fault.replace(/^gateway\.yaml:\d+:\d+: /, ""));
}

describe("console", () => {
  it("is of this machine alone unless it is told otherwise, and reviews lead there", async () => {
    const { console, approvals } = await loadText(keys);
    expect([console, approvals.reviewUrl]).to.deep.equal([
      { publicUrl: null, recentSignInMs: 900_000, oidc: null },
      "http://127.0.0.1:8082/#/approvals/{id}",
    ]);
    for (const [listen, page] of [
      ["admin_host: '::1', metrics_port: 9000", "http://[::1]:9000/#/approvals/{id}"],
      ["metrics_port: 0", null],
      ["admin_host: 0.0.0.0, allowed_hosts: [gateway.example]", null],
    ] as const)
      expect((await loadText(`${keys}\nlisten: {${listen}}`)).approvals.reviewUrl, listen).to.equal(page);
  });

  it("has a public URL, to which reviews lead unless another page is named", async () => {
    const { console, approvals } = await loadText(`${keys}\nconsole: {public_url: 'https://Console.example/'}`);
    expect([console.publicUrl, approvals.reviewUrl]).to.deep.equal([
      "https://console.example",
      "https://console.example/#/approvals/{id}",
    ]);
    const other = "approvals: {review_url: 'https://desk.example/{id}'}";
    expect((await loadText(`${keys}\nconsole: {${address}}\n${other}`)).approvals.reviewUrl).to.equal(
      "https://desk.example/{id}",
    );
    expect(await textsOf("public_url: 'https://console.example/gateway'")).to.deep.equal([
      "console.public_url: expected a URL without a path, got more than `https://console.example`",
    ]);
  });

  it("maps the claims of a provider, each by one rule and not by two", async () => {
    const mapped = `${provider}, tenant_claim: org, tenants: {o: acme}, role_claim: groups, roles: {r: operator}`;
    const { oidc } = (await loadText(`${keys}\nconsole: {${address}, oidc: {${mapped}}}`)).console;
    expect(oidc).to.deep.equal({
      issuer: "https://login.example",
      clientId: "console",
      clientSecret: null,
      secretVariable: null,
      scopes: ["profile"],
      tenant: null,
      tenantClaim: "org",
      tenants: { o: "acme" },
      role: null,
      roleClaim: "groups",
      roles: { r: "operator" },
      nameClaim: "name",
    });
    expect(await textsOf(`${address}, oidc: {${provider}}`)).to.deep.equal([
      "console.oidc.tenant: expected either `tenant` or `tenant_claim`, got neither",
      "console.oidc.role: expected either `role` or `role_claim`, got neither",
    ]);
    const both = "tenant: acme, tenant_claim: org, tenants: {o: nobody}, role: viewer, role_claim: groups";
    expect(await textsOf(`${address}, oidc: {${provider}, ${both}}`)).to.have.members([
      "console.oidc.tenant: expected either `tenant` or `tenant_claim`, got both",
      "console.oidc.role: expected either `role` or `role_claim`, got both",
      "console.oidc.roles: expected values, got none, because `role_claim` is given",
      "console.oidc.tenants.o: expected the tenant of a key, got `nobody`",
    ]);
  });

  it("needs an address that nobody reads along, and all that a provider asks for", async () => {
    const rest = "tenant: acme, role: viewer";
    expect(await textsOf(`oidc: {${provider}, ${rest}}`)).to.deep.equal([
      "console.public_url: expected the URL at which people reach the console, got none, because `oidc.issuer` is given",
    ]);
    expect(await textsOf(`public_url: 'http://console.example', oidc: {${provider}, ${rest}}`)).to.deep.equal([
      "console.public_url: expected an https: URL, or one of this machine, because `oidc.issuer` is given",
    ]);
    expect(await textsOf(`${address}, oidc: {issuer: 'https://login.example', ${rest}}`)).to.deep.equal([
      "console.oidc.client_id: expected the id of this client, got none, because `issuer` is given",
    ]);
    expect(await textsOf(`${address}, oidc: {role: viewer}`)).to.deep.equal([
      "console.oidc.issuer: expected an issuer, got none, because `role` is given",
    ]);
    expect(await textsOf(`${address}, oidc: {${provider}, ${rest}, client_secret_env: NOT_SET}`)).to.deep.equal([
      "console.oidc.client_secret_env: expected environment variable `NOT_SET` to hold 8 to 1024 printable ASCII characters, got no such variable",
    ]);
  });
});
