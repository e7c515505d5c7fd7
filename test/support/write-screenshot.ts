import { mkdir } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { holdCall, messageHeaders, openWorld, post } from "../e2e/wire/world.ts";
import { launchBrowser, openProxy, urlOf } from "./dashboard-browser.ts";

/** Writes the pictures of the dashboard that README shows: a gateway at work, light and dark. */
const folder = fileURLToPath(new URL("../../../core/admin/console/picture/", import.meta.url));

const world = await openWorld();
const proxy = await openProxy(world.gateway.metricsUrl, "operator");
const browser = await launchBrowser();
try {
  await mkdir(folder, { recursive: true });
  const call = (name: string, args: object, label: string): Promise<unknown> =>
    post(world, JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } }), {
      headers: [...messageHeaders(), ["x-gateway-session-id", label]],
    });
  for (let turn = 0; turn < 40; turn++)
    await call("echo", turn % 7 === 3 ? { please_review: turn } : { turn }, `task-${turn % 3}`);
  await holdCall(world);
  for (const scheme of ["light", "dark"]) {
    const page = await browser.newPage();
    await page.setViewport({ width: 1_200, height: 860 });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.goto(urlOf(proxy), { waitUntil: "load" });
    await sleep(2_500);
    await page.screenshot({ path: `${folder}${scheme}.png` });
    await page.close();
  }
} finally {
  await browser.close();
  proxy.closeAllConnections();
  proxy.close();
  await world.stop();
}
