import { once } from "node:events";
import { expect } from "chai";
import { WebSocket } from "ws";
import { until } from "../../support/event-stream.ts";
import { processorMs } from "../../support/resident.ts";
import { type Holder, ShareWorld } from "../../support/share-world.ts";
import { send } from "../../support/wire.ts";
import { LiveClient } from "../live/live-client.ts";

const calls = 20;

/** What an attack does with one key; the number of its requests. */
type Attack = () => Promise<number>;

describe("one viewer key at its worst [S77]", function () {
  this.timeout(300_000);
  let world: ShareWorld;
  const sockets: WebSocket[] = [];
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.terminate();
    await world?.stop();
  });

  /** Runs an attack while others call, and expects them all to be served; returns the gateway's time for each request. */
  async function starve(attack: Attack, maxRequestMs: number): Promise<void> {
    const idleMs = await cost(() => serveOthers("before"));
    let requests = 0;
    const busyMs = await cost(async () => {
      [requests] = await Promise.all([attack(), serveOthers("during")]);
    });
    expect((busyMs - idleMs) / requests).to.be.below(maxRequestMs);
    await serveOthers("after");
    const operator = new LiveClient(world.gateway.url, { key: world.key("operator") });
    sockets.push(operator.socket);
    await (await operator.open()).hear(({ type }) => type === "auth_ok");
  }

  async function serveOthers(mark: string): Promise<void> {
    for (const holder of ["neighbour", "operator"] as const) {
      const { session, error } = await world.initialize(holder);
      expect(error).to.equal(undefined);
      for (let at = 0; at < calls; at++) {
        const called = await world.call(holder, { mark: `${mark}-${holder}-${at}-` }, session);
        expect(called.result?.isError, JSON.stringify(called)).to.equal(undefined);
        expect(called.error).to.equal(undefined);
      }
      const log = await world.upstream.calls();
      expect(log.filter(({ body }) => body.includes(`"${mark}-${holder}-`))).to.have.lengthOf(calls);
    }
    expect((await send(world.gateway.url, { target: "/health" })).status).to.equal(200);
    expect((await world.admin("operator", "GET", "/admin/v1/approvals")).status).to.equal(200);
  }

  async function cost(work: () => Promise<void>): Promise<number> {
    const before = await processorMs(world.gateway);
    await work();
    return (await processorMs(world.gateway)) - before;
  }

  /** Runs `ask` that often, some at once. */
  async function pour(count: number, ask: (index: number) => Promise<unknown>): Promise<number> {
    let next = 0;
    const lane = async (): Promise<void> => {
      while (next < count) await ask(next++);
    };
    await Promise.all(Array.from({ length: 16 }, lane));
    return count;
  }

  async function openSocket(holder?: Holder): Promise<WebSocket | undefined> {
    const headers = holder === undefined ? {} : { "x-api-key": world.key(holder) };
    const socket = new WebSocket(`${world.gateway.url.replace("http", "ws")}/v1/ws`, { headers });
    sockets.push(socket);
    const isOpen = await once(socket, "open").then(
      () => true,
      () => false,
    );
    socket.on("error", () => undefined);
    return isOpen ? socket : undefined;
  }

  for (const [what, beyond, told] of [
    ["wide", Array.from({ length: 49_000 }, () => "{}").join(), "expected at most 10000 members and items"],
    ["deep", "[".repeat(50_000) + "]".repeat(50_000), "expected at most 64 levels"],
  ] as const) {
    it(`by ${what} bodies, each of which is told the bound`, async () => {
      world = await ShareWorld.start({ connection: "session" });
      const params = { name: "echo", arguments: { mark: "none" } };
      const call = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
      const body = call.replace('"none"', `[${beyond}]`);
      const said = new Set<string>();
      await starve(
        async () => pour(96, async () => said.add((await world.post("attacker", body)).error?.message ?? "")),
        50,
      );
      expect([...said].join("; ")).to.include(told);
      expect((await world.upstream.calls()).some(({ body: sent }) => sent.includes(`"mark":[`))).to.equal(false);
    });
  }

  it("by bodies of 4 MB that are blocked", async () => {
    world = await ShareWorld.start({ connection: "session" });
    const pages = Array.from({ length: 4 }, () => "page of text. ".repeat(74_000));
    const said = new Set<string>();
    await starve(async () => {
      return pour(24, async () => {
        const { result, error } = await world.call("attacker", { please_block: true, pages });
        said.add(error?.message ?? result?.content?.[0]?.text.slice(0, 17) ?? "");
      });
    }, 400);
    expect([...said].join("; "))
      .to.match(/Blocked by policy/)
      .and.to.match(/try again in \d+ s/);
    expect((await world.upstream.calls()).some(({ body }) => body.includes("please_block"))).to.equal(false);
  });

  it("by `evaluate` of 4,900 empty objects over 4 sockets", async () => {
    world = await ShareWorld.start({ connection: "session" });
    const items = Array.from({ length: 4_900 }, () => ({}));
    const action = { capability: "write", target: "recorder", tool: "echo", arguments: { items } };
    const message = JSON.stringify({ type: "evaluate", payload: { action } });
    const said = new Set<string>();
    await starve(async () => {
      const open = Array.from({ length: 4 }, () => openSocket("attacker"));
      const asked = (await Promise.all(open)).map(async (socket) => {
        if (socket === undefined) throw new Error("expected a place");
        for (let answers = 0; answers < 24; answers++) {
          const answered = new Promise<string>((resolve) => socket.once("message", (data) => resolve(String(data))));
          socket.send(message);
          const { type, payload } = JSON.parse(await answered) as { type: string; payload: { message?: string } };
          said.add(payload.message ?? type);
        }
      });
      await Promise.all(asked);
      return 96;
    }, 100);
    expect([...said]).to.include("evaluation");
  });

  it("by 200 `initialize`", async () => {
    world = await ShareWorld.start({ connection: "session" });
    await starve(() => pour(200, () => world.initialize("attacker")), 100);
  });

  it("by 1,000 sockets, and 1,000 more without a key", async () => {
    world = await ShareWorld.start({ connection: "session" });
    let places = 0;
    await starve(async () => {
      const keyless = await pour(1_000, () => openSocket());
      const keyed = await pour(1_000, async () => {
        if ((await openSocket("attacker")) !== undefined) places++;
      });
      return keyless + keyed;
    }, 50);
    expect(places).to.equal(250);
  });

  it("by reviews under 400 labels", async () => {
    world = await ShareWorld.start({ connection: "session", more: "sessions: { review_flood: { reviews: 0 } }" });
    const hold = (index: number): Promise<unknown> =>
      world.call("attacker", { please_review: index }, undefined, [["x-gateway-session-id", `label-${index}`]]);
    await starve(() => pour(400, hold), 100);
    const colleague = await world.call("colleague", { please_review: 1 });
    expect(colleague.result?.content?.[0]?.text).to.contain("is pending until");
  });

  it("by 2,000 watchers, each of whom gets every event", async () => {
    const shares = "max_websockets: 2000, key_share_percent: 100, tenant_share_percent: 100";
    const limits = `${shares}, key_calls_per_minute: 10000, tenant_calls_per_minute: 10000`;
    world = await ShareWorld.start({ connection: "session", limits });
    const callMany = async (): Promise<void> => {
      await pour(100, async () => expect((await world.call("colleague", {})).error).to.equal(undefined));
    };
    await callMany();
    const aloneMs = await cost(callMany);
    let events = 0;
    await pour(1_990, async () => {
      const socket = await openSocket("attacker");
      if (socket === undefined) throw new Error("expected a place");
      const subscribed = new Promise<void>((resolve) =>
        socket.on("message", (data: Buffer) => {
          const text = String(data);
          if (text.includes('"type":"event"')) events++;
          else if (text.includes('"subscribed"')) resolve();
        }),
      );
      socket.send('{"type":"subscribe","payload":{"channels":["decisions"]}}');
      await subscribed;
    });
    const watchedMs = await cost(callMany);
    // 39 ms a call where each watcher is served in the turn of the call.
    expect((watchedMs - aloneMs) / 100).to.be.below(10);
    await until(() => events >= 1_990 * 100, 60_000);
    expect(events).to.equal(1_990 * 100);
  });
});
