import { expect } from "chai";
import { tokenPrincipalId } from "../../../core/action/principal.ts";
import { until } from "../../support/event-stream.ts";
import { client, IdentityProvider, signInAt } from "../../support/identity-provider.ts";
import type { WireResponse } from "../../support/wire.ts";
import { LiveClient } from "../live/live-client.ts";
import { Browser } from "./browser.ts";
import { ConsoleWorld } from "./world.ts";

const origin = "https://console.example";
/** A navigation that another site, here the provider, led to. */
const led = { "sec-fetch-site": "cross-site" };

describe("signing in to the console at an OpenID provider", () => {
  let provider: IdentityProvider;
  let world: ConsoleWorld;

  before(async () => {
    provider = await IdentityProvider.start(`${origin}/console/callback`);
    provider.people
      .set("ada", { name: "Ada <b>Lovelace</b>", org: "org-1", groups: ["staff", "reviewers", "watchers"] })
      .set("vera", { org: "org-1", groups: "watchers" })
      .set("finn", { name: "Finn", org: "org-2", groups: ["reviewers"] })
      .set("nora", { org: "org-1", groups: ["staff"] })
      .set("olga", { org: "org-9", groups: ["reviewers"] });
    world = await ConsoleWorld.start(consoleConfig(provider.issuer), "", { CONSOLE_SECRET: client.secret });
  });
  after(async () => {
    await world?.remove();
    await provider?.close();
  });
  beforeEach(() => {
    provider.signedInAgo = 0;
  });

  const browser = (): Browser => new Browser(world.url, [], origin);
  const codeIn = ({ status, body }: WireResponse): string =>
    status === 303 ? "303" : `${status} ${(JSON.parse(body) as { code: string }).code}`;

  async function begin(by: Browser): Promise<string> {
    const { status, headers } = await by.ask("/console/sign-in");
    expect(status).to.equal(303);
    return String(headers.get("location"));
  }

  /** The address to which the provider leads a person back. */
  async function returned(by: Browser, person: string): Promise<URL> {
    return signInAt(provider, await begin(by), person, new Map());
  }

  const arrive = (by: Browser, { pathname, search }: URL): Promise<WireResponse> => by.ask(pathname + search, led);

  async function signedIn(person: string): Promise<Browser> {
    const by = browser();
    expect(codeIn(await arrive(by, await returned(by, person)))).to.equal("303");
    expect((await by.session()).authenticated).to.equal(true);
    return by;
  }

  it("is unavailable while the provider is down, and goes on once it is back", async () => {
    provider.isDown = true;
    const refused = await browser().ask("/console/sign-in");
    expect([codeIn(refused), refused.headers.get("retry-after")]).to.deep.equal(["503 SIGN_IN_UNAVAILABLE", "2"]);
    provider.isDown = false;
    await until(async () => (await browser().ask("/console/sign-in")).status === 303);
  });

  it("asks for a code with PKCE, and a sign-in that is recent, bound to this browser", async () => {
    const by = browser();
    const answer = await by.ask("/console/sign-in");
    expect(answer.headers.get("set-cookie")).to.match(
      /^__Host-agw_sign_in=\d+\.[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
    );
    const url = new URL(String(answer.headers.get("location")));
    const { state, nonce, code_challenge: challenge, ...query } = Object.fromEntries(url.searchParams);
    expect([url.origin, url.pathname]).to.deep.equal([provider.issuer, "/auth"]);
    expect(query).to.deep.equal({
      response_type: "code",
      client_id: client.id,
      redirect_uri: `${origin}/console/callback`,
      scope: "openid profile",
      code_challenge_method: "S256",
      max_age: "900",
    });
    for (const value of [state, nonce, challenge]) expect(value).to.match(/^[\w-]{43}$/);
    expect(new Set([state, nonce, challenge]).size).to.equal(3);
  });

  it("makes a session of tenant, role and name by the claims, and keeps no token of it", async () => {
    const by = browser();
    const back = await returned(by, "ada");
    expect(back.searchParams.get("iss")).to.equal(provider.issuer);
    const answer = await arrive(by, back);
    expect([answer.status, answer.headers.get("location")]).to.deep.equal([303, "/"]);
    const [cleared, set] = answer.headers.get("set-cookie")?.split(", ") ?? [];
    expect(cleared).to.equal("__Host-agw_sign_in=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax; Secure");
    expect(set).to.match(/^__Host-agw_console=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/);
    const session = await by.session();
    expect(session).to.deep.include({ authenticated: true, by: "oidc", sign_out: true });
    expect(session.principal).to.deep.equal({
      id: tokenPrincipalId("acme", provider.issuer, "ada"),
      tenant: "acme",
      role: "operator",
      name: "Ada <b>Lovelace</b>",
    });
    const said = world.world.gateway.stderr() + answer.body + JSON.stringify(session);
    for (const secret of [client.secret, String(back.searchParams.get("code"))]) expect(said).not.to.contain(secret);
  });

  it("tells a visitor where to sign in", async () => {
    const { body } = await browser().ask("/console/session");
    expect(JSON.parse(body)).to.deep.include({ authenticated: false, sign_in: { oidc: "/console/sign-in" } });
  });

  for (const [person, why, what] of [
    ["nora", "a role", "without a group that is listed"],
    ["olga", "a tenant", "of an organization that is not listed"],
    ["mallory", "no code", "whom the provider does not let in"],
  ] as const) {
    it(`lets nobody in ${what} [S85]`, async () => {
      const by = browser();
      const answer = await arrive(by, await returned(by, person));
      expect(codeIn(answer)).to.equal("401 SIGN_IN_REFUSED");
      expect(answer.body).to.contain(why);
      expect([...by.cookies.keys()]).to.deep.equal(["__Host-agw_sign_in"]);
      expect((await by.session()).authenticated).to.equal(false);
    });
  }

  it("ends only in the browser that began it, with its state, its provider and its code, once [S85]", async () => {
    const by = browser();
    const back = await returned(by, "ada");
    const kept = by.cookies.get("__Host-agw_sign_in") as string;
    const changed = (name: string, value: string | null): URL => {
      const url = new URL(back);
      if (value === null) url.searchParams.delete(name);
      else url.searchParams.set(name, value);
      return url;
    };
    const another = browser();
    await begin(another);
    const attempts: readonly (readonly [URL, string | undefined])[] = [
      [back, undefined],
      [back, another.cookies.get("__Host-agw_sign_in")],
      [back, kept.replace(/^\d+/, "9".repeat(15))],
      [back, `1${kept.slice(kept.indexOf("."))}`],
      [changed("state", "A".repeat(43)), kept],
      [changed("state", null), kept],
      [changed("iss", "https://other.example"), kept],
      [changed("code", null), kept],
      [changed("code", "A".repeat(43)), kept],
      [changed("code", "A".repeat(5_000)), kept],
    ];
    for (const [url, cookie] of attempts) {
      const thief = browser();
      if (cookie !== undefined) thief.cookies.set("__Host-agw_sign_in", cookie);
      expect(codeIn(await arrive(thief, url)), `${url.search} ${cookie}`).to.equal("401 SIGN_IN_REFUSED");
      expect((await thief.session()).authenticated).to.equal(false);
    }
    expect(codeIn(await arrive(by, back))).to.equal("303");
    const again = browser();
    again.cookies.set("__Host-agw_sign_in", kept);
    expect(codeIn(await arrive(again, back))).to.equal("401 SIGN_IN_REFUSED");
  });

  it("says to a person in a browser what went wrong", async () => {
    const answer = await browser().ask("/console/callback?code=%3Cb%3E", { ...led, accept: "text/html,*/*;q=0.8" });
    expect([answer.status, answer.headers.get("content-type")]).to.deep.equal([401, "text/html; charset=utf-8"]);
    expect(answer.body).to.contain("the sign-in was refused").and.not.contain("<b>");
    expect(answer.headers.get("content-security-policy"))
      .to.contain("default-src 'none'")
      .and.contain("frame-ancestors 'none'");
  });

  it("lets a viewer and another tenant change nothing [S85]", async () => {
    const { id, args } = await world.hold();
    const before = await world.calls();
    const target = `/admin/v1/approvals/${id}/approve`;
    expect(await (await signedIn("vera")).change(target)).to.equal("403 ROLE_FORBIDDEN");
    expect(await (await signedIn("finn")).change(target)).to.equal("404 NOT_FOUND");
    await world.repeat(args);
    expect([await world.stateOf(id), await world.calls()]).to.deep.equal(["pending", before]);
  });

  it("refuses changes after a sign-in that is 15 min old, whatever the browser asks of the provider [S85]", async () => {
    provider.signedInAgo = 15 * 60;
    const by = browser();
    const url = new URL(await begin(by));
    url.searchParams.delete("max_age"); // which would have the provider ask anew
    expect(codeIn(await arrive(by, await signInAt(provider, url.href, "ada", new Map())))).to.equal("303");
    const { signed_in_at: at, recent_until: until_, csrf } = await by.session();
    expect([csrf.length, Date.parse(until_) - Date.parse(at)]).to.deep.equal([43, 15 * 60_000]);
    expect((await by.ask("/admin/v1/approvals")).status).to.equal(200);
    const { id, args } = await world.hold();
    const before = await world.calls();
    const target = `/admin/v1/approvals/${id}/approve`;
    expect(await by.change(target)).to.equal("401 SIGN_IN_STALE");
    await world.repeat(args);
    expect([await world.stateOf(id), await world.calls()]).to.deep.equal(["pending", before]);
    provider.signedInAgo = 0;
    expect(codeIn(await arrive(by, await returned(by, "ada")))).to.equal("303");
    await by.session();
    expect(await by.change(target)).to.equal("200");
  });

  it("makes no session of a sign-in of 12 h ago", async () => {
    provider.signedInAgo = 12 * 3_600;
    const by = browser();
    expect(codeIn(await arrive(by, await returned(by, "ada")))).to.equal("401 SIGN_IN_REFUSED");
    expect((await by.session()).authenticated).to.equal(false);
  });

  it("ends the session by a sign-out", async () => {
    const by = await signedIn("ada");
    const kept = new Map(by.cookies);
    expect(await by.change("/console/sign-out", { "x-csrf-token": undefined })).to.equal("403 CSRF_INVALID");
    expect((await by.ask("/admin/v1/approvals")).status).to.equal(200);
    expect(await by.change("/console/sign-out")).to.equal("200");
    expect(by.cookies.size).to.equal(0);
    for (const [name, value] of kept) by.cookies.set(name, value);
    expect((await by.ask("/admin/v1/approvals")).status).to.equal(401);
  });

  it("ends a person's sessions once their role is another, and gives the new role [S85]", async () => {
    const former = await signedIn("ada");
    const peer = await signedIn("vera");
    const ada = provider.people.get("ada");
    provider.people.set("ada", { ...ada, groups: ["watchers"] });
    const now = await signedIn("ada");
    provider.people.set("ada", { ...ada });
    expect((await former.ask("/admin/v1/approvals")).status).to.equal(401);
    expect((await peer.ask("/admin/v1/approvals")).status).to.equal(200);
    const { id } = await world.hold();
    expect(await now.change(`/admin/v1/approvals/${id}/approve`)).to.equal("403 ROLE_FORBIDDEN");
    expect(await world.stateOf(id)).to.equal("pending");
  });

  it("goes on through a reload, and while the provider is down", async () => {
    const by = await signedIn("ada");
    const headers = { cookie: String(by.cookie[0]?.[1]), host: "console.example", origin };
    const live = await new LiveClient(world.url, { headers }).open();
    world.world.gateway.process.kill("SIGHUP");
    await until(() => world.world.gateway.stderr().includes("configuration_reloaded"));
    provider.isDown = true;
    const late = browser();
    const start = await begin(late); // its addresses are known for a while
    provider.isDown = false;
    const back = await signInAt(provider, start, "ada", new Map());
    provider.isDown = true;
    expect(codeIn(await arrive(late, back))).to.equal("503 SIGN_IN_UNAVAILABLE");
    const { id } = await world.hold();
    expect(await by.change(`/admin/v1/approvals/${id}/approve`)).to.equal("200");
    provider.isDown = false;
    live.say("ping", {}, "p");
    expect((await live.hear((message) => message.id === "p")).type).to.equal("pong");
    live.socket.terminate();
  });

  it("has an approval run once, and evidence names who gave it", async () => {
    const by = await signedIn("ada");
    const { id, args } = await world.hold();
    const before = await world.calls();
    expect(await by.change(`/admin/v1/approvals/${id}/approve`, {}, { reviewer: "otto" })).to.equal("200");
    await world.repeat(args);
    expect(await world.repeat(args)).to.contain("is pending");
    expect([await world.calls(), await world.stateOf(id)]).to.deep.equal([before + 1, "consumed"]);
    const records = await world.records();
    const given = records.filter(({ kind, detail }) => kind === "approval" && detail.event === "approved");
    expect(given.length).to.be.above(2);
    expect(new Set(given.map(({ detail }) => detail.reviewer))).to.deep.equal(
      new Set([tokenPrincipalId("acme", provider.issuer, "ada")]),
    );
  });
});

function consoleConfig(issuer: string): string {
  return `
console:
  public_url: ${origin}
  oidc:
    issuer: ${issuer}
    client_id: ${client.id}
    client_secret_env: CONSOLE_SECRET
    tenant_claim: org
    tenants: { org-1: acme, org-2: other }
    role_claim: groups
    roles: { reviewers: operator, watchers: viewer }
`;
}
