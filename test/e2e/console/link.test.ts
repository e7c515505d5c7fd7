import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { runCommand } from "../../support/command-host.ts";
import { until } from "../../support/event-stream.ts";
import { send } from "../../support/wire.ts";
import { program } from "../../unit/cli/run.ts";
import { keys } from "../wire/world.ts";
import type { Browser } from "./browser.ts";
import { ConsoleWorld, keyOf, principalOf } from "./world.ts";

const run = promisify(execFile);

describe("the one-time link to the console", () => {
  let world: ConsoleWorld;

  before(async () => {
    world = await ConsoleWorld.start();
  });
  after(() => world.remove());

  const reads = async (browser: Browser): Promise<boolean> => (await browser.ask("/admin/v1/approvals")).status === 200;

  it("signs its browser in as the holder of the key, which stays where it is", async () => {
    const browser = world.browser();
    const { path, expires_in_s: seconds } = await world.issueLink("operator");
    expect([path.replace(/[\w-]{43}$/, ""), seconds]).to.deep.equal(["/console/link?token=", 60]);
    const opened = await browser.ask(path, { "sec-fetch-site": "none" });
    expect([opened.status, opened.headers.get("location"), opened.body]).to.deep.equal([303, "/", ""]);
    expect(opened.headers.get("set-cookie")).to.match(/^agw_console=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
    expect(opened.headers.get("referrer-policy")).to.equal("no-referrer");
    const session = await browser.session();
    expect(session).to.deep.include({ authenticated: true, by: "link", sign_out: true });
    expect(session.principal.id).to.equal(principalOf("operator"));
    for (const target of ["/", "/console/session", "/admin/v1/approvals"]) {
      const { body } = await browser.ask(target, { accept: "application/json" });
      expect(body).not.to.contain(keys.operator);
    }
  });

  it("approves as that holder, once for one call", async () => {
    const browser = await world.linked("operator");
    const { id, args } = await world.hold();
    const before = await world.calls();
    expect(await browser.change(`/admin/v1/approvals/${id}/approve`)).to.equal("200");
    await world.repeat(args);
    await world.repeat(args);
    expect([await world.calls(), await world.stateOf(id)]).to.deep.equal([before + 1, "consumed"]);
  });

  it("is worth nothing a second time, and nothing that was never issued is [S85]", async () => {
    const { path } = await world.issueLink("operator");
    expect((await world.browser().ask(path)).status).to.equal(303);
    for (const target of [path, "/console/link", "/console/link?token=", `${path.slice(0, -43)}${"A".repeat(43)}`]) {
      const late = world.browser();
      const { status, body } = await late.ask(target);
      expect([status, JSON.parse(body).code, late.cookies.size]).to.deep.equal([401, "LINK_INVALID", 0]);
      expect(await reads(late)).to.equal(false);
    }
    const { path: twice } = await world.issueLink("operator");
    expect((await world.browser().ask(`${twice}&token=other`)).status).to.equal(401);
  });

  it("opens for this machine's own names only, and not from a page of another site [S85]", async () => {
    const { path } = await world.issueLink("operator");
    for (const headers of [
      { host: "evil.example" },
      { host: `agents.example:${new URL(world.url).port}` },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
    ]) {
      const browser = world.browser();
      expect([(await browser.ask(path, headers)).status, browser.cookies.size]).to.deep.equal([403, 0]);
    }
    expect((await world.browser().ask(path, { host: `localhost:${new URL(world.url).port}` })).status).to.equal(303);
  });

  it("is issued to holders of keys only, and to no web page [S85]", async () => {
    const type = ["content-type", "application/json"] as const;
    const ask = async (headers: readonly (readonly [string, string])[]): Promise<number> =>
      (await send(world.url, { method: "POST", target: "/console/links", headers })).status;
    expect(await ask([type])).to.equal(401);
    expect(await ask([type, ["x-api-key", "g".repeat(43)]])).to.equal(401);
    expect(await ask(keyOf("operator"))).to.equal(415);
    expect(await ask([type, ...keyOf("operator"), ["origin", "http://localhost:3000"]])).to.equal(403);
  });

  it("is printed by `gateway console`, for the key of the environment", async () => {
    const env = { GATEWAY_API_KEY: keys.operator };
    const { code, stdout, stderr } = await runCommand(["console", "--url", world.url], env);
    expect([code, stderr]).to.deep.equal([
      0,
      "gateway: open it in a browser of this machine: it works once, within 60 s\n",
    ]);
    const link = new URL(stdout.trim());
    expect(link.origin).to.equal(world.url);
    expect(stdout + stderr).not.to.contain(keys.operator);
    const browser = world.browser();
    expect((await browser.ask(link.pathname + link.search)).status).to.equal(303);
    expect((await browser.session()).principal.id).to.equal(principalOf("operator"));
    const refused = await runCommand(["console", "--url", world.url, "--json"], { GATEWAY_API_KEY: "g".repeat(43) });
    expect([refused.code, JSON.parse(refused.stderr).error.code]).to.deep.equal([1, "KEY_UNKNOWN"]);
  });

  it("is opened in a browser by --open, where there is one", async () => {
    const folder = await mkdtemp(join(tmpdir(), "console-open-"));
    try {
      const opener = join(folder, "xdg-open");
      await writeFile(
        opener,
        `#!/bin/sh\nprintf %s "$1" > "${folder}/part" && mv "${folder}/part" "${folder}/opened"\n`,
      );
      await chmod(opener, 0o755);
      const env = { GATEWAY_API_KEY: keys.operator, PATH: `${folder}:${process.env.PATH}`, DISPLAY: ":0" };
      const args = [program, "console", "--url", world.url, "--open", "--json"];
      const { stdout } = await run(process.execPath, args, { env });
      const { link, opened } = JSON.parse(stdout);
      expect(opened).to.equal(true);
      const file = join(folder, "opened");
      await until(async () => (await readFile(file, "utf8").catch(() => "")) !== "");
      expect(await readFile(file, "utf8")).to.equal(link);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("ends with the key behind it: removed, in another role, or rotated; others stay", async () => {
    const [operator, admin] = [await world.linked("operator"), await world.linked("admin")];
    const file = join(world.world.gateway.folder, "gateway.yaml");
    const config = await readFile(file, "utf8");
    const line = config.split("\n").find((each) => each.includes("id: operator")) ?? "";
    const hash = createHash("sha256").update(randomBytes(32)).digest("hex");
    for (const [changed, role] of [
      ["", "none"],
      [line.replace("role: operator", "role: viewer"), "viewer"],
      [line.replace(/[0-9a-f]{64}/, hash), "none"],
    ] as const) {
      const browser = await world.linked("operator");
      const { path: issued } = await world.issueLink("operator");
      expect(await reads(browser)).to.equal(true);
      const { id } = await world.hold();
      await reload(file, config.replace(line, changed), role);
      expect([await reads(browser), await reads(admin)]).to.deep.equal([false, true]);
      expect(await browser.change(`/admin/v1/approvals/${id}/approve`)).to.equal("401 KEY_MISSING");
      expect((await world.browser().ask(issued)).status).to.equal(401);
      expect(await world.stateOf(id)).to.equal("pending");
      await reload(file, config, "operator");
      expect(await reads(browser)).to.equal(false);
    }
    expect(await reads(operator)).to.equal(false);
  });

  it("and every session end with the gateway", async () => {
    const browser = await world.linked("admin");
    const { path } = await world.issueLink("admin");
    await world.restart();
    const again = world.browser();
    again.cookies.set("agw_console", String(browser.cookies.get("agw_console")));
    expect(await reads(again)).to.equal(false);
    expect((await again.ask(path)).status).to.equal(401);
    expect(await reads(await world.linked("admin"))).to.equal(true);
  });

  /** Writes another configuration and waits until the operator's key has this role in it. */
  async function reload(file: string, config: string, role: string): Promise<void> {
    await writeFile(file, config);
    world.world.gateway.process.kill("SIGHUP");
    await until(async () => ((await world.browser("operator").session()).principal?.role ?? "none") === role);
  }
});
