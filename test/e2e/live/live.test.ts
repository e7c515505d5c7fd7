import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createConnection } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { WebSocket } from "ws";
import { separateSession } from "../../support/own-task.ts";
import { until } from "../../support/webhook-receiver.ts";
import { send } from "../../support/wire.ts";
import {
  echoCall,
  holdCall,
  type KeyHolder,
  keys,
  messageHeaders,
  openWorld,
  post,
  type World,
} from "../wire/world.ts";
import { LiveClient, type ServerMessage } from "./live-client.ts";

describe("/v1/ws", () => {
  let world: World;
  const clients: LiveClient[] = [];
  before(async () => {
    world = await openWorld("limits: { max_websockets: 40 }");
  });
  after(() => world.stop());
  afterEach(async () => {
    for (const { socket } of clients.splice(0)) socket.terminate();
    await sleep(50);
  });

  function connect(...[options]: ConstructorParameters<typeof LiveClient> extends [string, ...infer O] ? O : never) {
    const client = new LiveClient(world.gateway.url, options);
    clients.push(client);
    return client;
  }

  const open = (holder: KeyHolder): Promise<LiveClient> => connect({ key: keys[holder] }).open();
  const isEvent =
    (channel: string) =>
    ({ type, payload }: ServerMessage): boolean =>
      type === "event" && payload.channel === channel;

  async function watch(holder: KeyHolder, ...channels: readonly string[]): Promise<LiveClient> {
    const client = await open(holder);
    client.say("subscribe", { channels }, "s");
    await client.hear(({ type, id }) => type === "subscribed" && id === "s");
    return client;
  }

  it("tells each decision as it is made, with nothing of its arguments [R1.2-4] [R4.1-12]", async () => {
    const client = await watch("viewer", "decisions");
    const begunMs = Date.now();
    const secret = randomBytes(16).toString("hex");
    await post(world, echoCall(JSON.stringify({ secret })));
    const { payload } = await client.hear(isEvent("decisions"));
    expect(payload.data).to.include({ decision: "allow", tool: "echo", target: "recorder", dispatched: true });
    expect(JSON.stringify(client.heard)).to.not.include(secret);
    expect(Date.parse(String(payload.time))).to.be.within(begunMs, Date.now());
  });

  it("tells what waits for a reviewer, and what became of it", async () => {
    const client = await watch("viewer", "approvals");
    const approval = await holdCall(world);
    const first = await client.hear(isEvent("approvals"));
    expect(first.payload.data).to.include({ id: approval, state: "pending" });
    await send(world.gateway.adminUrl, {
      method: "POST",
      target: `/admin/v1/approvals/${approval}/deny`,
      headers: messageHeaders("admin"),
    });
    await client.hear(({ payload: { data } }) => (data as { state?: string } | undefined)?.state === "denied");
  });

  it("tells which session is stopped, and why, and that it is released", async () => {
    const client = await watch("viewer", "risk");
    const label: [string, string] = ["x-gateway-session-id", "stopped-here"];
    await separateSession(world.gateway.adminUrl, keys.operator, "operator", "stopped-here");
    await post(world, echoCall(), { headers: [...messageHeaders(), label] });
    const sessions = await send(world.gateway.adminUrl, {
      target: "/admin/v1/evidence/sessions",
      headers: messageHeaders("admin"),
    });
    const { items } = JSON.parse(sessions.body) as { items: { id: string; label?: string }[] };
    const session = items.find((each) => each.label === "stopped-here")?.id;
    await send(world.gateway.adminUrl, {
      method: "POST",
      target: `/admin/v1/sessions/${session}/kill`,
      headers: messageHeaders("admin"),
    });
    const stopped = await client.hear(isEvent("risk"));
    expect(stopped.payload.data).to.deep.equal({ session, killed: "operator" });
    await send(world.gateway.adminUrl, {
      method: "POST",
      target: `/admin/v1/sessions/${session}/release`,
      headers: messageHeaders("admin"),
      body: JSON.stringify({ reason: "seen to" }),
    });
    const released = await client.hear(
      ({ payload: { data } }) => (data as { killed?: unknown } | undefined)?.killed === null,
    );
    expect(released.payload.data).to.deep.equal({ session, killed: null });
  });

  it("tells once a second how a tenant stands", async () => {
    const client = await watch("viewer", "metrics");
    const { payload } = await client.hear(isEvent("metrics"));
    expect(payload.data).to.have.all.keys("allow", "review", "block", "total", "policy_p50_us", "policy_p99_us");
  });

  it("tells nobody of another tenant anything", async () => {
    const [own, foreign] = [
      await watch("viewer", "decisions"),
      await watch("foreign", "decisions", "approvals", "risk"),
    ];
    await post(world, echoCall());
    await holdCall(world);
    await own.hear(isEvent("decisions"));
    await post(world, echoCall(), { headers: messageHeaders("foreign") });
    const { payload } = await foreign.hear(isEvent("decisions"));
    expect(foreign.heard.filter(({ type }) => type === "event")).to.have.lengthOf(1);
    expect((payload.data as { principal: string }).principal).to.equal("foreign");
  });

  it("evaluates an action and carries nothing out", async () => {
    const before = (await world.upstream.calls()).length;
    const client = await open("viewer");
    client.say("evaluate", { action: { tool: "echo", target: "echo", arguments: { please_review: 1 } } }, "e1");
    const { payload } = await client.hear(({ id }) => id === "e1");
    expect(payload).to.deep.include({ decision: "review" });
    expect(payload.rules).to.deep.equal([{ rule: "open.review", message: "asked for review", severity: "low" }]);
    client.say("evaluate", { action: { tool: "echo" } }, "e2");
    const wrong = await client.hear(({ id }) => id === "e2");
    expect(wrong).to.deep.include({ type: "error" });
    expect(wrong.payload.code).to.equal("INVALID_PARAMS");
    expect(await world.upstream.calls()).to.have.lengthOf(before);
  });

  it("takes the key in the first message, and stops telling after `unsubscribe`", async () => {
    const client = await connect().open();
    client.say("subscribe", { channels: ["decisions"] }, "early");
    expect((await client.hear(({ id }) => id === "early")).payload.code).to.equal("KEY_MISSING");
    client.say("auth", { key: keys.operator }, "a");
    expect((await client.hear(({ id }) => id === "a")).type).to.equal("auth_ok");
    client.say("subscribe", { channels: ["decisions"] }, "s");
    client.say("unsubscribe", { channels: ["decisions"] }, "u");
    await client.hear(({ id }) => id === "u");
    await post(world, echoCall());
    client.say("ping", {}, "p");
    expect((await client.hear(({ id }) => id === "p")).type).to.equal("pong");
    expect(client.heard.some(isEvent("decisions"))).to.equal(false);
  });

  it("ends a connection whose key is wrong, or does not come within 10 s [S72]", async () => {
    expect(await connect({ key: "x".repeat(40) }).refusal()).to.equal(401);
    const wrong = await connect().open();
    wrong.say("auth", { key: "y".repeat(40) });
    expect((await wrong.closed())[0]).to.equal(4401);
    const silent = await connect().open();
    expect((await silent.closed())[0]).to.equal(4401);
  });

  it("is refused to a foreign web page, and under a foreign name [S9] [S72]", async () => {
    expect(await connect({ headers: { origin: "https://evil.example" } }).refusal()).to.equal(403);
    expect(await connect({ headers: { host: "evil.example" } }).refusal()).to.equal(403);
    const local = await connect({ key: keys.viewer, headers: { origin: "http://localhost:3000" } }).open();
    await local.hear(({ type }) => type === "auth_ok");
  });

  const nonsense: readonly (readonly [string, string, string])[] = [
    ["no JSON", "hello", "MALFORMED_JSON"],
    ["a member twice", '{"type":"ping","type":"ping"}', "MALFORMED_JSON"],
    ["an unknown type", '{"type":"shout"}', "INVALID_REQUEST"],
    ["an unknown member", '{"type":"ping","extra":1}', "INVALID_REQUEST"],
    ["an unknown channel", '{"type":"subscribe","payload":{"channels":["all"]}}', "INVALID_REQUEST"],
    ["no channel", '{"type":"subscribe","payload":{"channels":[]}}', "INVALID_REQUEST"],
    ["an id that is a number", '{"type":"ping","id":1}', "INVALID_REQUEST"],
    ["another key", '{"type":"auth","payload":{"key":"k"}}', "INVALID_REQUEST"],
  ];
  for (const [what, text, code] of nonsense) {
    it(`answers ${what} with an error, and goes on`, async () => {
      const client = await open("viewer");
      await client.hear(({ type }) => type === "auth_ok");
      client.socket.send(text);
      expect((await client.hear(({ type }) => type === "error")).payload.code).to.equal(code);
      client.say("ping", {}, "p");
      await client.hear(({ id }) => id === "p");
    });
  }

  it("closes for a frame of 1 MB, and for a binary one [S72]", async () => {
    const large = await open("viewer");
    large.socket.send(`{"type":"ping","id":"${"x".repeat(1_000_000)}"}`);
    expect((await large.closed())[0]).to.equal(1009);
    const binary = await open("viewer");
    binary.socket.send(Buffer.from('{"type":"ping"}'), { binary: true });
    expect((await binary.closed())[0]).to.equal(1003);
  });

  it("lets a slow reader go, and others go on hearing [S72]", async () => {
    const [slow, quick] = [await watch("viewer", "decisions"), await watch("viewer", "decisions")];
    const gone = slow.closed();
    slow.socket.pause();
    // Some 15 MB of answers, which nobody takes.
    for (let count = 0; count < 80_000; count++) slow.say("ping", {}, "p".repeat(128));
    await post(world, echoCall());
    await quick.hear(isEvent("decisions"));
    await sleep(3_000);
    slow.socket.resume();
    expect((await gone)[0]).to.be.oneOf([1013, 1006]);
    expect(slow.heard.filter(({ type }) => type === "pong").length).to.be.below(80_000);
    quick.say("ping", {}, "still");
    await quick.hear(({ id }) => id === "still");
  });

  it("refuses one connection more than `limits.max_websockets`, and has room again when one ends [S72]", async () => {
    const opened = await Promise.all(Array.from({ length: 40 }, () => open("viewer")));
    expect(await connect({ key: keys.viewer }).refusal()).to.equal(503);
    opened[0]?.socket.close();
    await sleep(100);
    await open("viewer");
  });

  it("says goodbye when the gateway stops, which waits for nobody who only watches", async () => {
    const other = await openWorld();
    const client = await new LiveClient(other.gateway.url, { key: keys.viewer }).open();
    const closed = client.closed();
    await other.stop();
    expect(await closed).to.deep.equal([1001, "the gateway is stopping"]);
  });

  it("answers another path, another method and a plain request by what they are", async () => {
    const elsewhere = new WebSocket(`${world.gateway.url.replace("http", "ws")}/v1/other`);
    elsewhere.on("error", () => undefined);
    const [, response] = await new Promise<[unknown, { statusCode: number }]>((resolve) =>
      elsewhere.once("unexpected-response", (...args) => resolve(args as unknown as [unknown, { statusCode: number }])),
    );
    expect(response.statusCode).to.equal(404);
    const plain = await send(world.gateway.url, { target: "/v1/ws" });
    expect(plain.status).to.equal(426);
  });

  it("serves what offers HTTP/2 beside its request as if it had not [S21]", async () => {
    const body = echoCall();
    const { port } = new URL(world.gateway.url);
    const socket = createConnection({ port: Number(port), host: "127.0.0.1" });
    socket.write(
      `POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n` +
        `HTTP2-Settings: AAMAAABkAAQAAP__\r\nX-API-Key: ${keys.operator}\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${body.length}\r\n\r\n${body.slice(0, 10)}`,
    );
    await sleep(50);
    socket.write(body.slice(10));
    const answer = await new Promise<string>((resolve) => {
      let text = "";
      socket.on("data", (chunk) => {
        text += String(chunk);
        if (text.includes('"result"')) resolve(text);
      });
      socket.on("close", () => resolve(text));
    });
    expect(answer).to.match(/^HTTP\/1\.1 200 OK\r\n/);
    // The connection goes on.
    socket.removeAllListeners("data");
    const next = new Promise<string>((resolve) => socket.once("data", (chunk) => resolve(String(chunk))));
    socket.write("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    expect(await next).to.match(/^HTTP\/1\.1 200 OK\r\n/);
    socket.destroy();
  });

  it("closes a connection that offers HTTP/2 with one request after another [S21]", async () => {
    const { port } = new URL(world.gateway.url);
    const socket = createConnection({ port: Number(port), host: "127.0.0.1" });
    let text = "";
    socket.on("data", (chunk) => {
      text += String(chunk);
    });
    const offer = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
    const answers = (): number => text.split("HTTP/1.1 200 OK").length - 1;
    socket.write(offer);
    await until(() => answers() === 1, "the first answer");
    expect(text).to.not.match(/connection: close/i);
    const closed = once(socket, "close");
    socket.write(offer);
    await closed;
    expect(answers()).to.equal(2);
    expect(text).to.match(/connection: close/i);
  });
});
