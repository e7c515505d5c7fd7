import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { contentDigest } from "../../../core/action/canonical-json.ts";
import { openConsole } from "../../../core/compose/console.ts";
import { newId } from "../../../core/compose/identity.ts";
import { localConfig } from "../../../core/config/local.ts";
import { AccessRule, keyChallenge } from "../../../core/http/access.ts";
import { buildApp, type MountedRoute } from "../../../core/http/app.ts";
import { Listener } from "../../../core/http/listener.ts";
import { KeyRing } from "../../../core/identity/key-ring.ts";
import { openLog } from "../../../core/observe/log.ts";
import { Metrics } from "../../../core/observe/metrics.ts";
import { egress } from "../../support/egress.ts";
import { client, IdentityProvider, signInAt } from "../../support/identity-provider.ts";
import { Browser } from "./browser.ts";

const origin = "https://console.example";
const minute = 60_000;
const key = `test-${randomBytes(32).toString("base64url")}`;

/** The console's way in behind its port, with a clock that the test sets. */
describe("a session of the console", () => {
  let provider: IdentityProvider;
  let listener: Listener;
  let browser: Browser;
  let close: () => void;
  let elapsed = 1_000_000;

  before(async () => {
    provider = await IdentityProvider.start(`${origin}/console/callback`);
    provider.people.set("ada", { name: "Ada" });
    const defaults = localConfig({ dataDir: "data", mark: null, packs: [], plugins: [], upstreams: [], keys: [] });
    const oidc = {
      issuer: provider.issuer,
      clientId: client.id,
      clientSecret: client.secret,
      secretVariable: null,
      scopes: ["profile"],
      tenant: "acme",
      tenantClaim: null,
      tenants: {},
      role: "operator",
      roleClaim: null,
      roles: {},
      nameClaim: "name",
    } as const;
    const console = { publicUrl: origin, recentSignInMs: 15 * minute, oidc };
    const keys = new KeyRing([{ id: "rita", tenant: "acme", role: "operator", keyHash: contentDigest(key) }]);
    const log = openLog("silent", false);
    const keyRule = new AccessRule(keys, null);
    const fairShare = { admit: () => undefined };
    const access = await openConsole(
      { ...defaults, console },
      { keys, keyRule, log, egress, fairShare },
      () => elapsed,
    );
    close = () => access.sessions.close();
    const { guard, callers } = access;
    const change: MountedRoute = {
      method: "POST",
      path: "/change",
      serve: (ctx) => {
        callers.checkChange(ctx.req);
        ctx.body = {};
      },
    };
    const routes = [...access.routes, change];
    const metrics = new Metrics("0", false);
    const parts = { routes, renderers: [], guard, challenge: keyChallenge, failures: null, metrics, log, newId };
    listener = await Listener.open(buildApp("metrics", parts), "127.0.0.1", 0, defaults.limits, null);
    browser = new Browser(`http://127.0.0.1:${listener.port}`, [], origin);
  });
  after(async () => {
    close?.();
    await listener?.close(0);
    await provider?.close();
  });

  async function signIn(): Promise<void> {
    const { headers } = await browser.ask("/console/sign-in");
    const back = await signInAt(provider, String(headers.get("location")), "ada", new Map());
    expect((await browser.ask(back.pathname + back.search)).status).to.equal(303);
  }

  it("by a link allows changes for 15 min, and a new link allows them again [S85]", async () => {
    const person = new Browser(`http://127.0.0.1:${listener.port}`);
    const open = async (): Promise<void> => {
      const headers = { "x-api-key": key, "content-type": "application/json" };
      const { path } = JSON.parse((await person.ask("/console/links", headers, "POST")).body);
      expect((await person.ask(path)).status).to.equal(303);
      await person.session();
    };
    await open();
    expect(await person.change("/change")).to.equal("200");
    elapsed += 15 * minute;
    expect((await person.session()).authenticated).to.equal(true);
    expect(await person.change("/change")).to.equal("401 SIGN_IN_STALE");
    await open();
    expect(await person.change("/change")).to.equal("200");
  });

  it("by a key allows them for 15 min, and as long again once the page is loaded anew [S85]", async () => {
    const person = new Browser(`http://127.0.0.1:${listener.port}`, [["x-api-key", key]]);
    const before = await person.session();
    elapsed += 15 * minute;
    expect(await person.change("/change")).to.equal("401 SIGN_IN_STALE");
    expect((await person.session()).csrf).not.to.equal(before.csrf);
    expect(await person.change("/change")).to.equal("200");
    expect(await person.change("/change", { "x-csrf-token": before.csrf })).to.equal("403 CSRF_INVALID");
  });

  it("of a provider ends 30 min after its last request [S85]", async () => {
    await signIn();
    for (let turn = 0; turn < 3; turn++) {
      elapsed += 29 * minute;
      expect((await browser.session()).authenticated).to.equal(true);
    }
    elapsed += 30 * minute;
    expect((await browser.session()).authenticated).to.equal(false);
  });

  it("of a provider ends 12 h after its sign-in, however busy [S85]", async () => {
    await signIn();
    for (let passed = 0; passed < 12 * 60 - 20; passed += 20) {
      elapsed += 20 * minute;
      expect((await browser.session()).authenticated).to.equal(true);
    }
    elapsed += 20 * minute;
    expect((await browser.session()).authenticated).to.equal(false);
  });

  it("of a provider begins for 16 people of one address at once, and for others once they are through [S85]", async () => {
    const people = Array.from({ length: 17 }, () => new Browser(`http://127.0.0.1:${listener.port}`, [], origin));
    const backs: URL[] = [];
    for (const person of people) {
      const { headers } = await person.ask("/console/sign-in");
      backs.push(await signInAt(provider, String(headers.get("location")), "ada", new Map()));
    }
    let release = (): void => undefined;
    provider.release = new Promise((resolve) => {
      release = resolve;
    });
    const arrive = async (at: number): Promise<number> => {
      const status = (await people[at]?.ask(`${backs[at]?.pathname}${backs[at]?.search}`))?.status ?? 0;
      if (status === 429) release();
      return status;
    };
    const answered = await Promise.all(people.map((_, at) => arrive(at)));
    expect(answered.toSorted()).to.deep.equal([...Array(16).fill(303), 429]);
    expect(await arrive(answered.indexOf(429))).to.equal(303);
  });

  it("of a provider does not begin by a sign-in that took longer than 10 min", async () => {
    const { headers } = await browser.ask("/console/sign-in");
    const back = await signInAt(provider, String(headers.get("location")), "ada", new Map());
    elapsed += 10 * minute + 1;
    const { status, body } = await browser.ask(back.pathname + back.search);
    expect([status, JSON.parse(body).code]).to.deep.equal([401, "SIGN_IN_REFUSED"]);
  });
});
