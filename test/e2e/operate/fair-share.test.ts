import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { connectClient, type McpClient } from "../../support/mcp-client.ts";
import { SseAgent } from "../../support/sse-agent.ts";
import { send, type WireResponse } from "../../support/wire.ts";
import { LiveClient } from "../live/live-client.ts";
import {
  echoCall,
  effectsOf,
  type KeyHolder,
  keys,
  messageHeaders,
  openWorld,
  post,
  type World,
} from "../wire/world.ts";

/** What a refused caller is told. */
interface Refusal {
  readonly code: string;
  readonly reason: string;
  readonly retry_after: number;
  readonly limit: number;
}

describe("what one key and one tenant may spend", () => {
  let world: World;
  afterEach(() => world.stop());

  /** A gateway with the limits of production, but for these. */
  async function open(limits: string): Promise<void> {
    world = await openWorld(`limits: { ${limits} }`, "", undefined, { limitsShares: true });
  }

  /** Calls that were answered with 200. */
  let served: number;
  beforeEach(() => {
    served = 0;
  });

  async function call(holder: KeyHolder, args?: string): Promise<WireResponse> {
    const answer = await post(world, echoCall(args), { headers: messageHeaders(holder) });
    if (answer.status === 200) served++;
    return answer;
  }

  /** Calls until one is refused, and returns that answer. */
  async function exhaust(holder: KeyHolder, args?: string): Promise<WireResponse> {
    for (let turn = 0; turn < 200; turn++) {
      const answer = await call(holder, args);
      if (answer.status !== 200) return answer;
    }
    throw new Error("expected a refusal within 200 calls");
  }

  /** Exhausts what the operator may spend; what is refused runs nothing and leaves no record. */
  async function exhaustCounted(args?: string): Promise<WireResponse> {
    const answers: WireResponse[] = [];
    const effects = await effectsOf(world, async () => answers.push(await exhaust("operator", args)));
    expect(effects).to.deep.equal({ calls: served, records: 2 * served });
    return answers[0] as WireResponse;
  }

  function refusalIn({ body }: WireResponse): Refusal {
    return (JSON.parse(body) as { error: { data: Refusal } }).error.data;
  }

  async function refusedBy(limit: string): Promise<number> {
    const { body } = await send(world.gateway.metricsUrl, { target: "/metrics" });
    return Number(new RegExp(`^gateway_fair_share_refusals_total\\{limit="${limit}"\\} (\\d+)$`, "m").exec(body)?.[1]);
  }

  /** Operators, probes and kills have a lane of their own: also with the key that may call no more. */
  async function expectOperatorsServed(holder: KeyHolder): Promise<void> {
    const { url, adminUrl } = world.gateway;
    for (let turn = 0; turn < 20; turn++) {
      expect((await send(url, { target: "/health" })).status).to.equal(200);
      const headers = messageHeaders(holder);
      expect((await send(adminUrl, { target: "/admin/v1/sessions", headers })).status).to.equal(200);
    }
    const killed = await send(adminUrl, {
      method: "POST",
      target: "/admin/v1/kills",
      headers: messageHeaders("operator"),
      body: '{"scope":"tenant"}',
    });
    expect(killed.status).to.equal(200);
  }

  const costly = `{"list":[${"0,".repeat(9_000)}0]}`;

  describe("in calls", () => {
    const few = "key_calls_per_minute: 30";

    it("is so much: then a call is refused by name, runs nothing, and works again when it was said to [S77]", async () => {
      await open(few);
      const answer = await exhaustCounted();
      const refusal = refusalIn(answer);
      expect([answer.status, answer.headers.get("retry-after")]).to.deep.equal([429, String(refusal.retry_after)]);
      expect(JSON.parse(answer.body)).to.deep.include({ jsonrpc: "2.0", id: null });
      expect(refusal).to.include({ code: "RATE_LIMITED", reason: "key_calls", limit: 30 });
      expect(refusal.retry_after).to.be.within(1, 2);
      const { message } = (JSON.parse(answer.body) as { error: { message: string } }).error;
      expect(message).to.equal(
        `too many requests: expected at most 30 calls a minute of this key, got more; try again in ${refusal.retry_after} s`,
      );
      expect((await call("foreign")).status).to.equal(200);
      expect((await call("viewer")).status).to.equal(200);
      await sleep(refusal.retry_after * 1_000);
      expect((await call("operator")).status).to.equal(200);
      expect(await refusedBy("key_calls")).to.equal(1);
      expect(await refusedBy("tenant_calls")).to.equal(0);
      await exhaust("operator");
      await expectOperatorsServed("operator");
    });

    it("is enough for a burst unless configuration says otherwise", async () => {
      await open("drain_ms: 1000");
      const answers = await Promise.all(Array.from({ length: 100 }, () => call("viewer")));
      expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]));
    });

    it("is refused before the body is parsed [S77]", async () => {
      await open(few);
      await exhaust("viewer");
      const answer = await post(world, "no JSON at all", { headers: messageHeaders("viewer") });
      expect(answer.status).to.equal(429);
    });

    it("refuses a large body later than a small one that came after it: what is refused is not read at once [S77]", async () => {
      await open(few);
      await exhaust("viewer");
      const order: string[] = [];
      const refused = async (size: string, args?: string): Promise<void> => {
        expect((await call("viewer", args)).status).to.equal(429);
        order.push(size);
      };
      const large = refused("large", costly);
      await call("foreign"); // by then the large one has come
      await refused("small");
      await large;
      expect(order).to.deep.equal(["small", "large"]);
    });

    it("is what all keys of a tenant have together [S77]", async () => {
      await open("tenant_calls_per_minute: 12");
      const refusal = refusalIn(await exhaust("viewer"));
      expect(refusal).to.include({ reason: "tenant_calls", limit: 12 });
      expect(refusalIn(await exhaust("operator"))).to.include({ reason: "tenant_calls" });
      expect((await call("foreign")).status).to.equal(200);
    });

    for (const kind of ["v1", "v1 sse", "v2 modern"] as const) {
      it(`is told to an agent on ${kind} in words, and its client goes on afterwards [S77]`, async () => {
        await open(few);
        const endpoint = { url: `${world.gateway.url}/mcp`, headers: { "x-api-key": keys.viewer } };
        const client = await connectClient(kind, endpoint);
        try {
          const words = await firstRefusal(client);
          const seconds = Number(
            /at most 30 calls a minute of this key, got more; try again in (\d+) s/.exec(words)?.[1],
          );
          expect(seconds, words).to.be.within(1, 2);
          await sleep(seconds * 1_000);
          expect((await client.callTool("echo")).isError ?? false).to.equal(false);
        } finally {
          await client.close();
        }
      });
    }

    async function firstRefusal(client: McpClient): Promise<string> {
      for (let turn = 0; turn < 200; turn++) {
        try {
          await client.callTool("echo");
        } catch (error) {
          return String(error);
        }
      }
      throw new Error("expected a refusal within 200 calls");
    }

    it("covers posts of HTTP+SSE and messages on `/v1/ws` [S77]", async () => {
      await open(few);
      const [agent, client] = [
        await SseAgent.open(world.gateway.url, keys.viewer),
        await new LiveClient(world.gateway.url, { key: keys.viewer }).open(),
      ];
      await exhaust("viewer");
      const posted = await agent.post(echoCall());
      expect([posted.status, posted.headers.has("retry-after")]).to.deep.equal([429, true]);
      client.say("evaluate", { action: { tool: "echo", target: "recorder" } }, "e");
      const { payload } = await client.hear(({ type }) => type === "error");
      expect(payload).to.include({ code: "RATE_LIMITED" });
      expect(payload.message).to.include("at most 30 calls a minute of this key");
      expect(payload.retry_after).to.be.within(1, 2);
      agent.hangUp();
      client.socket.terminate();
    });
  });

  describe("in processor time", () => {
    it("is a share of one core: then others are served, and it is served again when it was said to [S77]", async () => {
      await open("key_cpu_percent: 1, cpu_busy_percent: 0");
      const answer = await exhaustCounted(costly);
      const refusal = refusalIn(answer);
      expect([answer.status, answer.headers.get("retry-after")]).to.deep.equal([429, String(refusal.retry_after)]);
      expect(refusal).to.include({ code: "RATE_LIMITED", reason: "key_cpu", limit: 1 });
      expect(answer.body).to.include("at most 1 % of the gateway's processor time of this key, got more; try again in");
      expect((await call("foreign")).status).to.equal(200);
      const next = await call("operator");
      // On a busy machine its time may have come already; then this call has used it up.
      if (next.status !== 200) {
        await sleep(refusalIn(next).retry_after * 1_000);
        expect((await call("operator")).status).to.equal(200);
      }
      await exhaust("operator", costly);
      await expectOperatorsServed("operator");
    });

    it("is a share of each tenant, on model routes too [S77]", async () => {
      await open("tenant_cpu_percent: 1, cpu_busy_percent: 0");
      expect(refusalIn(await exhaust("viewer", costly))).to.include({ reason: "tenant_cpu", limit: 1 });
      for (const [target, type] of [
        ["/v1/chat/completions", "rate_limit_error"],
        ["/v1/messages", "rate_limit_error"],
      ] as const) {
        const headers = messageHeaders("operator");
        let answer: WireResponse;
        // Some of its time has come while the last refusal waited; a call that is served uses it up.
        do {
          await call("viewer", costly);
          answer = await send(world.gateway.url, { method: "POST", target, headers, body: "no JSON at all" });
        } while (answer.status === 400);
        expect([answer.status, answer.headers.has("retry-after")]).to.deep.equal([429, true]);
        const { error } = JSON.parse(answer.body) as { error: { type: string; code: string; message: string } };
        expect(error).to.include({ type, code: "rate_limit_exceeded" });
        expect(error.message).to.include("processor time of this tenant");
      }
      expect((await call("foreign")).status).to.equal(200);
    });

    it("is not limited at 100 %", async () => {
      await open("key_cpu_percent: 100, tenant_cpu_percent: 100, cpu_busy_percent: 0");
      for (let turn = 0; turn < 40; turn++) expect((await call("viewer", costly)).status).to.equal(200);
    });

    it("is not limited while the gateway has time to spare", async () => {
      await open("key_cpu_percent: 1, tenant_cpu_percent: 1, cpu_busy_percent: 95");
      for (let turn = 0; turn < 10; turn++) {
        expect((await call("viewer", costly)).status).to.equal(200);
        await sleep(250);
      }
    });
  });
});
