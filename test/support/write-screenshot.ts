import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { echoCall, messageHeaders, post } from "../e2e/wire/world.ts";
import { ConsoleSite } from "./console-browser.ts";
import { send } from "./wire.ts";

/** Writes a picture of each page of the console, light and dark, of a gateway at work. */
const folder = fileURLToPath(new URL("../../../core/admin/console/picture/", import.meta.url));

const site = await ConsoleSite.open(`
usage: { budgets: [{ tenant: acme, tokens_per_day: 4000 }] }
providers: [{ name: mock, type: mock, models: [mock] }]
model_gateway: { routes: [{ model: mock, providers: [{ name: mock }] }] }`);
try {
  await mkdir(folder, { recursive: true });
  const { world } = site;
  const call = async (args: object, label: string): Promise<string> => {
    const headers = [...messageHeaders(), ["x-gateway-session-id", label]] as const;
    return (await post(world, echoCall(JSON.stringify(args)), { headers })).body;
  };
  const ask = (content: string): Promise<unknown> =>
    send(world.gateway.url, {
      method: "POST",
      target: "/v1/chat/completions",
      headers: messageHeaders(),
      body: JSON.stringify({ model: "mock", messages: [{ role: "user", content }] }),
    });
  for (let turn = 0; turn < 12; turn++) await ask("Summarize the release notes of the last month for the team.");
  const approved = { please_review: "publish", channel: "team-notes", lines: 12 };
  const [, approval] = /Approval (apr_[0-9a-f]{32})/.exec(await call(approved, "release-notes")) ?? [];
  await send(world.gateway.adminUrl, {
    method: "POST",
    target: `/admin/v1/approvals/${approval}/approve`,
    headers: messageHeaders("admin"),
    body: "{}",
  });
  await call(approved, "release-notes");
  for (let turn = 0; turn < 3; turn++) {
    await call({ please_review: "publish", channel: "everyone", lines: 40 + turn }, `night-shift-${turn}`);
  }
  const [, held] =
    /Approval (apr_[0-9a-f]{32})/.exec(
      await call({ ...approved, channel: "everyone", attachments: ["notes.md"] }, "release-notes"),
    ) ?? [];
  await call({ on_trial: true }, "night-shift-1");

  // The charts get half a minute of traffic, in waves.
  const tab = await site.visit("admin");
  await tab.page.setViewport({ width: 1_120, height: 760 });
  await tab.open();
  for (let second = 0; second < 30; second++) {
    const wave = Math.round(6 + 5 * Math.sin(second / 4));
    for (let turn = 0; turn < wave; turn++) await call({ turn }, `night-shift-${turn % 3}`);
    const seen = (await tab.page.evaluate("performance.now()")) as number;
    await tab.until(`performance.now() > ${seen + 900}`);
  }
  const pages = ["now", `approvals/${held}`, "decisions", "sessions", "policies", "evidence", "usage"];
  for (const scheme of ["light", "dark"]) {
    await tab.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    for (const page of pages) {
      const [name = ""] = page.split("/");
      await tab.go(`#/${page}`);
      await tab.until(
        page.includes("/")
          ? `document.querySelector("button.approve") !== null`
          : `document.querySelector("#page .card, #page .row") !== null`,
      );
      if (name === "decisions" || name === "sessions") await tab.click(".rows a");
      if (name === "evidence") await tab.click(".card .buttons button");
      await tab.page.waitForNetworkIdle({ idleTime: 500 });
      await tab.page.screenshot({ path: `${folder}${name}-${scheme}.png` });
    }
  }
} finally {
  await site.stop();
}
