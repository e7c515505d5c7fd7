import { expect } from "chai";
import { LiveClient } from "../e2e/live/live-client.ts";
import { residentBytes, settledGrowth } from "../support/resident.ts";
import { roundsOf } from "../support/rounds.ts";
import { type Called, type Holder, ShareWorld } from "../support/share-world.ts";
import { dial, encodeRequest, send, type WireResponse } from "../support/wire.ts";

const perMinute = 20;
const badKey = "agw_0123456789012345678901234567890123456789012";

/** Shares as in production; queue and sockets are few, so that few requests fill them. */
const limits = `key_cpu_percent: 100, tenant_cpu_percent: 100, max_websockets: 40, max_unauthenticated_websockets: 8, unauthenticated_per_minute: ${perMinute}`;
const more = "approvals: { max_pending: 40 }\nsessions: { review_flood: { reviews: 0 } }";

describe("somebody who fills what all share", () => {
  let world: ShareWorld;
  const clients: LiveClient[] = [];
  before(async () => {
    world = await ShareWorld.start({ connection: "shared", limits, more });
  });
  after(() => world?.stop());
  afterEach(() => {
    for (const { socket } of clients.splice(0)) socket.terminate();
  });

  function connect(key?: string): LiveClient {
    const client = new LiveClient(world.gateway.url, key === undefined ? {} : { key });
    clients.push(client);
    return client;
  }

  const hold = (holder: Holder, at: number): Promise<Called> =>
    world.call(holder, { please_review: at }, undefined, [["x-gateway-session-id", `label-${holder}-${at}`]]);
  const textOf = ({ result }: Called): string => result?.content?.[0]?.text ?? "";

  /** Asks `/mcp` with a key. */
  function ask(key: string): Promise<WireResponse> {
    return send(world.gateway.url, {
      method: "POST",
      target: "/mcp",
      headers: [
        ["x-api-key", key],
        ["content-type", "application/json"],
      ],
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "echo", arguments: {} } }),
    });
  }

  async function expectOthersServed(): Promise<void> {
    for (const holder of ["operator", "neighbour"] as const) {
      const before = (await world.upstream.calls()).length;
      expect((await world.call(holder, { mark: holder })).error).to.equal(undefined);
      expect(await world.upstream.calls()).to.have.lengthOf(before + 1);
      await (await connect(world.key(holder)).open()).hear(({ type }) => type === "auth_ok");
      // As a browser does, which can send no header.
      const late = await connect().open();
      late.say("auth", { key: world.key(holder) }, "a");
      expect((await late.hear(({ id }) => id === "a")).type).to.equal("auth_ok");
    }
    expect((await world.admin("operator", "GET", "/admin/v1/approvals")).status).to.equal(200);
  }

  it("with reviews under a label each gets a quarter of its tenant's queue, and the others are heard [S57] [S77]", async () => {
    const asked = await Promise.all(Array.from({ length: 60 }, (_, at) => hold("attacker", at)));
    const pending = asked.filter((called) => textOf(called).includes("is pending until"));
    expect(pending).to.have.lengthOf(10);
    const full = asked.filter((called) => textOf(called).includes("at most 10 approvals with one key"));
    expect(full).to.have.lengthOf(50);
    for (const holder of ["colleague", "neighbour"] as const) {
      expect(textOf(await hold(holder, 0)), holder).to.include("is pending until");
    }
    expect(await world.upstream.calls()).to.have.lengthOf(0);
    await expectOthersServed();
    expect(await listed()).to.have.lengthOf(11);
  });

  it("with reviews is stopped by an operator while they wait, and the list still pages [S57]", async () => {
    const [first] = await listed();
    const before = (await world.upstream.calls()).length;
    expect((await world.admin("operator", "POST", `/admin/v1/sessions/${first}/kill`)).status).to.equal(200);
    const stopped = await world.call("attacker", { after: "the kill" });
    expect(stopped.result?.isError, JSON.stringify(stopped)).to.equal(true);
    expect(await world.upstream.calls()).to.have.lengthOf(before);
    expect(await listed()).to.have.lengthOf(11);
    await expectOthersServed();
  });

  /** The session of each approval of the tenant, read in pages of three. */
  async function listed(): Promise<readonly string[]> {
    const sessions: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const query: string = cursor === "" ? "" : `&cursor=${cursor}`;
      const { body } = await world.admin("operator", "GET", `/admin/v1/approvals?limit=3${query}`);
      const page = JSON.parse(body) as { items: { session: { id: string } }[]; next: string | null };
      expect(page.items.length).to.be.at.most(3);
      sessions.push(...page.items.map(({ session }) => session.id));
      cursor = page.next;
    }
    return sessions;
  }

  it("with thousands of sockets without a key keeps eight of them and no memory, and the others get theirs [S72] [S77]", async () => {
    const head = encodeRequest(world.gateway.url, {
      target: "/v1/ws",
      headers: [
        ["connection", "Upgrade"],
        ["upgrade", "websocket"],
        ["sec-websocket-version", "13"],
        ["sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="],
      ],
    });
    const batch = 500;
    /** Opens sockets that say nothing, and waits until all but eight were closed. Returns the answers that were no upgrade. */
    async function openSilent(): Promise<number> {
      let refused = 0;
      let closed = 0;
      const sockets = await Promise.all(Array.from({ length: batch }, () => dial(world.gateway.url)));
      const done = new Promise<void>((resolve) => {
        for (const socket of sockets) {
          socket.on("error", () => undefined);
          socket.once("data", (chunk: Buffer) => {
            if (!chunk.toString("latin1").startsWith("HTTP/1.1 101")) refused++;
          });
          socket.once("close", () => {
            if (++closed === batch - 8) resolve();
          });
          socket.write(head);
        }
      });
      await done;
      for (const socket of sockets) socket.destroy();
      return refused;
    }
    const growth = await settledGrowth(64 * 1_048_576, async () => {
      const before = await residentBytes(world.gateway);
      for (let at = 0; at < roundsOf(4, 20); at++) expect(await openSilent()).to.equal(0);
      return (await residentBytes(world.gateway)) - before;
    });
    expect(growth).to.be.below(64 * 1_048_576);
    await expectOthersServed();
  });

  it("with messages before `auth` gets so many a minute over all its sockets, and none is answered but by a refusal", async () => {
    /** The code with which a socket is closed that says `ping` twenty times, and the code of the last answer. */
    async function chatter(): Promise<readonly [number, unknown]> {
      const client = await connect().open();
      const closed = client.closed();
      for (let at = 0; at < 20; at++) client.say("ping", {}, `p${at}`);
      const [code] = await closed;
      expect(client.heard.every(({ type }) => type === "error")).to.equal(true);
      expect(client.heard.length).to.be.at.most(16);
      return [code, client.heard.at(-1)?.payload.code];
    }
    expect(await chatter()).to.deep.equal([4401, "KEY_MISSING"]);
    await untilRefused(chatter, ([code, last]) => code === 1013 && last === "RATE_LIMITED");
    await expectOthersServed();
  });

  it("with a message of 5 kB before `auth` is closed, and it is not read", async () => {
    const client = await connect().open();
    const closed = client.closed();
    client.say("auth", { key: world.key("operator"), more: "x".repeat(5_000) });
    expect((await closed)[0]).to.equal(4401);
    expect(client.heard).to.deep.equal([]);
  });

  it("with bad keys is told to wait, on every road, and no good key of the same address is kept out", async () => {
    const before = (await world.upstream.calls()).length;
    const refused = await untilRefused(
      () => ask(badKey),
      ({ status }) => status === 429,
    );
    expect(Number(refused.headers.get("retry-after"))).to.be.within(1, 60);
    expect(refused.body).to.include("unauthenticated requests a minute").and.not.include(badKey);
    await untilRefused(
      () => connect(badKey).refusal(),
      (status) => status === 429,
    );
    const inMessage = async (): Promise<readonly [number, unknown]> => {
      const client = await connect().open();
      client.say("auth", { key: badKey });
      const [code] = await client.closed();
      return [code, client.heard[0]?.payload.code];
    };
    await untilRefused(inMessage, ([code, answer]) => code === 1013 && answer === "RATE_LIMITED");
    expect(await world.upstream.calls()).to.have.lengthOf(before);
    const { body } = await send(world.gateway.metricsUrl, { target: "/metrics" });
    expect(Number(/^gateway_fair_share_refusals_total\{limit="address"\} (\d+)$/m.exec(body)?.[1])).to.be.at.least(3);
    await expectOthersServed();
  });

  /** Tries until the answer is the refusal: the allowance refills while it is spent. */
  async function untilRefused<Answer>(
    attempt: () => Promise<Answer>,
    isRefused: (answer: Answer) => boolean,
  ): Promise<Answer> {
    for (let turn = 0; turn < 10 * perMinute; turn++) {
      const answer = await attempt();
      if (isRefused(answer)) return answer;
    }
    throw new Error("expected a refusal");
  }
});
