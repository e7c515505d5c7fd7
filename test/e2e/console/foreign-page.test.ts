import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { expect } from "chai";
import { ConsoleSite, type ConsoleTab, originOf } from "../../support/console-browser.ts";
import { until } from "../../support/event-stream.ts";
import { send } from "../../support/wire.ts";
import { holdCall, keys } from "../wire/world.ts";

describe("a page of another origin in the browser of a reviewer", () => {
  let site: ConsoleSite;
  let elsewhere: Server;
  let reviewer: ConsoleTab;

  before(async () => {
    site = await ConsoleSite.open();
    elsewhere = createServer((_, answer) =>
      answer.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>elsewhere</title>"),
    );
    elsewhere.listen(0, "127.0.0.1");
    await once(elsewhere, "listening");
    reviewer = await site.visit("admin");
    await reviewer.open();
  });
  after(async () => {
    await site.closeTabs();
    await site.stop();
    elsewhere.closeAllConnections();
    elsewhere.close();
  });

  /** Of another port of the console's own host, where its cookie goes along, and of another site. */
  for (const [what, host] of [
    ["another port", "localhost"],
    ["another site", "127.0.0.1"],
  ] as const) {
    it(`approves nothing, reads nothing, hears nothing and frames nothing, from ${what} [S85] [S72]`, async () => {
      const approval = await holdCall(site.world);
      const before = (await site.world.upstream.calls()).length;
      const { page } = await site.visitBeside(reviewer);
      await page.goto(originOf(elsewhere).replace("localhost", host));
      const own = reviewer.origin;
      const target = `${own}/admin/v1/approvals/${approval}/approve`;
      const attempts = {
        text: `fetch("${target}", { method: "POST", mode: "no-cors", credentials: "include", body: "{}" })`,
        json: `fetch("${target}", { method: "POST", credentials: "include", body: "{}",
          headers: { "content-type": "application/json", "x-csrf-token": "${"A".repeat(43)}" } })`,
        blob: `fetch("${target}", { method: "POST", mode: "no-cors", credentials: "include",
          body: new Blob(["{}"], { type: "application/json" }) })`,
        session: `fetch("${own}/console/session", { credentials: "include" }).then((answer) => answer.text())`,
        data: `fetch("${own}/", { credentials: "include", headers: { accept: "application/json" } })
          .then((answer) => answer.text())`,
        script: `new Promise((resolve, reject) => document.head.append(Object.assign(document.createElement("script"),
          { src: "${own}/console/session", onload: resolve, onerror: reject })))`,
        socket: `new Promise((resolve, reject) => Object.assign(new WebSocket("${own.replace("http", "ws")}/v1/ws"),
          { onopen: resolve, onerror: reject }))`,
        form: `new Promise((resolve) => {
          const frame = Object.assign(document.createElement("iframe"), { name: "sent", onload: resolve });
          const form = Object.assign(document.createElement("form"),
            { method: "post", action: "${target}", target: "sent", enctype: "text/plain" });
          document.body.append(frame, form);
          form.submit();
        })`,
        frame: `new Promise((resolve) => document.body.append(Object.assign(document.createElement("iframe"),
          { src: "${own}/", onload: resolve })))`,
      };
      const ends: Record<string, unknown> = {};
      for (const [name, attempt] of Object.entries(attempts))
        ends[name] = await page.evaluate(`${attempt}.then(() => "went", () => "refused")`);
      const { text, blob, form, frame, ...read } = ends;
      // Such a request is sent, and its answer is kept from the page: what it did is seen below.
      expect([text, form, frame]).to.deep.equal(["went", "went", "went"]);
      expect(read).to.deep.equal(Object.fromEntries(Object.keys(read).map((name) => [name, "refused"])));
      // The last of them is for the console itself, and shows why it is empty.
      await until(() => page.frames().at(-1)?.url() === "chrome-error://chromewebdata/");
      const { body } = await send(site.world.gateway.adminUrl, {
        target: `/admin/v1/approvals/${approval}`,
        headers: [["x-api-key", keys.admin]],
      });
      expect((JSON.parse(body) as { approval: { state: string } }).approval.state).to.equal("pending");
      expect(await site.world.upstream.calls()).to.have.lengthOf(before);
      expect(await reviewer.page.evaluate(`document.querySelector("#live").innerText`)).to.equal("live");
    });
  }
});
