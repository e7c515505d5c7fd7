import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Browser } from "../e2e/console/browser.ts";
import { ConsoleWorld, principalOf } from "../e2e/console/world.ts";
import { LiveClient } from "../e2e/live/live-client.ts";
import { keys } from "../e2e/wire/world.ts";
import { runProgram } from "../support/program.ts";
import { type HeaderList, send } from "../support/wire.ts";
import { checkShipped, type Edits, type ProxyKind, proxyKinds, type RunningProxy, startProxy } from "./proxy.ts";

const password = "correct horse battery staple";
/** Of the password, in few rounds: that of `caddy hash-password` takes a second for each request. */
const cheapHash = "$2b$04$abcdefghijklmnopqrstuu7EJV7kdjBBQxyb0HjTh9KS7.Lah/6CG";
const people = { rita: "operator", vera: "viewer" } as const;

function signedIn(person: string): HeaderList {
  return [["authorization", `Basic ${Buffer.from(`${person}:${password}`).toString("base64")}`]];
}

for (const kind of proxyKinds) {
  describe(`${kind} as we ship it for the console`, () => {
    let world: ConsoleWorld;
    let proxy: RunningProxy;
    let folder: string;
    let edits: Edits;

    before(async () => {
      folder = await mkdtemp(join(tmpdir(), `${kind}-people-`));
      edits = await writePeople(kind, folder);
      world = await ConsoleWorld.start("console: { public_url: 'https://console.example.com' }");
      proxy = await startProxy(kind, world.url, edits, "console");
    });
    after(async () => {
      await proxy?.stop();
      await world?.remove();
      await rm(folder, { recursive: true });
    });

    /** A browser at the public URL, which ends TLS before the proxy that is started here. */
    const browser = (headers: HeaderList): Browser => new Browser(proxy.url, headers, "https://console.example.com");

    it("is read as it ships, TLS and all", async () => {
      const { code, stdout, stderr } = await checkShipped(kind, "console", edits);
      expect(code, stdout + stderr).to.equal(0);
    });

    it("lets nobody in who has not signed in, whatever key they bring", async () => {
      for (const headers of [[], [["x-api-key", keys.operator]], signedIn("mallory")] as readonly HeaderList[]) {
        for (const target of ["/", "/console/session", "/admin/v1/approvals"])
          expect((await browser(headers).ask(target)).status, target).to.equal(401);
      }
    });

    it("adds each person's key in place of any other, and evidence names who approved", async () => {
      const [rita, vera] = [browser([...signedIn("rita"), ["x-api-key", keys.admin]]), browser(signedIn("vera"))];
      const { headers } = await rita.ask("/console/session");
      expect(headers.get("set-cookie")).to.match(
        /^__Host-agw_console=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
      );
      expect((await rita.session()).principal.id).to.equal(principalOf("operator"));
      expect((await vera.session()).principal.role).to.equal("viewer");
      const { id, args } = await world.hold();
      const before = await world.calls();
      const target = `/admin/v1/approvals/${id}/approve`;
      expect(await vera.change(target)).to.equal("403 ROLE_FORBIDDEN");
      expect(await rita.change(target, { origin: "https://evil.example" })).to.equal("403 ORIGIN_FORBIDDEN");
      expect(await rita.change(target, { "x-csrf-token": undefined })).to.equal("403 CSRF_INVALID");
      expect(await world.stateOf(id)).to.equal("pending");
      expect(await rita.change(target)).to.equal("200");
      await world.repeat(args);
      expect(await world.calls()).to.equal(before + 1);
    });

    it("passes the WebSocket of the page on", async () => {
      const headers = Object.fromEntries([
        ...signedIn("rita"),
        ["host", "console.example.com"],
        ["origin", "https://console.example.com"],
      ]);
      const client = await new LiveClient(proxy.url, { headers }).open();
      client.say("subscribe", { channels: ["approvals"] });
      await client.hear(({ type }) => type === "subscribed");
      const { id } = await world.hold();
      expect(JSON.stringify(await client.hear(({ type }) => type === "event"))).to.contain(id);
      client.socket.terminate();
    });

    it("leads to the page and its data, and to no metrics", async () => {
      const rita = browser(signedIn("rita"));
      expect((await rita.ask("/")).status).to.equal(200);
      for (const target of ["/metrics", "/health", "/mcp", "/x/../metrics"])
        expect((await rita.ask(target)).status, target).to.be.oneOf([400, 404]);
      expect((await send(world.url, { target: "/metrics" })).status).to.equal(200);
    });
  });
}

/** Writes who may come, and which key is whose. Returns where the shipped file finds that. */
async function writePeople(kind: ProxyKind, folder: string): Promise<Edits> {
  const [names, map] = [join(folder, "people"), join(folder, "keys")];
  const { stdout } = await runProgram("openssl", ["passwd", "-apr1", password]);
  const lines = Object.keys(people).map((person) =>
    kind === "nginx" ? `${person}:${stdout.trim()}` : `${person} ${Buffer.from(cheapHash).toString("base64")}`,
  );
  const end = kind === "nginx" ? ";" : "";
  const owned = Object.entries(people).map(([person, holder]) => `${person} "${keys[holder]}"${end}`);
  await writeFile(names, `${lines.join("\n")}\n`);
  await writeFile(map, `${owned.join("\n")}\n`);
  return kind === "nginx"
    ? [
        ["/etc/nginx/console-people", names],
        ["/etc/nginx/console-keys.map", map],
      ]
    : [
        ["/etc/caddy/console-people", names],
        ["/etc/caddy/console-keys", map],
      ];
}
