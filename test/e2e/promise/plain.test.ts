import { randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { startGateway } from "../../support/gateway.ts";
import { send, type WireResponse } from "../../support/wire.ts";
import {
  echoCall,
  effectsOf,
  type KeyHolder,
  keys,
  messageHeaders,
  nothing,
  openWorld,
  post,
  upstreamSecret,
  type World,
} from "../wire/world.ts";

/** The promises of README's "What you can rely on" that need no strict mode, once each. */
describe("a gateway", () => {
  let world: World;
  let reader: EvidenceReader;

  before(async () => {
    world = await openWorld();
    reader = new EvidenceReader(world.gateway.adminUrl, keys.operator);
  });

  after(() => world.stop());

  function order(holder: KeyHolder, path: string, body: object): Promise<WireResponse> {
    const request = { method: "POST", headers: messageHeaders(holder), body: JSON.stringify(body) };
    return send(world.gateway.adminUrl, { target: `/admin/v1/${path}`, ...request });
  }

  it("1 forwards what was judged, and nothing else", async () => {
    expect(await effectsOf(world, () => post(world, echoCall()))).to.deep.equal({ calls: 1, records: 2 });
    const unknown = echoCall().replace('"name":"echo"', '"name":"no_such_tool"');
    expect((await effectsOf(world, () => post(world, unknown))).calls).to.equal(0);
    const unjudged = { jsonrpc: "2.0", id: 1, method: "tools/other", params: {} };
    expect((await effectsOf(world, () => post(world, JSON.stringify(unjudged)))).calls).to.equal(0);
  });

  it("2 refuses who has no key, and a foreign host name", async () => {
    const effects = await effectsOf(world, async () => {
      const headers = messageHeaders();
      expect((await post(world, echoCall(), { headers: headers.slice(1) })).status).to.equal(401);
      const foreign = await post(world, echoCall(), { headers: [...headers, ["host", "evil.example"]] });
      expect(foreign.status).to.be.within(400, 499);
    });
    expect(effects).to.deep.equal(nothing);
  });

  it("3 sends what was judged, written anew, and refuses what two parsers read differently", async () => {
    await post(world, echoCall('{ "a" : "\\u0062" }'));
    expect((await world.upstream.calls()).at(-1)?.body).to.include('"arguments":{"a":"b"}');
    const effects = await effectsOf(world, async () => {
      expect((await post(world, echoCall('{"a":1,"a":2}'))).status).to.equal(400);
    });
    expect(effects).to.deep.equal(nothing);
  });

  it("4 records the decision before the call is dispatched", async () => {
    const mark = randomBytes(8).toString("hex");
    const call = post(world, echoCall(JSON.stringify({ mark, wait_ms: 1_000 })));
    while (!(await world.upstream.calls()).some(({ body }) => body.includes(mark))) await sleep(10);
    const last = (await reader.recordsOf()).filter(({ kind }) => kind === "decision").at(-1);
    expect(last?.effect).to.equal("dispatched");
    expect((await call).status).to.equal(200);
    expect((await reader.verify()).ok).to.equal(true);
  });

  it("5 runs an approved call once, and no other", async () => {
    const call = echoCall(JSON.stringify({ please_review: randomBytes(8).toString("hex") }));
    const ask = async (): Promise<string> => (await post(world, call)).body;
    const [, id = ""] = /Approval (apr_[0-9a-f]{32}) is pending/.exec(await ask()) ?? [];
    expect((await order("admin", `approvals/${id}/approve`, {})).status).to.equal(200);
    const effects = await effectsOf(world, () => Promise.all([ask(), ask(), ask()]));
    expect(effects.calls).to.equal(1);
  });

  it("7 answers another tenant's ids like ids that do not exist", async () => {
    const [session] = await reader.sessions();
    const ask = async (id: string): Promise<readonly [number, string]> => {
      const target = `/admin/v1/evidence/sessions/${id}`;
      const { status, body } = await send(world.gateway.adminUrl, { target, headers: messageHeaders("foreign") });
      return [status, body.replaceAll(id, "ID").replace(/"request_id":"[^"]*"|"instance":"[^"]*"/g, "")];
    };
    const missing = `session-v1-${"0".repeat(64)}`;
    expect(await ask(session?.id ?? "")).to.deep.equal(await ask(missing));
    expect((await ask(missing))[0]).to.be.within(400, 499);
  });

  it("8 keeps keys and arguments out of log and store", async () => {
    const secret = randomBytes(16).toString("hex");
    await post(world, echoCall(JSON.stringify({ secret })));
    const texts = [world.gateway.stdout(), world.gateway.stderr(), await storedText(world.gateway.folder)];
    for (const text of texts) {
      for (const hidden of [secret, keys.operator, upstreamSecret]) expect(text.includes(hidden)).to.equal(false);
    }
  });

  it("9 grants nothing for what an agent sends", async () => {
    for (const [name, value] of [
      ["x-tenant", "other"],
      ["x-role", "admin"],
      ["x-forwarded-user", "admin"],
    ] as const) {
      const { body } = await send(world.gateway.adminUrl, {
        method: "POST",
        target: "/admin/v1/kills",
        headers: [...messageHeaders("viewer"), [name, value]],
        body: JSON.stringify({ scope: "tenant" }),
      });
      expect(JSON.parse(body)).to.have.property("code", "ROLE_FORBIDDEN");
    }
  });

  it("10 refuses what is beyond a bound, and says so", async () => {
    const deep = echoCall(`{"x":${"[".repeat(100)}1${"]".repeat(100)}}`);
    expect(JSON.parse((await post(world, deep)).body).error.data.code).to.equal("JSON_BOUND");
    const long = { method: "POST", target: "/mcp", headers: [...messageHeaders(), ["content-length", "104857600"]] };
    expect((await send(world.gateway.url, long as never)).status).to.equal(413);
  });

  it("12 stops a tenant, cancels what is in flight, and goes on once that is released with a reason", async () => {
    const mark = randomBytes(8).toString("hex");
    const call = post(world, echoCall(JSON.stringify({ mark, wait_ms: 60_000 })));
    while (!(await world.upstream.calls()).some(({ body }) => body.includes(mark))) await sleep(10);
    expect((await order("admin", "kills", { scope: "tenant" })).status).to.equal(200);
    expect((await call).body).to.include("stopped by the kill switch");
    const isBlocked = async (): Promise<boolean> => (await effectsOf(world, () => post(world, echoCall()))).calls === 0;
    expect(await isBlocked()).to.equal(true);
    expect((await order("admin", "kills/release", { scope: "tenant" })).status).to.equal(400);
    expect((await order("admin", "kills/release", { scope: "tenant", reason: "seen to" })).status).to.equal(200);
    expect(await isBlocked()).to.equal(false);
  });

  it("13 records nothing of a call that does not pass through it", async () => {
    const effects = await effectsOf(world, async () => {
      const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
      await fetch(world.upstream.url, { method: "POST", headers, body: echoCall() });
    });
    expect(effects).to.deep.equal({ calls: 1, records: 0 });
  });

  // The last one: it kills the gateway.
  it("6 leaves a call as unknown where it crashes", async () => {
    const mark = randomBytes(8).toString("hex");
    const call = post(world, echoCall(JSON.stringify({ mark, wait_ms: 60_000 }))).catch(() => undefined);
    while (!(await world.upstream.calls()).some(({ body }) => body.includes(mark))) await sleep(10);
    await world.gateway.kill9();
    await call;
    const config = await readFile(join(world.gateway.folder, "gateway.yaml"), "utf8");
    const env = { UPSTREAM_SECRET: upstreamSecret };
    const again = await startGateway({ folder: world.gateway.folder, config, env });
    try {
      const records = await new EvidenceReader(again.adminUrl, keys.operator).recordsOf();
      expect(records.some(({ kind, effect }) => kind === "outcome" && effect === "unknown")).to.equal(true);
    } finally {
      await again.stop();
    }
  });
});

/** The bytes of all files below a folder, but its configuration, which names no key either. */
async function storedText(folder: string): Promise<string> {
  const files = await readdir(folder, { recursive: true, withFileTypes: true });
  const texts = files
    .filter((file) => file.isFile())
    .map((file) => readFile(join(file.parentPath, file.name), "latin1"));
  return (await Promise.all(texts)).join("\n");
}
