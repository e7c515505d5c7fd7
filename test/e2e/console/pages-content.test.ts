import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { repositoryRoot } from "../../check/source-tree.ts";
import { ConsoleSite, type ConsoleTab } from "../../support/console-browser.ts";
import { until } from "../../support/event-stream.ts";
import { send } from "../../support/wire.ts";
import { echoCall, holdCall, keys, messageHeaders, post } from "../wire/world.ts";

describe("what the pages of the console show", () => {
  let site: ConsoleSite;
  let notes: string;
  before(async () => {
    notes = await mkdtemp(join(tmpdir(), "console-witness-"));
    const packs = `{ path: packs/open }, { path: "${join(repositoryRoot, "policy-packs/secrets")}", mode: shadow }`;
    site = await ConsoleSite.open(
      `
approvals: { review_seconds: 45 }
evidence: { witnesses: [{ name: vault, type: file, path: ${notes}, interval_ms: 1000 }] }
usage: { budgets: [{ tenant: acme, tokens_per_day: 1000 }] }
providers: [{ name: mock, type: mock, models: [mock] }]
model_gateway: { routes: [{ model: mock, providers: [{ name: mock }] }] }`,
      {},
      `policy: { packs: [${packs}] }`,
    );
  });
  after(async () => {
    await site?.stop();
    await rm(notes, { recursive: true });
  });
  afterEach(async () => expect(await site.closeTabs()).to.deep.equal([]));

  async function openAs(holder: "admin" | "viewer", hash: string): Promise<ConsoleTab> {
    const tab = await site.visit(holder);
    await tab.open(hash);
    return tab;
  }

  const call = (args: object, label = "content"): Promise<unknown> =>
    post(site.world, echoCall(JSON.stringify(args)), {
      headers: [...messageHeaders(), ["x-gateway-session-id", label]],
    });

  it("Approvals: the time that is left counts down, and at its end nothing is left to approve, here or there", async () => {
    const approval = await holdCall(site.world);
    const tab = await openAs("admin", `#/approvals/${approval}`);
    await tab.until(`document.querySelector("button.approve") !== null`);
    const places = [".rows time", ".detail-head time"];
    const left = await Promise.all(places.map(async (place) => parseInt(await tab.text(place), 10)));
    expect(left.every((seconds) => seconds > 0 && seconds < 45)).to.equal(true);
    const counted = places.map((place, at) => `parseInt(document.querySelector("${place}").innerText) < ${left[at]}`);
    await tab.until(counted.join(" && "));
    await tab.untilText(".detail-head", "expired");
    expect(await tab.count("button.approve, button.deny")).to.equal(0);
    await tab.until(`document.querySelector('.rows a[href="#/approvals/${approval}"]') === null`);
  });

  it("Approvals: a click denies, with its comment, and the list of what is over has it", async () => {
    const approval = await holdCall(site.world);
    const tab = await openAs("admin", `#/approvals/${approval}`);
    await tab.until(`document.querySelector("button.deny") !== null`);
    await tab.page.type("textarea", "not on a Friday");
    await tab.click("button.deny");
    await tab.untilText(".detail-head", "denied");
    await tab.untilText(".approval", "denied at");
    expect(await tab.text(".approval")).to.include('"not on a Friday"');
    // Whoever pressed the button by keyboard goes on from there.
    expect(await tab.page.evaluate(`document.querySelector(".approval").contains(document.activeElement)`)).to.equal(
      true,
    );
    await tab.page.select("select", "over");
    await tab.until(`document.querySelector('.rows a[href="#/approvals/${approval}"]') !== null`);
  });

  it("Decisions: a kind of them, those with a word, and one by its id", async () => {
    await call({}, "filtered");
    await holdCall(site.world);
    const tab = await openAs("viewer", "#/decisions");
    const kinds = `[...new Set([...document.querySelectorAll(".rows .pill")].map((each) => each.innerText))].join()`;
    for (const [value, word] of [
      ["allow", "allowed"],
      ["review", "held"],
    ] as const) {
      await tab.page.select("select", value);
      await tab.until(`${kinds} === "${word}"`);
    }
    await tab.page.select("select", "block");
    await tab.untilText(".status-line", "0 decisions");
    await tab.page.select("select", "");
    await tab.page.type("input[type=search]", "FILTERED");
    await tab.until(`document.querySelectorAll(".rows .row").length === 1`);
    const href = String(await tab.page.evaluate(`document.querySelector(".rows a").hash`));
    await tab.page.evaluate(`document.querySelector("input[type=search]").value = ""`);
    await tab.page.type("input[type=search]", href.replace("#/decisions/", ""));
    await tab.until(`location.hash === ${JSON.stringify(href)}`);
    await tab.untilText(".decision", "filtered");
  });

  it("Sessions: by label, with taints and risk in the timeline, and no stop on any page after its release", async () => {
    await call({}, "b-session");
    await call({}, "a-session");
    const tab = await site.visit("admin");
    const at = new Date(Date.now() + 60_000).toISOString();
    await tab.open("#/sessions");
    await tab.page.select("select", "label");
    await tab.untilText(".rows", "b-session");
    const names = String(await tab.text(".rows"));
    expect(names.indexOf("a-session")).to.be.below(names.indexOf("b-session"));
    await tab.page.type("input[type=search]", "a-session");
    await tab.until(`document.querySelectorAll(".rows .row").length === 1`);
    await tab.click(".rows a");
    await tab.untilText(".session .rows", "echo");
    expect(await tab.text(".session .rows")).to.match(/risk \d+/);
    await tab.until(`document.querySelector(".session .plot").ariaLabel.includes("1 action, at most")`);
    const session = String(await tab.page.evaluate(`location.hash.replace("#/sessions/", "")`));

    // Nothing but its taint is made up: no upstream of this gateway is distrusted.
    const tainted = await site.visit("admin");
    await tainted.rewrite((path, body) =>
      path.endsWith(session) && "taints" in body
        ? { ...body, taints: [{ name: "web", tool: "fetch", target: "net", at, action: "a" }] }
        : body,
    );
    await tainted.open(`#/sessions/${session}`);
    await tainted.untilText(".session .rows .row", "tainted web");
    expect(await tainted.text(".session")).to.include("web by fetch on net");

    await tab.page.type(".reason-form textarea", "odd");
    await tab.page.focus(".reason-form button");
    await tab.page.keyboard.press("Enter");
    await tab.untilText(".session .detail-head", "stopped");
    expect(await tab.page.evaluate(`document.querySelector(".session").contains(document.activeElement)`)).to.equal(
      true,
    );
    await tab.go("#/now");
    await tab.untilText("#page", "stopped: operator");
    await tab.go(`#/sessions/${session}`);
    await tab.untilText(".session .detail-head", "stopped");
    await tab.page.type(".reason-form textarea", "seen to");
    await tab.click(".reason-form button");
    await tab.untilText(".session .detail-head", "active");
    // What is written of the next reason stays, whatever else happens.
    await tab.page.type(".reason-form textarea", "half a rea");
    await call({}, "b-session");
    await holdCall(site.world);
    await tab.untilText("nav", "Approvals");
    expect(await tab.page.evaluate(`document.querySelector(".reason-form textarea").value`)).to.equal("half a rea");
    await tab.go("#/now");
    await tab.until(`!document.querySelector("#page").innerText.includes("stopped: operator")`);
  });

  it("Policies: who signed them, rules that are found by their item of OWASP, and what shadow mode would have done", async () => {
    await call({ on_trial: true });
    const tab = await site.visit("viewer");
    await tab.rewrite((path, body) => {
      if (path !== "/admin/v1/policies") return body;
      const { items } = body as { readonly items: readonly { readonly name: string }[] };
      return { ...body, items: items.map((each) => (each.name === "open" ? { ...each, signer: "alice" } : each)) };
    });
    await tab.open("#/policies");
    await tab.untilText("#page", "signed by alice");
    const text = await tab.text("#page");
    expect(text).to.match(/secrets [\d.]+ shadow mode[\s\S]*unsigned/);
    expect(text).to.match(/open\.trial would have blocked \d/);
    await tab.page.type("input[type=search]", "owasp-llm02-2025");
    await tab.untilText(".status-line", "rules of ");
    expect(await tab.text(".rows .row")).to.include("secrets.");
    expect(await tab.text(".tables")).to.match(/LLM02-2025 Sensitive information disclosure\s+\d+ rules?\s+\d+ rules?/);
  });

  it("Usage: who asked which model for how many tokens, and what is left of the budget", async () => {
    await send(site.world.gateway.url, {
      method: "POST",
      target: "/v1/chat/completions",
      headers: messageHeaders(),
      body: JSON.stringify({ model: "mock", messages: [{ role: "user", content: "count the words of this" }] }),
    });
    const { items } = (await (
      await fetch(`${site.world.gateway.adminUrl}/admin/v1/usage?by=model`, { headers: { "x-api-key": keys.admin } })
    ).json()) as { items: { input_tokens: number; output_tokens: number }[] };
    const [{ input_tokens: input, output_tokens: output } = { input_tokens: 0, output_tokens: 0 }] = items;
    expect(input).to.be.above(0);
    const tab = await openAs("viewer", "#/usage");
    await tab.untilText("table", "mock");
    expect((await tab.text("tbody tr")).split("\t")).to.deep.equal([
      "operator",
      "mock",
      "mock",
      "1",
      `${input}`,
      `${output}`,
    ]);
    await tab.untilText("#page", `${input + output} of 1,000 tokens this day`);
    await tab.until(`document.querySelectorAll(".plot canvas").length === 1`);
  });

  it("Evidence: a checkpoint, what the witness says to it, and a chain that the witness contradicts", async () => {
    await call({});
    const tab = await openAs("admin", "#/evidence");
    await tab.untilText("#page", "Keys that sign it");
    // The checkpoint is written as a signed note.
    expect(await tab.text("#page pre")).to.match(/\n\d+\n[\s\S]*\n— /);
    const verify = async (): Promise<string> => {
      await tab.page.focus(".card .buttons button");
      await tab.page.keyboard.press("Enter");
      await tab.until(`document.querySelector(".card .buttons button:not(:disabled)") !== null`);
      return tab.text(".verification");
    };
    expect(await verify()).to.match(/^verified \d+ records[\s\S]*vault consistent/);
    // The witness may be told of a longer chain meanwhile: then it is made to say so anew.
    const contradicted = async (): Promise<boolean> => {
      for (const name of await readdir(notes)) {
        const file = join(notes, name);
        await writeFile(file, (await readFile(file, "utf8")).replaceAll(/^\d+$/gm, "900000"));
      }
      return /^not sound[\s\S]*vault behind/.test(await verify());
    };
    await until(contradicted);
    expect(await tab.page.evaluate(`document.activeElement.matches(".verification")`)).to.equal(true);
  });
});
