import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { until } from "../../support/event-stream.ts";
import { type Called, type Holder, ShareWorld } from "../../support/share-world.ts";
import { LiveClient } from "../live/live-client.ts";

/** Counts are the subject here, not the processor time of each key. */
const free = "key_cpu_percent: 100, tenant_cpu_percent: 100";

/** Each of them takes all that its key may have; the others go on. */
describe("one key that takes all it gets", () => {
  let world: ShareWorld;
  afterEach(() => world?.stop());

  const openMany = (holder: Holder, count: number): Promise<readonly Called[]> =>
    Promise.all(Array.from({ length: count }, () => world.initialize(holder)));
  const sessionsOf = (answers: readonly Called[]): readonly string[] => answers.flatMap(({ session }) => session ?? []);

  async function expectServed(holder: Holder, mark: string, session?: string): Promise<void> {
    const { result, error } = await world.call(holder, { mark }, session);
    expect(error).to.equal(undefined);
    expect(result?.content?.[0]?.text).to.contain(mark);
    const calls = await world.upstream.calls();
    expect(calls.filter(({ body }) => body.includes(mark))).to.have.lengthOf(1);
  }

  describe("of sessions [S77]", () => {
    it("gets a quarter of them, its tenant half, and is told so; others open theirs", async () => {
      world = await ShareWorld.start({ connection: "shared", limits: free, more: "mcp_gateway: { max_sessions: 40 }" });
      const answers = await openMany("attacker", 30);
      const opened = sessionsOf(answers);
      expect(opened).to.have.lengthOf(10);
      const refused = answers.filter(({ status }) => status === 429);
      expect(refused).to.have.lengthOf(20);
      expect(refused[0]?.error).to.deep.include({
        code: 1429,
        message: "too many sessions: expected at most 10 open sessions with one key; end one, or try again in 60 s",
      });
      expect(refused[0]?.error?.data).to.include({ reason: "key", limit: 10, retry_after_s: 60 });
      const colleagues = sessionsOf(await openMany("colleague", 10));
      expect(colleagues).to.have.lengthOf(10);
      expect((await world.initialize("operator")).error?.message).to.contain("20 open sessions of one tenant");
      const [theirs = ""] = sessionsOf([await world.initialize("neighbour")]);
      for (const session of opened) expect((await world.call("attacker", {}, session)).error).to.equal(undefined);
      await expectServed("colleague", "in-a-session", colleagues[0]);
      await expectServed("neighbour", "of-another-tenant", theirs);
      await expectServed("operator", "without-a-session");
    });

    it("gets what `limits.key_share_percent` and `limits.tenant_share_percent` say", async () => {
      const limits = `${free}, key_share_percent: 50, tenant_share_percent: 75`;
      world = await ShareWorld.start({ connection: "shared", limits, more: "mcp_gateway: { max_sessions: 8 }" });
      expect(sessionsOf(await openMany("attacker", 8))).to.have.lengthOf(4);
      expect(sessionsOf(await openMany("colleague", 8))).to.have.lengthOf(2);
      expect(sessionsOf(await openMany("neighbour", 8))).to.have.lengthOf(2);
    });
  });

  describe("of connections to an upstream [S77]", () => {
    it("gets a quarter of them, and others are served", async () => {
      world = await ShareWorld.start({ connection: "session", limits: free });
      const answers = await openMany("attacker", 70);
      const opened = sessionsOf(answers);
      const refused = answers.flatMap(({ error }) => error ?? []);
      expect(opened.length + refused.length).to.equal(70);
      expect(refused).to.not.have.lengthOf(0);
      for (const { code, message, data } of refused) {
        expect([code, message]).to.deep.equal([1503, busyText]);
        expect(data).to.include({ code: "UPSTREAM_BUSY", reason: "key", limit: 16, retry_after_s: 1 });
      }
      expect(await connections()).to.equal(16);
      for (const holder of ["neighbour", "colleague", "operator"] as const) {
        const { session, error } = await world.initialize(holder);
        expect(error).to.equal(undefined);
        await expectServed(holder, `own-connection-${holder}`, session);
      }
      // One more is the gateway's own, from its start.
      expect(await world.received("initialize")).to.equal(opened.length + 3 + 1);
      expect(await connections()).to.equal(16 + 3);
    });

    it("keeps what it uses, gives up what it does not, and is never told `unknown tool`", async () => {
      world = await ShareWorld.start({ connection: "session", limits: `${free}, key_share_percent: 5` });
      const sessions: string[] = [];
      for (let turn = 0; turn < 5; turn++) {
        sessions.push(...sessionsOf([await world.initialize("attacker")]));
        await sleep(1_200);
      }
      expect(sessions).to.have.lengthOf(5);
      expect(await connections()).to.equal(3);
      const slow = sessions.slice(0, 3).map((session) => world.call("attacker", { wait_ms: 8_000 }, session));
      await until(async () => ((await world.upstream.calls()).length === 3 ? true : undefined));
      const inVain = [await world.initialize("attacker"), await world.call("attacker", {}, sessions[3])];
      for (const { error } of inVain) expect(error?.message).to.equal(busyText.replace("16", "3"));
      for (const { error } of await Promise.all(slow)) expect(error).to.equal(undefined);
      await sleep(1_200);
      for (const session of sessions) {
        expect((await world.call("attacker", {}, session)).error).to.equal(undefined);
        await sleep(1_200);
      }
      expect(await connections()).to.equal(3);
    });

    const busyText =
      "upstream has no free connection: expected at most 16 connections to `recorder` with one key; try again in 1 s";

    /** The number of connections that the gateway has to the upstream. */
    async function connections(): Promise<number> {
      const { body } = await world.admin("operator", "GET", "/admin/v1/upstreams");
      return Number(/"connections":(\d+)/.exec(body)?.[1]);
    }
  });

  describe("of places on `/v1/ws` [S77] [S72]", () => {
    const clients: LiveClient[] = [];
    const connect = (holder?: Holder): LiveClient => {
      const client = new LiveClient(world.gateway.url, holder === undefined ? {} : { key: world.key(holder) });
      clients.push(client);
      return client;
    };
    /** Connects that often, and returns those that got a place with the statuses of the others. */
    async function connectMany(holder: Holder, count: number): Promise<{ opened: LiveClient[]; refused: number[] }> {
      const opened: LiveClient[] = [];
      const refused: number[] = [];
      for (let at = 0; at < count; at++) {
        const client = connect(holder);
        const status = await Promise.race([client.open().then(() => 101), client.refusal()]);
        if (status === 101) opened.push(client);
        else refused.push(status);
      }
      return { opened, refused };
    }
    afterEach(() => {
      for (const { socket } of clients.splice(0)) socket.terminate();
    });

    it("gets a quarter of them, its tenant half; an operator gets one in any case", async () => {
      world = await ShareWorld.start({ connection: "shared", limits: `${free}, max_websockets: 40` });
      const { opened, refused } = await connectMany("attacker", 30);
      expect([opened.length, new Set(refused)]).to.deep.equal([10, new Set([429])]);
      const colleagues = await connectMany("colleague", 12);
      expect(colleagues.opened).to.have.lengthOf(10);
      const displaced = colleagues.opened.at(-1)?.closed();
      const operator = await connect("operator").open();
      await operator.hear(({ type }) => type === "auth_ok");
      expect(await displaced).to.deep.equal([1013, "an operator needs the place"]);
      await (await connect("neighbour").open()).hear(({ type }) => type === "auth_ok");
      const late = await connect().open();
      late.say("auth", { key: world.key("attacker") }, "a");
      const { payload } = await late.hear(({ id }) => id === "a");
      expect(payload).to.deep.include({
        code: "RATE_LIMITED",
        message: "too many requests: expected at most 10 connections to `/v1/ws` with one key; try again in 10 s",
      });
    });

    it("without any key keeps none: an address has so many, and the oldest goes first", async () => {
      const limits = `${free}, max_websockets: 40, max_unauthenticated_websockets: 4`;
      world = await ShareWorld.start({ connection: "shared", limits });
      const silent: LiveClient[] = [];
      for (let at = 0; at < 100; at++) silent.push(await connect().open());
      await sleep(200);
      const alive = silent.filter(({ socket }) => socket.readyState === socket.OPEN);
      expect(alive).to.deep.equal(silent.slice(-4));
      const operator = await connect().open();
      operator.say("auth", { key: world.key("operator") }, "a");
      expect((await operator.hear(({ id }) => id === "a")).type).to.equal("auth_ok");
      const { opened } = await connectMany("colleague", 10);
      expect(opened).to.have.lengthOf(10);
    });
  });

  describe("of the approval queue [S57] [S77]", () => {
    it("gets a quarter of it, whatever its labels; a colleague is heard, and the call runs once approved", async () => {
      world = await ShareWorld.start({
        connection: "shared",
        limits: free,
        more: "approvals: { max_pending: 40 }\nsessions: { review_flood: { reviews: 0 } }",
      });
      const hold = (holder: Holder, at: number): Promise<Called> =>
        world.call(holder, { please_review: at }, undefined, [["x-gateway-session-id", `label-${at}`]]);
      const answers: Called[] = [];
      for (let at = 0; at < 60; at++) answers.push(await hold("attacker", at));
      const texts = answers.map(({ result }) => result?.content?.[0]?.text ?? "");
      expect(texts.filter((text) => text.includes("is pending until"))).to.have.lengthOf(10);
      const full = texts.filter((text) => text.includes("The review queue is full"));
      expect(full).to.have.lengthOf(50);
      for (const text of full) {
        expect(text).to.match(
          /\(at most 10 approvals with one key\), so nobody was asked: try again once a reviewer has decided, or in \d+ s\./,
        );
      }
      const [, id = ""] =
        /Approval (apr_\w+) is/.exec((await hold("colleague", 1)).result?.content?.[0]?.text ?? "") ?? [];
      expect((await world.admin("operator", "POST", `/admin/v1/approvals/${id}/approve`)).status).to.equal(200);
      expect((await hold("colleague", 1)).result?.isError).to.equal(undefined);
      expect(await world.upstream.calls()).to.have.lengthOf(1);
    });
  });
});
