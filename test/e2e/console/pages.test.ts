import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { HTTPRequest } from "puppeteer-core";
import { escapeHidden, quoteVisible } from "../../../core/action/visible-text.ts";
import { ConsoleSite, type ConsoleTab } from "../../support/console-browser.ts";
import { hostileNames, unseen } from "../../support/hostile-name.ts";
import { hostileArguments } from "../../support/review-world.ts";
import { send, type WireResponse } from "../../support/wire.ts";
import { echoCall, keys, messageHeaders, post } from "../wire/world.ts";

/** Those that a session's label may be. */
const labels = hostileNames.filter(({ text: name }) => /^[!-~]+$/.test(name)).map(({ text: name }) => name);
const isInert = `["hit" in window, document.images.length]`;

/** Data of the pages with each of these wherever it shows a text. None of it passes the gateway. */
function everywhere(names: readonly string[]): Readonly<Record<string, object>> {
  const time = new Date(Date.now() + 60_000).toISOString();
  const decision = { decision: "allow", by_default: false, risk: 1, principal: "p", capability: "read", session: "s" };
  const action = (name: string): object => ({ id: name, tool: name, target: name, capability: name, protocol: "mcp" });
  const evaluation = (name: string): object => ({ risk: 1, rules: [name], by_default: false });
  const approval = (name: string): object => ({
    id: name,
    state: "pending",
    action: action(name),
    evaluation: evaluation(name),
    principal: { key_id: name, role: "operator" },
    session: { id: "s", transport: "http" },
    ...{ requested_at: time, expires_at: time, required: 1, endorsements: [] },
  });
  return {
    "/": {
      decisions: names.map((name) => ({
        time,
        data: { ...decision, id: name, tool: name, target: name, label: name, rules: [name], effect: name },
      })),
      sessions: [{ session: "s", state: "active", risk: 9, taints: names }],
      shadow_decisions: names.map((rule) => ({ rule, decision: "block", count: 1, last_time: time })),
      upstreams: names.map((name) => ({ name, state: name })),
      providers: names.map((name) => ({ name, breaker: name })),
      budgets: names.map((key) => ({ key, unit: "day", limit: 9, spent: 1 })),
    },
    "/admin/v1/approvals": { items: names.map(approval), next: null },
    "/admin/v1/policies": {
      items: names.map((name) => ({ kind: "pack", name, version: name, signer: name, digest: name, mode: "enforce" })),
    },
    "/admin/v1/policies/rules": {
      items: names.map((name) => ({ rule: name, title: name, decision: "allow", severity: "low", references: [name] })),
    },
    "/admin/v1/sessions": {
      items: names.map((name, at) => ({
        session: `s${at}`,
        state: "active",
        principal: name,
        risk: 1,
        taints: [name],
      })),
    },
    "/admin/v1/evidence/sessions": {
      items: names.map((label, at) => ({
        id: `s${at}`,
        label,
        records: 1,
        allow: 1,
        review: 0,
        block: 0,
        last_at: time,
      })),
    },
  };
}

describe("the pages of the console in Chromium", () => {
  let site: ConsoleSite;
  before(async () => {
    site = await ConsoleSite.open(`
usage: { budgets: [{ tenant: acme, tokens_per_day: 1000 }] }
providers: [{ name: mock, type: mock, models: [mock] }]
model_gateway: { routes: [{ model: mock, providers: [{ name: mock }] }] }`);
  });
  after(() => site.stop());
  afterEach(async () => expect(await site.closeTabs()).to.deep.equal([]));

  async function openAs(holder: "admin" | "viewer", hash?: string): Promise<ConsoleTab> {
    const tab = await site.visit(holder);
    await tab.open(hash);
    return tab;
  }

  const call = (args: object, label: string): Promise<WireResponse> =>
    post(site.world, echoCall(JSON.stringify(args)), {
      headers: [...messageHeaders(), ["x-gateway-session-id", label]],
    });

  /** The id of the approval that a call waits for. */
  async function hold(args: object, label = "held"): Promise<string> {
    const { body } = await call(args, label);
    return /Approval (apr_[0-9a-f]{32}) is pending/.exec(body)?.[1] ?? `expected a held call, got ${body}`;
  }

  /** How often the upstream was called with a word, by its own log. */
  async function callsWith(word: string): Promise<number> {
    return (await site.world.upstream.calls()).filter(({ body }) => body.includes(word)).length;
  }

  it("show a visitor the ways in, ask for no key and keep none [R4.2-14] [R4.2-15] [R1.2-10]", async () => {
    const tab = await site.visit(null);
    await tab.open();
    expect(await tab.text(".ways")).to.match(
      /gateway console[\s\S]*X-API-Key[\s\S]*neither asks for a key nor keeps one/,
    );
    expect(await tab.text("#health")).to.match(/^ok/);
    expect(await tab.count("input, textarea, form, select, [contenteditable], nav:not([hidden])")).to.equal(0);
    expect(await tab.page.evaluate("localStorage.length + sessionStorage.length + document.cookie.length")).to.equal(0);
  });

  it("show what goes on: a decision once it is made, what waits, health, budgets and evidence", async () => {
    const tab = await openAs("viewer");
    await call({}, "shown-at-once");
    await tab.until(`Number(document.querySelector("#allow").innerText) > 0`);
    const approval = await hold({ please_review: "now" });
    await tab.until(`document.querySelector('a[href="#/approvals/${approval}"]') !== null`);
    await call({ on_trial: true }, "trial");
    for (const word of ["recorder", "serves", "0 of 1,000 tokens this day", "takes records", "would have blocked"])
      await tab.untilText("#page", word);
    await tab.until(`document.querySelectorAll(".plot canvas").length === 2`);
    expect(await tab.text("#who")).to.include("viewer");
    expect(await tab.text("nav .badge")).to.match(/^[1-9]/);
  });

  it("let a reviewer approve by a click, after the end of the whole arguments, and the call runs once", async () => {
    const tab = await openAs("admin", "#/approvals");
    const args = { please_review: "approved-by-click", path: "/srv/report" };
    const approval = await hold(args);
    await tab.click(`.rows a[href="#/approvals/${approval}"]`);
    await tab.until(`document.querySelector("button.approve") !== null`);
    const order = `document.querySelector(".end-of-json").compareDocumentPosition(document.querySelector("button.approve"))`;
    expect(await tab.page.evaluate(order)).to.equal(4); // it follows
    expect(await tab.text(".whole pre")).to.include('"path": "/srv/report"');
    expect(await tab.text(".countdown")).to.match(/min|s/);
    await tab.page.type("textarea", "as agreed");
    await tab.click("button.approve");
    await tab.untilText(".detail-head", "approved");
    await tab.untilText(".detail", "as agreed");
    expect(await callsWith("approved-by-click")).to.equal(0);
    await call(args, "held");
    await call(args, "held");
    expect(await callsWith("approved-by-click")).to.equal(1);
    // The next one of this tool is shown with what differs from it.
    const next = await hold({ ...args, path: "/etc/passwd" });
    await tab.go(`#/approvals/${next}`);
    await tab.untilText(".json.after", "/etc/passwd");
    expect(await tab.text(".json.before")).to.include("/srv/report");
  });

  it("let a reviewer deny by keyboard alone, and nothing runs", async () => {
    const tab = await openAs("admin");
    const args = { please_review: "denied-by-keyboard" };
    const approval = await hold(args);
    await tab.page.keyboard.press("2");
    await tab.untilText("#title", "Approvals");
    await tab.page.keyboard.press("/");
    await tab.page.keyboard.type(approval);
    await tab.until(`document.querySelectorAll(".rows .row").length === 1`);
    await tab.page.keyboard.press("Tab");
    await tab.page.keyboard.press("ArrowDown");
    await tab.page.keyboard.press("Enter");
    await tab.until(`document.querySelector("button.deny") !== null`);
    for (let press = 0; press < 40; press++) {
      if (await tab.page.evaluate(`document.activeElement.matches("button.deny")`)) break;
      await tab.page.keyboard.press("Tab");
    }
    await tab.page.keyboard.press("Enter");
    await tab.untilText(".detail-head", "denied");
    await call(args, "held");
    expect(await callsWith("denied-by-keyboard")).to.equal(0);
  });

  it("show hostile arguments whole, escaped and inert [S51] [S67]", async () => {
    const tab = await openAs("admin");
    const markup = hostileNames.map(({ text: name }) => name).filter((name) => !/[\ud800-\udfff]/.test(name));
    const approval = await hold({ ...hostileArguments, markup, please_review: "hostile" });
    await tab.go(`#/approvals/${approval}`);
    await tab.until(`document.querySelector("button.approve") !== null`);
    const shown = String(await tab.page.evaluate(`document.querySelector(".whole pre").textContent`));
    expect(shown).to.not.match(unseen);
    for (const each of [...markup, `${"x".repeat(200_000)}END`, "a\u202eb", "p\u0430ypal.com"])
      expect(shown.includes(quoteVisible(each)), quoteVisible(each).slice(0, 80)).to.equal(true);
    expect(shown).to.include("mixes Latin and Cyrillic letters");
    expect(await tab.page.evaluate(isInert)).to.deep.equal([false, 1]);
  });

  it("have nothing to approve with where arguments are not there whole [S51]", async () => {
    const approval = await hold({ please_review: "cut" });
    const tab = await site.visit("admin");
    const path = `${site.world.gateway.adminUrl}/admin/v1/approvals/${approval}`;
    const view = (await (await fetch(path, { headers: asJson("admin") })).json()) as object;
    await tab.intercept((request) =>
      pathOf(request).endsWith(approval) ? { ...view, held: null, changes: null, withheld: "incomplete" } : undefined,
    );
    await tab.open(`#/approvals/${approval}`);
    await tab.until(`document.querySelector("button.deny") !== null`);
    expect(await tab.count("button.approve")).to.equal(0);
    expect(await tab.text(".approval")).to.include("no longer stored whole");
  });

  it("show what is not seen in a name as the command line does, on every page [S67] [S51]", async () => {
    const tab = await site.visit("admin");
    const names = hostileNames.map(({ text: name }) => name);
    const data = everywhere(names);
    const own = (await (
      await fetch(`${site.world.gateway.metricsUrl}/`, { headers: asJson("admin") })
    ).json()) as object;
    await tab.intercept((request) => {
      const path = pathOf(request);
      if (path === "/" && request.headers().accept !== "application/json") return undefined;
      const made = data[path];
      return made === undefined ? undefined : { next: null, ...(path === "/" ? own : {}), ...made };
    });
    await tab.open();
    await tab.until(`document.querySelectorAll("#page li").length > 20`);
    const everything = new Map<string, string>();
    for (const page of ["now", "approvals", "decisions", "sessions", "policies", "evidence"]) {
      await tab.go(`#/${page}`);
      await tab.page.setViewport({ width: 1_280, height: 4_000 });
      await tab.until(`document.querySelectorAll(".row").length > 5 || ${page === "now"}`);
      everything.set(page, String(await tab.page.evaluate(`document.querySelector("#page").textContent`)));
    }
    for (const [page, shown] of everything) {
      expect(shown, page).to.not.match(unseen);
      const found = names.filter((name) => shown.includes(escapeHidden(name)));
      expect(found.length, page).to.be.at.least(8);
    }
    const all = [...everything.values()].join("\n");
    for (const { what, text: name } of hostileNames) expect(all.includes(escapeHidden(name)), what).to.equal(true);
    expect(await tab.page.evaluate(isInert)).to.deep.equal([false, 1]);
  });

  it("show hostile labels of real sessions as text, and no element more for them [S67]", async () => {
    const tab = await openAs("viewer", "#/decisions");
    expect(labels.length).to.be.greaterThan(5);
    for (const label of labels) {
      await call({}, label);
      await tab.untilText(".rows", escapeHidden(label));
    }
    expect(await tab.page.evaluate(isInert)).to.deep.equal([false, 1]);
    expect(await tab.count("svg, script:not([src]), iframe, style")).to.equal(0);
  });

  it("explain one decision as a tree, with its records", async () => {
    const tab = await openAs("admin", "#/decisions");
    await call({ looked_for: 1 }, "explained");
    await tab.page.type("input[type=search]", "explained");
    await tab.until(`document.querySelectorAll(".rows .row").length === 1`);
    await tab.click(".rows a");
    await tab.untilText(".decision .policy[open]", "open.all");
    await tab.untilText(".decision", "Record ");
    await tab.click(".record summary");
    await tab.untilText(".record pre", '"decision": "allow"');
    expect(await tab.text(".record pre")).to.not.include("looked_for");
  });

  it("stop a session with a reason, and release it with one", async () => {
    await call({ stop: "before" }, "to-stop");
    const tab = await openAs("admin", "#/sessions");
    await tab.page.type("input[type=search]", "to-stop");
    await tab.until(`document.querySelectorAll(".rows .row").length === 1`);
    await tab.click(".rows a");
    await tab.untilText(".session .detail-head", "active");
    await tab.click("button.deny");
    await tab.untilText(".reason-form", "Say why");
    await tab.page.type(".reason-form textarea", "odd");
    await tab.click("button.deny");
    await tab.untilText(".session .detail-head", "stopped");
    expect((await call({ stop: "while-stopped" }, "to-stop")).body).to.include("stopped");
    expect(await callsWith("while-stopped")).to.equal(0);
    await tab.page.type(".reason-form textarea", "looked at");
    await tab.click(".reason-form button");
    await tab.untilText(".session .detail-head", "active");
    await call({ stop: "after-release" }, "to-stop");
    expect(await callsWith("after-release")).to.equal(1);
  });

  it("verify the chain and export a session by clicks", async () => {
    await call({}, "exported");
    const tab = await openAs("admin", "#/evidence");
    await tab.click(".card .buttons button");
    await tab.untilText(".verification", "verified");
    await tab.untilText(".grid", "Keys that sign it");
    const folder = await mkdtemp(join(tmpdir(), "console-"));
    try {
      const session = await tab.page.createCDPSession();
      await session.send("Browser.setDownloadBehavior", {
        behavior: "allow",
        downloadPath: folder,
        browserContextId: tab.page.browserContext().id as string,
        eventsEnabled: true,
      });
      const done = new Promise<void>((resolve) => {
        session.on("Browser.downloadProgress", ({ state }) => {
          if (state === "completed") resolve();
        });
      });
      await tab.page.type("input[type=search]", "exported");
      await tab.until(`document.querySelectorAll(".rows .row").length === 1`);
      await tab.click(".row-links a[download]");
      await done;
      const [name = ""] = await readdir(folder);
      expect(name).to.match(/^evidence-session-v1-.*\.jsonl$/);
      expect(JSON.parse((await readFile(join(folder, name), "utf8")).split("\n")[0] ?? "")).to.be.an("object");
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("list rules, who signed them, and the items of OWASP without one", async () => {
    const tab = await openAs("viewer", "#/policies");
    await tab.untilText(".rows", "open.review");
    expect(await tab.text("#page")).to.match(/unsigned[\s\S]*no rule/);
    await tab.go("#/usage");
    await tab.untilText("#page", "0 of 1,000 tokens this day");
  });

  it("leave out for a viewer what a viewer may not use, and say why", async () => {
    const approval = await hold({ please_review: "secret-of-the-held-call" });
    const tab = await openAs("viewer", `#/approvals/${approval}`);
    await tab.untilText(".approval", "Reviewing needs the role operator or admin; you are signed in as viewer.");
    expect(await tab.count("#page button")).to.equal(0);
    const page = String(await tab.page.evaluate("document.documentElement.outerHTML"));
    expect(page).to.not.include("secret-of-the-held-call");
    await tab.go("#/evidence");
    await tab.untilText("#page", "Verifying needs the role");
    expect(await tab.count("#page button")).to.equal(0);
  });

  it("say that a sign-in is too old for changes, and how to go on", async () => {
    const tab = await site.visit("admin");
    const past = new Date(Date.now() - 3_600_000).toISOString();
    const principal = { id: "p", tenant: "acme", role: "admin", name: "adam" };
    const session = { authenticated: true, by: "link", principal, csrf: "t", signed_in_at: past, recent_until: past };
    await tab.intercept((request) => (pathOf(request) === "/console/session" ? session : undefined));
    await tab.open();
    await tab.untilText("#notice", "changes need a more recent sign-in");
    expect(await tab.text("#notice")).to.include("gateway console");
  });

  it("answer their data as JSON: to each key that of its tenant, without a key the notice [R1.2-10]", async () => {
    const ask = async (
      key?: string,
    ): Promise<{ status: number; data: { authentication: object; decisions?: object[] } }> => {
      const { status, body } = await send(site.world.gateway.metricsUrl, {
        target: "/",
        headers: [["accept", "application/json"], ...(key === undefined ? [] : ([["x-api-key", key]] as const))],
      });
      return { status, data: JSON.parse(body) as { authentication: object } };
    };
    await call({}, "as-json");
    const nobody = await ask();
    const [viewer, foreign, wrong] = [await ask(keys.viewer), await ask(keys.foreign), await ask("w".repeat(40))];
    expect(nobody.data).to.have.all.keys("service", "authentication");
    expect(viewer.data.authentication).to.deep.include({ tenant: "acme", role: "viewer" });
    expect(viewer.data.decisions).to.not.deep.equal([]);
    expect(foreign.data.decisions).to.deep.equal([]);
    expect([nobody, viewer, foreign, wrong].map(({ status }) => status)).to.deep.equal([200, 200, 200, 401]);
  });
});

const asJson = (holder: "admin"): Record<string, string> => ({ accept: "application/json", "x-api-key": keys[holder] });

function pathOf(request: HTTPRequest): string {
  return new URL(request.url()).pathname;
}
