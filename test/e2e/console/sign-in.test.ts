import type { Server } from "node:http";
import { expect } from "chai";
import { ConsoleSite, type ConsoleTab, forwardTo, listen, originOf } from "../../support/console-browser.ts";
import { client, IdentityProvider } from "../../support/identity-provider.ts";
import { echoCall, holdCall, keys, messageHeaders, post } from "../wire/world.ts";

describe("signing in to the console in Chromium", () => {
  let door: Server;
  let provider: IdentityProvider;
  let site: ConsoleSite;

  before(async () => {
    door = await listen();
    provider = await IdentityProvider.start(`${originOf(door)}/console/callback`);
    provider.people
      .set("ada", { name: 'Ada <img src=x onerror="window.hit=1">', groups: ["reviewers"] })
      .set("vera", { name: "Vera", groups: ["watchers"] });
    const config = `
console:
  public_url: ${originOf(door)}
  oidc:
    issuer: ${provider.issuer}
    client_id: ${client.id}
    client_secret_env: CONSOLE_SECRET
    tenant: acme
    role_claim: groups
    roles: { reviewers: operator, watchers: viewer }
`;
    site = await ConsoleSite.open(config, { CONSOLE_SECRET: client.secret });
    forwardTo(door, site.world.gateway.metricsUrl, (headers) => headers);
  });
  after(async () => {
    await site?.stop();
    await provider?.close();
    door.closeAllConnections();
    door.close();
  });
  afterEach(async () => {
    provider.isDown = false;
    provider.signedInAgo = 0;
    expect(await site.closeTabs()).to.deep.equal([]);
  });

  /** Follows the link to the provider, and fills in its form. */
  async function signIn(tab: ConsoleTab, person: string, from = ".ways a"): Promise<void> {
    await tab.click(from);
    await tab.until(`document.querySelector("input[name=login]") !== null`);
    await tab.page.type("input[name=login]", person);
    await tab.click("button");
    await tab.until(`document.querySelector("#live")?.innerText === "live"`);
  }

  async function stateOf(id: string): Promise<string> {
    const headers = { "x-api-key": keys.admin };
    const answer = await fetch(`${site.world.gateway.adminUrl}/admin/v1/approvals/${id}`, { headers });
    return ((await answer.json()) as { approval: { state: string } }).approval.state;
  }

  it("leads through the provider back to the approval of the link, which a click approves, and out again", async () => {
    const args = `{"please_review":"over-oidc"}`;
    const { body } = await post(site.world, echoCall(args), { headers: messageHeaders("viewer") });
    const [approval = ""] = /apr_[0-9a-f]{32}/.exec(body) ?? [];
    const calls = (await site.world.upstream.calls()).length;
    const tab = await site.visitAt(originOf(door));
    await tab.open(`#/approvals/${approval}`);
    await signIn(tab, "ada");
    expect(new URL(tab.page.url()).hash).to.equal(`#/approvals/${approval}`);
    expect(await tab.text("#who")).to.match(/^Ada <img src=x onerror="window.hit=1"> · acme · operator$/);
    expect(await tab.page.evaluate(`["hit" in window, document.cookie, localStorage.length]`)).to.deep.equal([
      false,
      "",
      0,
    ]);
    await tab.click("button.approve");
    await tab.untilText(".detail-head", "approved");
    await post(site.world, echoCall(args), { headers: messageHeaders("viewer") });
    expect(await site.world.upstream.calls()).to.have.lengthOf(calls + 1);
    // The other tab of the same browser shows nothing any more, either.
    const other = await site.visitBeside(tab);
    await other.open("#/decisions");
    await other.untilText(".rows", "echo");
    await tab.page.bringToFront(); // a tab behind another draws no frame
    await tab.click("#sign-out");
    await tab.untilText("#page", "Sign in with your organization");
    await other.page.bringToFront();
    await other.untilText("#page", "Sign in with your organization");
    expect(await other.text("body")).to.not.include("echo");
    other.faults.length = 0; // its WebSocket was closed, and a request refused
  });

  it("leads on from a sign-in that is too old for a change to a recent one, at the same approval", async () => {
    const approval = await holdCall(site.world, "viewer");
    provider.signedInAgo = 16 * 60;
    const tab = await site.visitAt(originOf(door));
    // A provider that heeds `max_age` would not say that the sign-in is that old.
    const heedless = { isOn: true };
    await tab.page.setRequestInterception(true);
    tab.page.on("request", (request) => {
      const url = new URL(request.url());
      if (heedless.isOn && url.origin === provider.issuer) url.searchParams.delete("max_age");
      void request.continue({ url: url.href });
    });
    await tab.open(`#/approvals/${approval}`);
    await signIn(tab, "ada");
    await tab.untilText("#notice", "changes need a more recent sign-in");
    await tab.click("button.approve");
    await tab.untilText(".approval", "Not recorded");
    expect(await stateOf(approval)).to.equal("pending");
    heedless.isOn = false;
    provider.signedInAgo = 0;
    await signIn(tab, "ada", "#notice a");
    await tab.click("button.approve");
    await tab.untilText(".detail-head", "approved");
    expect(await stateOf(approval)).to.equal("approved");
    expect(tab.faults.splice(0).every((each) => each.includes("401"))).to.equal(true);
  });

  it("shows another role once the provider says so, and a viewer no button", async () => {
    const approval = await holdCall(site.world);
    const tab = await site.visitAt(originOf(door));
    await tab.open();
    await signIn(tab, "vera");
    await tab.go(`#/approvals/${approval}`);
    await tab.untilText(".approval", "you are signed in as viewer");
    await tab.click("#sign-out");
    await tab.untilText("#page", "Sign in with your organization");
    provider.people.set("vera", { name: "Vera", groups: ["reviewers"] });
    await tab.click(".ways a"); // the provider still knows her
    await tab.until(`document.querySelector("button.approve") !== null`);
    expect(await tab.text("#who")).to.equal("Vera · acme · operator");
  });

  it("says on a page of its own that the provider is down, or refused, and leads back", async () => {
    const tab = await site.visitAt(originOf(door));
    await tab.open();
    await tab.click(".ways a");
    await tab.until(`document.querySelector("input[name=login]") !== null`);
    await tab.page.type("input[name=login]", "mallory");
    await tab.click("button");
    await tab.untilText("h1", "Not signed in");
    await tab.click("a");
    await tab.untilText("#page", "Sign in with your organization");
    // Down from when it leads back: the code cannot be exchanged.
    await tab.page.setRequestInterception(true);
    tab.page.on("request", (request) => {
      provider.isDown ||= request.url().startsWith(`${tab.origin}/console/callback`);
      void request.continue();
    });
    await tab.click(".ways a");
    await tab.until(`document.querySelector("input[name=login]") !== null`);
    await tab.page.type("input[name=login]", "ada");
    await tab.click("button");
    await tab.untilText("body", "cannot be asked now");
    expect(await tab.text("h1")).to.equal("Not signed in");
    expect(tab.faults.splice(0).every((each) => /\b(?:401|503)\b/.test(each))).to.equal(true);
  });
});
