import { expect } from "chai";
import { ConsoleSite, type ConsoleTab } from "../../support/console-browser.ts";
import { send } from "../../support/wire.ts";
import { echoCall, holdCall, keys, messageHeaders, post } from "../wire/world.ts";

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

describe("the console under load, and on its own", () => {
  let site: ConsoleSite;
  before(async () => {
    site = await ConsoleSite.open();
  });
  after(() => site.stop());
  afterEach(async () => expect(await site.closeTabs()).to.deep.equal([]));

  async function openAs(holder: "admin" | "viewer", hash?: string): Promise<ConsoleTab> {
    const tab = await site.visit(holder);
    await tab.open(hash);
    return tab;
  }

  const call = (): Promise<unknown> => post(site.world, echoCall());

  it("carries 10,000 decisions without growing", async function () {
    this.timeout(360_000); // beside four other files on two cores, that many calls alone take minutes
    const tab = await openAs("viewer", "#/decisions");
    const settled = async (): Promise<{ nodes: number; heap: number }> => {
      const session = await tab.page.createCDPSession();
      await session.send("HeapProfiler.collectGarbage");
      await session.detach();
      return { nodes: await tab.count("*"), heap: (await tab.page.metrics()).JSHeapUsedSize ?? 0 };
    };
    const sendCalls = async (count: number): Promise<void> => {
      for (let sent = 0; sent < count; sent += 100) await Promise.all(Array.from({ length: 100 }, call));
    };
    await sendCalls(500);
    await tab.until(`document.querySelectorAll(".rows .row").length > 5`);
    const before = await settled();
    const frames = tab.page.evaluate(frameGap);
    await sendCalls(10_000);
    await tab.page.evaluate(`document.title = "done"`);
    process.stdout.write(`      95 of 100 frames came within ${Math.round(Number(await frames))} ms of the last\n`);
    const after = await settled();
    expect(after.nodes).to.be.within(before.nodes - 50, before.nodes + 50);
    expect(after.heap - before.heap).to.be.below(16 * 1024 * 1024);
  });

  it("lists 1,000 approvals in the nodes of a screenful, and reaches the last by keyboard", async () => {
    const approval = await holdCall(site.world);
    const headers = { "x-api-key": keys.admin };
    const { items } = (await (
      await fetch(`${site.world.gateway.adminUrl}/admin/v1/approvals`, { headers })
    ).json()) as {
      items: { id: string }[];
    };
    const [held] = items.filter(({ id }) => id === approval);
    const all = Array.from({ length: 1_000 }, (_, at) => ({ ...held, id: `apr_${String(at).padStart(32, "0")}` }));
    const tab = await site.visit("admin");
    await tab.intercept((request) => {
      const { pathname, searchParams } = new URL(request.url());
      if (pathname !== "/admin/v1/approvals") return undefined;
      const from = Number(searchParams.get("cursor") ?? 0);
      return { items: all.slice(from, from + 500), next: from + 500 < all.length ? String(from + 500) : null };
    });
    await tab.open("#/approvals");
    await tab.untilText(".status-line", "1,000 approvals waiting");
    expect(await tab.count(".rows .row")).to.be.below(40);
    await tab.page.focus(".window");
    await tab.page.keyboard.press("End");
    await tab.until(`document.activeElement.closest(".row")?.getAttribute("aria-posinset") === "1000"`);
    expect(await tab.count(".rows .row")).to.be.below(40);
  });

  it("keeps the theme that was chosen, and nothing else, in the browser", async () => {
    const tab = await openAs("viewer");
    await tab.click("#theme");
    await tab.click("#theme");
    expect(await tab.page.evaluate("getComputedStyle(document.documentElement).colorScheme")).to.equal("dark");
    await tab.open();
    expect(await tab.page.evaluate("document.documentElement.dataset.theme")).to.equal("dark");
    const kept = await tab.page.evaluate("[Object.keys(localStorage), sessionStorage.length, document.cookie]");
    expect(kept).to.deep.equal([["theme"], 0, ""]);
  });

  it("refuses a change without the token of the session, from elsewhere, or by a viewer; nothing is reviewed", async () => {
    const approval = await holdCall(site.world);
    const path = `/admin/v1/approvals/${approval}/approve`;
    const ask = (tab: ConsoleTab, token: string): Promise<unknown> =>
      tab.page.evaluate(`(async () => {
        const session = await (await fetch("/console/session")).json();
        const headers = { "content-type": "application/json", "x-csrf-token": ${token} };
        return (await fetch("${path}", { method: "POST", headers, body: "{}" })).status;
      })()`);
    const [admin, viewer] = [await openAs("admin"), await openAs("viewer")];
    expect(await ask(admin, `"A".repeat(43)`)).to.equal(403);
    expect(await ask(viewer, "session.csrf")).to.equal(403);
    const elsewhere = await send(site.world.gateway.metricsUrl, {
      method: "POST",
      target: path,
      headers: [...messageHeaders("admin"), ["origin", "https://evil.example"]],
      body: "{}",
    });
    expect(elsewhere.status).to.equal(403);
    const { body } = await send(site.world.gateway.adminUrl, {
      target: `/admin/v1/approvals/${approval}`,
      headers: messageHeaders("admin"),
    });
    expect((JSON.parse(body) as { approval: { state: string } }).approval.state).to.equal("pending");
    // Chromium reports the refusals that it was made to ask for.
    for (const { faults } of [admin, viewer]) {
      expect(faults.filter((each) => !each.includes("403"))).to.deep.equal([]);
      faults.length = 0;
    }
  });

  it("loads nothing from elsewhere, and may be in no frame", async () => {
    const tab = await openAs("viewer");
    const answer = await tab.page.goto(tab.origin);
    expect(answer?.headers()["content-security-policy"]).to.match(/^default-src 'self';.*frame-ancestors 'none'/);
    expect(answer?.headers()["content-security-policy"]).to.include("require-trusted-types-for 'script'");
    expect(answer?.headers()).to.include({
      "x-content-type-options": "nosniff",
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-origin",
    });
    expect(answer?.headers()["permissions-policy"]).to.match(/camera=\(\), .*microphone=\(\)/);
    await tab.until(`document.querySelector(".plot canvas") !== null`);
    const hosts = `performance.getEntriesByType("resource").map(({ name }) => new URL(name).host)`;
    expect(new Set((await tab.page.evaluate(hosts)) as string[])).to.deep.equal(new Set([new URL(tab.origin).host]));
  });
});
