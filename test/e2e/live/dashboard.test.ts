import { readFile } from "node:fs/promises";
import type { Server } from "node:http";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { Browser, Page } from "puppeteer-core";
import { escapeHidden } from "../../../core/action/visible-text.ts";
import { launchBrowser, openProxy, urlOf } from "../../support/dashboard-browser.ts";
import { hostileNames, unseen } from "../../support/hostile-name.ts";
import { hostileArguments } from "../../support/review-world.ts";
import { send } from "../../support/wire.ts";
import { echoCall, holdCall, keys, messageHeaders, openWorld, post, type World } from "../wire/world.ts";

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
/** Those that a session's label may be. */
const labels = hostileNames.filter(({ text: name }) => /^[!-~]+$/.test(name)).map(({ text: name }) => name);

const text = (selector: string): string => `document.querySelector("${selector}").innerText`;

/** Data of the page with each of these wherever it shows a text. */
function everywhere(names: readonly string[]): object {
  const time = new Date().toISOString();
  const decision = { decision: "allow", by_default: false, risk: 1, principal: "p" };
  return {
    decisions: names.map((name) => ({
      time,
      data: { ...decision, tool: name, target: name, label: name, rules: [name], effect: name },
    })),
    approvals: names.map((name) => ({
      id: name,
      tool: name,
      target: name,
      capability: name,
      risk: 1,
      expires_at: time,
    })),
    sessions: [{ session: "s", state: "active", risk: 9, taints: names }],
    shadow_decisions: names.map((rule) => ({ rule, decision: "block", count: 1, last_time: time })),
    upstreams: names.map((name) => ({ name, state: name })),
    providers: names.map((name) => ({ name, breaker: name })),
    extensions: names.map((name) => ({ kind: "pack", name, version: name, signer: name })),
  };
}

/** Of the times between two frames until the page's title is `done`, the 95th percentile. */
const frameGap = `new Promise((resolve) => {
  const gaps = [];
  let last = performance.now();
  const tick = (now) => {
    gaps.push(now - last);
    last = now;
    if (document.title === "done") resolve(gaps.sort((a, b) => a - b)[Math.floor(gaps.length * 0.95)]);
    else requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
})`;

describe("the dashboard in Chromium", () => {
  let world: World;
  let proxy: Server;
  let browser: Browser;
  let page: Page;
  let faults: string[];

  before(async () => {
    world = await openWorld("sessions: { review_flood: { reviews: 0 } }");
    proxy = await openProxy(world.gateway.metricsUrl, "viewer");
    browser = await launchBrowser();
  });
  after(async () => {
    await browser.close();
    proxy.closeAllConnections();
    proxy.close();
    await world.stop();
  });

  beforeEach(async () => {
    faults = [];
    page = await browser.newPage();
    page.on("console", (message) => {
      if (["error", "warn"].includes(message.type())) faults.push(message.text());
    });
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("requestfailed", (failed) => faults.push(`failed: ${failed.url()}`));
  });
  afterEach(() => page.close());

  const authenticated = (): string => urlOf(proxy);

  async function open(url: string = authenticated()): Promise<void> {
    await page.goto(url, { waitUntil: "load" });
    await until(`${text("#health")}.startsWith("ok")`);
  }

  async function openLive(): Promise<void> {
    await open();
    await until(`${text("#live")} === "live"`);
  }

  const textOf = (selector: string): Promise<string> => page.evaluate(text(selector)) as Promise<string>;
  const countOf = (selector: string): Promise<number> =>
    page.evaluate(`document.querySelectorAll("${selector}").length`) as Promise<number>;
  const until = (expression: string): Promise<unknown> => page.waitForFunction(expression);

  it("shows a visitor without a key the notice, asks for none and keeps none [R4.2-14] [R4.2-15] [R1.2-10]", async () => {
    await open(`${world.gateway.metricsUrl}/`);
    expect(await textOf("#notice")).to.match(/need an API key.*neither asks for one nor keeps one/s);
    expect(await countOf("input, textarea, form, [contenteditable]")).to.equal(0);
    expect(await page.evaluate("localStorage.length + sessionStorage.length + document.cookie.length")).to.equal(0);
    expect(await countOf("#decisions tr")).to.equal(0);
    expect(faults).to.deep.equal([]);
  });

  it("fills behind a proxy that adds the key, and shows a decision once it is made", async () => {
    await openLive();
    expect(await textOf("#notice")).to.equal("");
    expect(await textOf("#who")).to.include("viewer");
    await post(world, echoCall(), { headers: [...messageHeaders(), ["x-gateway-session-id", "shown-at-once"]] });
    await until(`${text("#decisions")}.includes("shown-at-once")`);
    const approval = await holdCall(world);
    await until(`${text("#approvals")}.includes("${approval}")`);
    await send(world.gateway.adminUrl, {
      method: "POST",
      target: `/admin/v1/approvals/${approval}/deny`,
      headers: messageHeaders("admin"),
    });
    await until(`${text("#approvals")} === "Nothing waits."`);
    await post(world, echoCall('{"on_trial":true}'));
    await until(`${text("#shadow-decisions")}.includes("would have blocked")`);
    for (const [selector, word] of [
      ["#peers", "recorder"],
      ["#evidence", "takes records"],
      ["#extensions", "unsigned"],
    ]) {
      expect(await textOf(selector as string)).to.include(word);
    }
    expect(faults).to.deep.equal([]);
  });

  it("shows what is hostile in a name as text [S67]", async () => {
    await openLive();
    const elements = `[...new Set([...document.querySelectorAll("*")].map(({ localName }) => localName))].sort().join()`;
    await post(world, echoCall());
    await until(`document.querySelectorAll("#decisions tr").length > 0`);
    const before = await page.evaluate(elements);
    for (const label of labels) {
      await post(world, echoCall(), { headers: [...messageHeaders(), ["x-gateway-session-id", label]] });
      await until(`${text("#decisions")}.includes(${JSON.stringify(label)})`);
    }
    await sleep(200);
    expect(labels.length).to.be.greaterThan(5);
    expect(await page.evaluate(elements)).to.equal(before);
    expect(await page.evaluate(`["hit" in window, document.images.length]`)).to.deep.equal([false, 0]);
    expect(faults).to.deep.equal([]);
  });

  it("shows what is not seen in a text as the command line does [S67] [S51]", async () => {
    // None of this passes the gateway: as if it told what it was told.
    await page.setRequestInterception(true);
    page.on("request", async (request) => {
      if (request.headers().accept !== "application/json") return request.continue();
      const data = (await (await fetch(authenticated(), { headers: { accept: "application/json" } })).json()) as object;
      const body = JSON.stringify({ ...data, ...everywhere(hostileNames.map(({ text: name }) => name)) });
      return request.respond({ status: 200, contentType: "application/json", body });
    });
    await openLive();
    for (const place of ["#decisions", "#approvals", "#sessions", "#peers", "#extensions", "#shadow-decisions"]) {
      const shown = String(await page.evaluate(`document.querySelector("${place}").textContent`));
      expect(shown, place).to.not.match(unseen);
      for (const { what, text: name } of hostileNames)
        expect(shown, `${place}: ${what}`).to.include(escapeHidden(name));
    }
    expect(await page.evaluate(`["hit" in window, document.images.length]`)).to.deep.equal([false, 0]);
    expect(faults).to.deep.equal([]);
  });

  it("shows of what waits nothing that could be cut: no arguments, and nothing to say yes with [S51]", async () => {
    await openLive();
    const args = JSON.stringify({ ...hostileArguments, please_review: "argument-of-the-dashboard" });
    // A session of its own: the page's other tests ask for as many reviews as one may.
    const headers = [...messageHeaders(), ["x-gateway-session-id", "with-arguments"] as const];
    const held = await post(world, echoCall(args), { headers });
    const [, approval] = /Approval (apr_[0-9a-f]{32}) is pending/.exec(held.body) ?? [];
    await until(`${text("#approvals")}.includes("gateway approvals show ${approval}")`);
    const asked = [["x-api-key", keys.viewer] as const, ["accept", "application/json"] as const];
    const { body } = await send(world.gateway.metricsUrl, { target: "/", headers: asked });
    for (const shown of [body, String(await page.evaluate("document.documentElement.outerHTML"))]) {
      expect(shown).to.include(approval).and.not.include("argument-of-the-dashboard").and.not.include("paypal");
      expect(shown).to.not.match(unseen);
    }
    expect(await countOf("button, a[href*=approve], form, input")).to.equal(0);
  });

  it("shows the effect of each action in a word, and none of what it is about", async () => {
    await openLive();
    const evaluate = (command: string): Promise<unknown> =>
      send(world.gateway.url, {
        method: "POST",
        target: "/v1/actions/evaluate",
        headers: [...messageHeaders(), ["x-gateway-session-id", "effects"]],
        body: JSON.stringify({ protocol: "shell", tool: "sh", target: "builder", arguments: { command } }),
      });
    await evaluate("ls /srv/words-of-the-dashboard");
    await evaluate("rm /srv/words-of-the-dashboard");
    await evaluate("curl https://words-of-the-dashboard.example");
    await evaluate("frobnicate");
    const words = `[...document.querySelectorAll("#decisions tr")]
      .filter((row) => row.innerText.includes("effects")).map((row) => row.cells[3].innerText).reverse().join()`;
    await until(`${words} === "reads,deletes,uses the network,cannot be told"`);
    expect(String(await page.evaluate("document.documentElement.outerHTML"))).to.not.include("words-of-the-dashboard");
    expect(faults).to.deep.equal([]);
  });

  it("carries 10,000 decisions without growing", async () => {
    await openLive();
    const nodes = (): Promise<number> => countOf("*");
    const call = (): Promise<unknown> => post(world, echoCall());
    for (let sent = 0; sent < 500; sent += 50) await Promise.all(Array.from({ length: 50 }, call));
    await until(`document.querySelectorAll("#decisions tr").length === 200`);
    const before = { nodes: await nodes(), heap: (await page.metrics()).JSHeapUsedSize ?? 0 };
    const frames = page.evaluate(frameGap);
    for (let sent = 0; sent < 10_000; sent += 100) await Promise.all(Array.from({ length: 100 }, call));
    await page.evaluate(`document.title = "done"`);
    process.stdout.write(`      95 of 100 frames came within ${Math.round(Number(await frames))} ms of the last\n`);
    expect(await nodes()).to.be.within(before.nodes - 50, before.nodes + 50);
    expect(((await page.metrics()).JSHeapUsedSize ?? 0) - before.heap).to.be.below(16 * 1024 * 1024);
    expect(faults).to.deep.equal([]);
  });

  for (const scheme of ["light", "dark"] as const) {
    it(`has no serious fault of accessibility, ${scheme}, on a phone too`, async () => {
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      for (const viewport of [
        { width: 1_280, height: 900 },
        { width: 360, height: 740, isMobile: true },
      ]) {
        await page.setViewport(viewport);
        await holdCall(world);
        await openLive();
        await until(`document.querySelectorAll("#decisions tr").length > 0`);
        // The page takes no script but its own: the check goes in beside it.
        const session = await page.createCDPSession();
        await session.send("Runtime.evaluate", { expression: await readFile(axe, "utf8") });
        const { result } = await session.send("Runtime.evaluate", {
          expression: `axe.run().then(({ violations }) => JSON.stringify(violations
            .filter(({ impact }) => impact === "serious" || impact === "critical")
            .map(({ id, nodes }) => [id, nodes[0].html])))`,
          awaitPromise: true,
        });
        expect(JSON.parse(String(result.value))).to.deep.equal([]);
        const sideways = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
        expect(await page.evaluate(sideways)).to.equal(0);
      }
    });
  }

  it("is all reached by keyboard", async () => {
    await openLive();
    const reached: string[] = [];
    for (let press = 0; press < 3; press++) {
      await page.keyboard.press("Tab");
      reached.push(String(await page.evaluate("document.activeElement.className")));
    }
    expect(reached).to.include.members(["skip", "scroll"]);
  });

  it("answers its data as JSON: to each key that of its tenant, without a key the notice [R1.2-10]", async () => {
    const ask = async (
      key?: string,
    ): Promise<{ status: number; data: { authentication: object; decisions?: object[] } }> => {
      const { status, body } = await send(world.gateway.metricsUrl, {
        target: "/",
        headers: [["accept", "application/json"], ...(key === undefined ? [] : ([["x-api-key", key]] as const))],
      });
      return { status, data: JSON.parse(body) as { authentication: object } };
    };
    await post(world, echoCall());
    const [nobody, viewer, foreign, wrong] = [
      await ask(),
      await ask(keys.viewer),
      await ask(keys.foreign),
      await ask("w".repeat(40)),
    ];
    expect(nobody.data).to.have.all.keys("service", "authentication");
    expect(viewer.data.authentication).to.deep.include({ tenant: "acme", role: "viewer" });
    expect(viewer.data.decisions).to.not.deep.equal([]);
    expect(foreign.data.decisions).to.deep.equal([]);
    expect([nobody, viewer, foreign, wrong].map(({ status }) => status)).to.deep.equal([200, 200, 200, 401]);
  });

  it("loads nothing from elsewhere, and may be in no frame", async () => {
    const answer = await page.goto(authenticated());
    expect(answer?.headers()["content-security-policy"]).to.match(/^default-src 'self';.*frame-ancestors 'none'/);
    expect(answer?.headers()).to.include({
      "x-content-type-options": "nosniff",
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-origin",
    });
    expect(answer?.headers()["permissions-policy"]).to.match(/camera=\(\), .*microphone=\(\)/);
    const hosts = `performance.getEntriesByType("resource").map(({ name }) => new URL(name).host)`;
    expect(new Set((await page.evaluate(hosts)) as string[])).to.deep.equal(new Set([new URL(authenticated()).host]));
    await sleep(100);
    expect(faults).to.deep.equal([]);
  });
});
