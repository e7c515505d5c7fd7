import { expect } from "chai";
import { isForPeople, operations, type Route, routes } from "../../support/route-table.ts";
import { type HeaderList, send } from "../../support/wire.ts";
import { LiveClient } from "../live/live-client.ts";
import { type KeyHolder, keys } from "../wire/world.ts";
import type { Browser } from "./browser.ts";
import { ConsoleWorld, keyOf, principalOf } from "./world.ts";

const holders: readonly (KeyHolder | "nobody" | "guesser")[] = [
  "admin",
  "operator",
  "viewer",
  "foreign",
  "nobody",
  "guesser",
];

/** What a request of a foreign page, or a careless client, has in place of what the console's own page sends. */
const foreign: readonly (readonly [
  what: string,
  headers: Readonly<Record<string, string | undefined>>,
  code: string,
])[] = [
  ["no CSRF token", { "x-csrf-token": undefined }, "403 CSRF_INVALID"],
  ["an empty CSRF token", { "x-csrf-token": "" }, "403 CSRF_INVALID"],
  ["a wrong CSRF token", { "x-csrf-token": "A".repeat(43) }, "403 CSRF_INVALID"],
  ["no cookie", { cookie: undefined }, "403 CSRF_INVALID"],
  ["another origin", { origin: "https://evil.example" }, "403 ORIGIN_FORBIDDEN"],
  ["another port of this machine", { origin: "http://localhost:3000" }, "403 ORIGIN_FORBIDDEN"],
  ["no origin of its own, as a form of another site", { origin: "null" }, "403 ORIGIN_FORBIDDEN"],
  ["another site", { origin: undefined, "sec-fetch-site": "cross-site" }, "403 ORIGIN_FORBIDDEN"],
  ["a sibling site", { origin: undefined, "sec-fetch-site": "same-site" }, "403 ORIGIN_FORBIDDEN"],
  ["a form's type", { "content-type": "text/plain" }, "415 UNSUPPORTED_MEDIA_TYPE"],
  ["no type", { "content-type": undefined }, "415 UNSUPPORTED_MEDIA_TYPE"],
  ["another host", { host: "evil.example" }, "403 HOST_FORBIDDEN"],
];

describe("the console behind a proxy that adds a key", () => {
  let world: ConsoleWorld;
  let rita: Browser;

  before(async () => {
    world = await ConsoleWorld.start();
    rita = world.browser("operator");
    await rita.session();
  });
  after(() => world.remove());

  it("makes a session for the holder, whose cookie no script reads and no other site sends", async () => {
    const browser = world.browser("operator");
    const { headers, body } = await browser.ask("/console/session");
    expect(headers.get("set-cookie")).to.match(/^agw_console=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
    expect(headers.get("cross-origin-resource-policy")).to.equal("same-origin");
    expect(headers.get("cache-control")).to.equal("no-store");
    const session = JSON.parse(body);
    expect(session).to.deep.include({ authenticated: true, by: "key", sign_out: false });
    expect(session.principal).to.deep.equal({
      id: principalOf("operator"),
      tenant: "acme",
      role: "operator",
      name: "operator",
    });
    expect(session.csrf).to.match(/^[\w-]{43}$/);
    expect(body).not.to.contain(keys.operator);
    expect(Date.parse(session.recent_until) - Date.parse(session.signed_in_at)).to.equal(15 * 60_000);
    expect(Date.parse(session.expires_at) - Date.parse(session.signed_in_at)).to.equal(30 * 60_000);
    const again = await browser.ask("/console/session");
    expect([again.headers.get("set-cookie"), JSON.parse(again.body).csrf]).to.deep.equal([undefined, session.csrf]);
  });

  it("tells a visitor how to get in, and makes none a session", async () => {
    const { status, headers, body } = await world.browser().ask("/console/session");
    expect([status, headers.get("set-cookie")]).to.deep.equal([200, undefined]);
    expect(JSON.parse(body)).to.deep.include({ authenticated: false, sign_in: {} });
    expect(JSON.parse(body).notice).to.match(/`gateway console`.*reverse proxy/);
    expect((await world.browser().ask("/admin/v1/approvals")).status).to.equal(401);
  });

  it("serves what is read to exactly those to whom the admin port does [S85]", async () => {
    const { id } = await world.hold();
    const reading = Object.values<Route>(routes).filter((route) => isForPeople(route) && route.method === "GET");
    expect(reading.length).to.be.above(25);
    for (const { path } of reading) {
      const target = path.replace(":task", "nightly").replace(":id", id);
      for (const holder of holders) {
        const headers: HeaderList =
          holder === "nobody" ? [] : holder === "guesser" ? [["x-api-key", "g".repeat(43)]] : keyOf(holder);
        const [there, here] = await Promise.all(
          [world.world.gateway.adminUrl, world.url].map((url) => send(url, { target, headers })),
        );
        expect(here?.status, `${holder} ${path}`).to.equal(there?.status);
      }
    }
  });

  it("serves no page of another site, whatever it reads [S85]", async () => {
    for (const site of ["cross-site", "same-site"]) {
      for (const target of [
        "/console/session",
        "/admin/v1/approvals",
        "/admin/v1/graphql?query=%7Bevidence%7Bseq%7D%7D",
      ]) {
        const { status, headers } = await rita.ask(target, { "sec-fetch-site": site });
        expect([status, headers.get("set-cookie")], target).to.deep.equal([403, undefined]);
      }
    }
  });

  it("lets a key alone change nothing, by any operation [S85]", async () => {
    const { id } = await world.hold();
    const before = await world.calls();
    const changing = Object.values(operations).filter(
      ({ path, method, isReading }) => path.startsWith("/admin/v1/") && method !== "GET" && isReading !== true,
    );
    expect(changing.length).to.be.above(20);
    for (const { method, path } of changing) {
      for (const holder of holders) {
        const headers: HeaderList = holder === "nobody" || holder === "guesser" ? [] : keyOf(holder);
        const { status } = await send(world.url, {
          method,
          target: path.replace(":task", "nightly").replace(":id", id),
          headers: [...headers, ["content-type", "application/json"]],
          body: "{}",
        });
        expect(status, `${holder} ${method} ${path}`).to.equal(headers.length === 0 ? 401 : 403);
      }
    }
    expect([await world.stateOf(id), await world.calls()]).to.deep.equal(["pending", before]);
  });

  for (const [what, headers, code] of foreign) {
    it(`refuses a review with ${what}, and nothing is run [S85]`, async () => {
      const { id, args } = await world.hold();
      const before = await world.calls();
      expect(await rita.change(`/admin/v1/approvals/${id}/approve`, headers)).to.equal(code);
      await world.repeat(args);
      expect([await world.stateOf(id), await world.calls()]).to.deep.equal(["pending", before]);
    });
  }

  it("refuses a review with the token of another session, by a viewer, and of another tenant [S85]", async () => {
    const { id, args } = await world.hold();
    const before = await world.calls();
    const path = `/admin/v1/approvals/${id}/approve`;
    const other = world.browser("operator");
    expect(await rita.change(path, { "x-csrf-token": (await other.session()).csrf })).to.equal("403 CSRF_INVALID");
    for (const [holder, code] of [
      ["viewer", "403 ROLE_FORBIDDEN"],
      ["foreign", "404 NOT_FOUND"],
    ] as const) {
      const browser = world.browser(holder);
      await browser.session();
      expect(await browser.change(path)).to.equal(code);
    }
    await world.repeat(args);
    expect([await world.stateOf(id), await world.calls()]).to.deep.equal(["pending", before]);
  });

  it("gives a session without its key nothing, and ends it once it comes with another [S85]", async () => {
    const browser = world.browser("operator");
    await browser.session();
    const { id } = await world.hold();
    const path = `/admin/v1/approvals/${id}/approve`;
    const { headers } = world.browser();
    browser.headers = headers;
    expect((await browser.ask("/admin/v1/approvals")).status).to.equal(401);
    expect(await browser.change(path)).to.equal("401 KEY_MISSING");
    browser.headers = [...headers, ...keyOf("admin")];
    expect(await browser.change(path)).to.equal("403 CSRF_INVALID");
    browser.headers = [...headers, ...keyOf("operator")];
    expect(await browser.change(path)).to.equal("403 CSRF_INVALID");
    expect(await world.stateOf(id)).to.equal("pending");
  });

  it("ends a session by its sign-out, which needs the CSRF token too", async () => {
    const browser = world.browser("operator");
    await browser.session();
    const old = browser.cookie;
    expect(await browser.change("/console/sign-out", { "x-csrf-token": "wrong" })).to.equal("403 CSRF_INVALID");
    const headers = { "content-type": "application/json", "x-csrf-token": browser.csrf };
    const answer = await browser.ask("/console/sign-out", headers, "POST", "{}");
    expect(answer.headers.get("set-cookie")).to.equal("agw_console=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict");
    expect(JSON.parse(answer.body)).to.deep.include({ authenticated: false });
    const { id } = await world.hold();
    const target = `/admin/v1/approvals/${id}/approve`;
    expect(await browser.change(target, Object.fromEntries(old))).to.equal("403 CSRF_INVALID");
    expect(await world.stateOf(id)).to.equal("pending");
  });

  describe("GraphQL", () => {
    const ask = async (query: unknown): Promise<string> =>
      rita.change("/admin/v1/graphql", {}, Array.isArray(query) ? query : { query });

    it("answers there as on the admin port, by POST with a CSRF token only", async () => {
      expect(await ask("{ evidence { seq } }")).to.equal("200");
      expect(
        await rita.change("/admin/v1/graphql", { "x-csrf-token": undefined }, { query: "{ evidence { seq } }" }),
      ).to.equal("403 CSRF_INVALID");
    });

    for (const [what, query] of [
      ["50 levels", `${"{ evidence ".repeat(50)}{ seq }${" }".repeat(50)}`],
      ["1,000 aliases", `{ ${Array.from({ length: 1_000 }, (_, n) => `a${n}: evidence { seq }`).join(" ")} }`],
      ["introspection", "{ __schema { types { name } } }"],
      ["a batch", [{ query: "{ evidence { seq } }" }]],
    ] as const) {
      it(`refuses ${what} there, too [S71]`, async () => {
        expect(await ask(query)).to.match(/^400 /);
      });
    }
  });

  describe("/v1/ws", () => {
    const clients: LiveClient[] = [];
    const connect = (headers: Readonly<Record<string, string>>): LiveClient => {
      const client = new LiveClient(world.url, { headers });
      clients.push(client);
      return client;
    };
    afterEach(() => {
      for (const { socket } of clients.splice(0)) socket.terminate();
    });

    it("opens with the cookie of a session, from its own page, and ends with the session [S72]", async () => {
      const browser = await world.linked("operator");
      const cookie = String(browser.cookie[0]?.[1]);
      const client = await connect({ cookie, origin: world.url }).open();
      client.say("subscribe", { channels: ["approvals"] });
      await client.hear(({ type }) => type === "subscribed");
      const { id } = await world.hold();
      expect(JSON.stringify(await client.hear(({ type }) => type === "event"))).to.contain(id);
      const closed = client.closed();
      expect(await browser.change("/console/sign-out")).to.equal("200");
      expect(await closed).to.deep.equal([4401, "the console session ended"]);
    });

    it("is refused to pages of other origins, with a session or a proxy's key, and tells nothing without either [S72]", async () => {
      const { cookies } = await world.linked("operator");
      const cookie = [...cookies].map((pair) => pair.join("=")).join("; ");
      for (const origin of ["https://evil.example", "http://localhost:3000"]) {
        expect(await connect({ cookie, origin }).refusal()).to.equal(403);
        expect(await connect({ "x-api-key": keys.operator, origin }).refusal()).to.equal(403);
      }
      const stranger = await connect({ cookie: "agw_console=none", origin: world.url }).open();
      stranger.say("subscribe", { channels: ["approvals"] }, "s");
      expect((await stranger.hear(({ id }) => id === "s")).payload).to.include({ code: "KEY_MISSING" });
    });
  });

  describe("a review", () => {
    it("has an approval run once, and evidence names who gave it and who was refused [S85]", async () => {
      const viewer = world.browser("viewer");
      await viewer.session();
      const { id, args } = await world.hold();
      const before = await world.calls();
      await viewer.change(`/admin/v1/approvals/${id}/approve`);
      expect(await rita.change(`/admin/v1/approvals/${id}/approve`, {}, { reviewer: "somebody else" })).to.equal("200");
      expect(await world.repeat(args))
        .to.contain('"result"')
        .and.not.contain("pending");
      expect(await world.repeat(args)).to.contain("is pending");
      expect(await world.calls()).to.equal(before + 1);
      const records = await world.records();
      const given = records.filter(({ kind, detail }) => kind === "approval" && detail.event === "approved");
      expect(given.map(({ detail }) => detail.reviewer)).to.deep.equal([principalOf("operator")]);
      const refused = records.filter(({ detail }) => detail?.action === "refused" && detail.subject === id);
      expect(refused.map(({ detail }) => [detail.principal, detail.route, detail.code])).to.deep.equal([
        [principalOf("viewer"), "admin.approve", "ROLE_FORBIDDEN"],
      ]);
    });
  });
});
