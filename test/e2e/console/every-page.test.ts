import { expect } from "chai";
import { ConsoleSite, type ConsoleTab } from "../../support/console-browser.ts";
import { hostileNames, unseen } from "../../support/hostile-name.ts";
import { send } from "../../support/wire.ts";
import { echoCall, type KeyHolder, messageHeaders, post } from "../wire/world.ts";

/** Members whose values the gateway chooses from a list of its own, or makes itself: a name, a time, a digest, a number as text. */
const own = new Set(
  [
    "state status decision verdict kind effect mode by role unit scope transport protocol phase format severity standing source",
    "values outcome breaker withheld capability id session action_id evaluation since subject next csrf hash digest key_id",
    "tenant reason killed day from to",
  ].flatMap((names) => names.split(" ")),
);
const isTime = (text: string): boolean => /^\d{4}-\d\d-\d\dT/.test(text);

/** All of them in one text, but for half a character, which no JSON of the gateway holds. */
const hostile = hostileNames.map(({ text }) => text).join(" ");

/** Puts what is hostile behind every text of an answer that is not the gateway's own, with the name of the member that holds it. */
function poisoned(value: unknown, name = "item"): unknown {
  if (typeof value === "string") return own.has(name) || isTime(value) ? value : `${value} [in:${name}] ${hostile}`;
  if (Array.isArray(value)) return value.map((each) => poisoned(each, name));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, poisoned(each, key)]));
}

describe("every page of the console", () => {
  let site: ConsoleSite;
  /** The pages, with approvals, a decision and a session on them, each with a text that is there once it has read its data. */
  let places: readonly (readonly [place: string, text: string])[];

  before(async () => {
    site = await ConsoleSite.open(`
usage: { budgets: [{ tenant: acme, tokens_per_day: 1000 }] }
providers: [{ name: mock, type: mock, models: [mock] }]
model_gateway: { routes: [{ model: mock, providers: [{ name: mock }] }] }`);
    const call = async (args: object): Promise<string> => {
      const headers = [...messageHeaders(), ["x-gateway-session-id", "night-shift"]] as const;
      return (await post(site.world, echoCall(JSON.stringify(args)), { headers })).body;
    };
    const approvalIn = (text: string): string => /Approval (apr_[0-9a-f]{32})/.exec(text)?.[1] ?? text;
    await ask("POST", site.world.gateway.url, "/v1/chat/completions", "operator", {
      model: "mock",
      messages: [{ role: "user", content: "count these" }],
    });
    const first = { please_review: "publish", channel: "team" };
    const approved = approvalIn(await call(first));
    await change(`/admin/v1/approvals/${approved}/approve`, { comment: "as agreed" });
    await call(first);
    const denied = approvalIn(await call({ please_review: "no" }));
    await change(`/admin/v1/approvals/${denied}/deny`, { comment: "not this" });
    await call({ on_trial: true });
    const held = approvalIn(await call({ ...first, channel: "everyone", lines: [1, 2] }));
    const { items } = JSON.parse(
      await ask("GET", site.world.gateway.adminUrl, "/admin/v1/evidence/sessions", "admin"),
    ) as {
      items: { id: string; label?: string }[];
    };
    const session = items.find(({ label }) => label === "night-shift")?.id;
    const { decisions } = JSON.parse(await ask("GET", site.world.gateway.metricsUrl, "/", "admin")) as {
      decisions: { data: { id: string } }[];
    };
    await change(`/admin/v1/sessions/${session}/kill`, { note: "looked odd" });
    places = [
      ["now", "takes records"],
      ["approvals", "echo"],
      ["decisions", "echo"],
      ["sessions", "looked odd"],
      ["policies", "of them in shadow mode"],
      ["evidence", "Keys that sign it"],
      ["usage", "From 2"],
      [`approvals/${held}`, "End of the arguments"],
      [`approvals/${denied}`, "denied at"],
      [`decisions/${decisions[0]?.data.id}`, "Record "],
      [`sessions/${session}`, "Timeline"],
    ];
  });
  after(() => site.stop());
  afterEach(async () => expect(await site.closeTabs()).to.deep.equal([]));

  async function ask(method: string, url: string, target: string, holder: KeyHolder, body?: object): Promise<string> {
    const headers = [...messageHeaders(holder), ["accept", "application/json"]] as const;
    const text = body === undefined ? {} : { body: JSON.stringify(body) };
    const { status, body: answer } = await send(url, { method, target, headers, ...text });
    if (status >= 300) throw new Error(`expected an answer of ${target}, got ${status}: ${answer}`);
    return answer;
  }

  const change = (target: string, body: object): Promise<string> =>
    ask("POST", site.world.gateway.adminUrl, target, "admin", body);

  /** Goes to a page, and waits until it shows its data. */
  async function goTo(tab: ConsoleTab, place: string, text: string): Promise<void> {
    await tab.go(`#/${place}`);
    await tab.untilText("#page", text);
  }

  it("shows whatever is hostile in any member of any answer as text that is seen, and no element more for it [S67] [S85]", async () => {
    const tab = await site.visit("admin");
    await tab.rewrite((_, body) => poisoned(body) as object);
    await tab.open();
    const shown = new Set<string>();
    for (const [place, text] of places) {
      await goTo(tab, place, text);
      if (place === "evidence") {
        await tab.click(".card .buttons button");
        await tab.untilText(".verification", "verified");
      }
      if (place.startsWith("decisions/"))
        await tab.page.evaluate(`for (const each of document.querySelectorAll("details")) each.open = true`);
      const html = String(await tab.page.evaluate("document.documentElement.outerHTML"));
      const whole = String(await tab.page.evaluate("document.documentElement.textContent"));
      const at = html.search(unseen);
      expect(html.slice(Math.max(0, at - 60), at + 1), place).to.equal(at === -1 ? "" : "nothing that is not seen");
      for (const [, name = ""] of whole.matchAll(/\[in:(\w+)\]/g)) shown.add(name);
      const alien = `document.querySelectorAll("img:not([src^='/assets/']), svg, iframe, script:not([src]), style").length`;
      expect(await tab.page.evaluate(`[${alien}, "hit" in window]`), place).to.deep.equal([0, false]);
    }
    expect([...shown]).to.include.members([
      ...[
        "tool",
        "target",
        "principal",
        "label",
        "rules",
        "rule",
        "title",
        "message",
        "name",
        "version",
        "comment",
        "note",
      ],
      ...["why", "file", "text", "provider", "model", "address", "before", "after"],
    ]);
  });

  for (const scheme of ["light", "dark"] as const) {
    for (const viewport of [
      { width: 1_280, height: 900 },
      { width: 360, height: 740, isMobile: true, hasTouch: true },
    ]) {
      it(`has no serious fault of accessibility, and nothing beyond its edge: ${scheme}, ${viewport.width} wide`, async () => {
        const tab = await site.visit("admin");
        await tab.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
        await tab.page.setViewport(viewport);
        await tab.open();
        for (const [place, text] of places) {
          await goTo(tab, place, text);
          await checkLook(tab, place);
        }
        const visitor = await site.visit(null);
        await visitor.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
        await visitor.page.setViewport(viewport);
        await visitor.open();
        await checkLook(visitor, "the ways in");
      });
    }
  }

  async function checkLook(tab: ConsoleTab, place: string): Promise<void> {
    expect(await tab.seriousFaults(), place).to.deep.equal([]);
    const sideways = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    expect(await tab.page.evaluate(sideways), place).to.equal(0);
    const broken = `[...document.querySelectorAll("nav a")].filter((each) => each.offsetHeight > 50).length`;
    expect(await tab.page.evaluate(broken), place).to.equal(0);
  }

  it("lets everything on it be reached by Tab, and shows where the focus is", async () => {
    const tab = await site.visit("admin");
    await tab.open();
    await tab.page.evaluate(`document.addEventListener("focusin", ({ target }) => {
      reached.add(target);
      const { outlineStyle, outlineWidth } = getComputedStyle(target);
      if (outlineStyle === "none" || outlineWidth === "0px") unmarked.push(target.outerHTML.slice(0, 80));
    })`);
    for (const [place, text] of places) {
      await goTo(tab, place, text);
      // Nothing has the focus: the first Tab leads to the first control of the page.
      await tab.page.evaluate(`{
        document.activeElement.blur();
        window.reached = new Set();
        window.unmarked = [];
      }`);
      const controls = `[...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
        .filter((each) => each.checkVisibility() && !each.disabled)`;
      const total = Number(await tab.page.evaluate(`(${controls}).length`));
      expect(total, place).to.be.above(9);
      for (let press = 0; press < total + 10; press++) await tab.page.keyboard.press("Tab");
      const missed = `(${controls}).filter((each) => !reached.has(each)).map((each) => each.outerHTML.slice(0, 120))`;
      expect(await tab.page.evaluate(missed), place).to.deep.equal([]);
      expect(await tab.page.evaluate("unmarked"), place).to.deep.equal([]);
    }
  });

  it("keeps the focus on a link while what it stands in is written anew", async () => {
    const tab = await site.visit("viewer");
    await tab.open();
    await tab.untilText("#page", "takes records");
    for (const card of ["Waiting for a reviewer", "Latest decisions", "Evidence"]) {
      const link = `[...document.querySelectorAll("h2")].find((each) => each.textContent === ${JSON.stringify(card)})
        .parentElement.querySelector("li a, a")`;
      await tab.page.evaluate(`window.link = ${link}; link.focus(); window.chosen = link.href`);
      const seen = Number(await tab.page.evaluate(`Number(document.querySelector("#allow").textContent)`));
      await post(site.world, echoCall(), { headers: messageHeaders("viewer") }); // whose sessions are not stopped
      await tab.until(`Number(document.querySelector("#allow").textContent) > ${seen}`);
      const left = String(await tab.page.evaluate(`document.querySelector("time.countdown").textContent`));
      await tab.until(`document.querySelector("time.countdown").textContent !== ${JSON.stringify(left)}`);
      const state = await tab.page.evaluate(
        "[document.activeElement === link, link.isConnected, link.href === chosen]",
      );
      expect(state, card).to.deep.equal([true, true, true]);
    }
  });

  it("reports what its content security policy refuses, so that none of these tests could miss it", async () => {
    const tab = await site.visit("viewer");
    await tab.open();
    await tab.page.evaluate(
      `document.body.append(Object.assign(document.createElement("style"), { textContent: "p{}" }))`,
    );
    await tab.page.evaluate(`{
      const image = document.createElement("img");
      image.src = "https://elsewhere.example/a.png";
      document.body.append(image);
    }`);
    await tab.page.evaluate(`try { document.body.innerHTML = "<b>"; } catch {}`);
    await tab.until("true");
    expect(tab.faults.splice(0).join("\n"))
      .to.match(/style/)
      .and.match(/elsewhere/)
      .and.match(/TrustedHTML/);
  });
});
