import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { ModelApi } from "../../../core/action/model-api.ts";
import type { ActionRecord } from "../../../core/evidence/record/record.ts";
import { type ProviderCall, type Script, scripts } from "../../fixture/model-provider.ts";
import { answerEvents } from "../../fixture/model-reply.ts";
import { until } from "../../support/event-stream.ts";
import { askModel, openModel, type Told } from "./ask.ts";
import { errorOf } from "./error-shape.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

const apis = ["chat", "messages"] as const;
const timeouts = `first_byte_timeout_ms: 1500
    idle_timeout_ms: 700
    max_retries: 0
    breaker: { failures: 1000 }`;

const long = (api: ModelApi): readonly string[] => answerEvents(api, { text: "word ".repeat(2_000) });
/** A stream that goes on for 20 s, a word at a time. */
const slow: Script = (response, call) => scripts.streams(long(call.api), 10)(response, call);

describe("a model request that is cut off", () => {
  let world: ModelWorld;
  before(async () => {
    world = await openModelWorld({ provider: timeouts });
  });
  after(() => world.stop());

  async function recordsOf(label: string | undefined): Promise<readonly ActionRecord[]> {
    return (await world.records()).filter(({ session }) => session.label === label);
  }

  /** What came of the session's last action. */
  async function lastOutcome(label?: string): Promise<Pick<ActionRecord, "effect" | "reason">> {
    const { effect, reason } = await until(async () => {
      const last = (await recordsOf(label)).at(-1);
      return last?.kind === "outcome" && last;
    });
    return { effect, reason };
  }

  /** The call that reaches the provider next. */
  async function nextCall(before: number): Promise<ProviderCall> {
    return until(() => world.provider.calls[before]);
  }

  for (const provider of apis) {
    for (const api of apis) {
      const pair = `${provider} to a client of ${api}`;
      const model = `${provider}-model`;

      describe(pair, () => {
        for (const stream of [true, false]) {
          it(`by its client before the first byte, ${stream ? "streamed" : "whole"}, frees the provider at once [S60]`, async () => {
            const [calls, abort] = [world.provider.calls.length, new AbortController()];
            world.provider.next(scripts.stalls());
            const asked = askModel(world, { api, model, stream, signal: abort.signal }).catch(() => "aborted");
            const call = await nextCall(calls);
            abort.abort();
            expect(await asked).to.equal("aborted");
            await until(() => call.brokenAtMs);
            expect(await lastOutcome()).to.deep.equal({ effect: "unknown", reason: "CANCELLED" });
          });
        }

        it("by its client in mid-stream frees the provider at once [S60]", async () => {
          const [calls, abort] = [world.provider.calls.length, new AbortController()];
          world.provider.next(slow);
          const response = await openModel(world, { api, model, stream: true, signal: abort.signal });
          await response.body?.getReader().read();
          abort.abort();
          const call = await nextCall(calls);
          await until(() => call.brokenAtMs);
          expect(await lastOutcome()).to.deep.equal({ effect: "unknown", reason: "CANCELLED" });
        });

        it("by whoever stops its session ends in an error of its API, and the next is blocked", async () => {
          const calls = world.provider.calls.length;
          const label = `${provider}-${api}`;
          const headers = { "x-gateway-session-id": label };
          world.provider.next(slow);
          const response = await openModel(world, { api, model, stream: true, headers });
          const call = await nextCall(calls);
          const session = (await recordsOf(label))[0]?.session.id;
          const order = (what: string, body: object): Promise<Response> =>
            fetch(`${world.gateway.adminUrl}/admin/v1/sessions/${session}/${what}`, {
              method: "POST",
              headers: { "x-api-key": world.keys.operator, "content-type": "application/json" },
              body: JSON.stringify(body),
            });
          expect((await order("kill", {})).status).to.equal(200);
          const told = await toldBy(response);
          expect(errorOf(api, told)).to.include({ code: "session_killed" });
          await until(() => call.brokenAtMs);
          expect((await lastOutcome(label)).effect).to.equal("unknown");
          const next = await askModel(world, { api, model, stream: true, headers });
          expect([next.status, errorOf(api, next).code]).to.deep.equal([403, "policy_blocked"]);
          expect(next.headers.get("x-should-retry")).to.equal("false");
          expect(world.provider.calls.length).to.equal(calls + 1);
          // It stops the other sessions of its principal as well.
          expect((await order("release", { reason: "of the test" })).status).to.equal(200);
        });

        const faults: Readonly<Record<string, readonly [(half: readonly string[]) => Script, string]>> = {
          "a provider that dies": [(half) => scripts.dies(half), "provider_unavailable"],
          "a provider that falls silent": [(half) => scripts.stalls(half), "provider_timeout"],
        };
        for (const [what, [make, code]] of Object.entries(faults)) {
          it(`by ${what} in mid-stream ends in an error of its API, the outcome unknown`, async () => {
            const calls = world.provider.calls.length;
            world.provider.next(make(long(provider).slice(0, 120)));
            const told = await askModel(world, { api, model, stream: true });
            expect(told.status).to.equal(200);
            expect(told.text).to.include("word");
            expect(errorOf(api, told)).to.include({ code });
            expect(await lastOutcome()).to.deep.equal({ effect: "unknown", reason: code.toUpperCase() });
            const call = await nextCall(calls);
            await until(() => call.isOver);
          });
        }

        for (const stream of [true, false]) {
          it(`by a provider that says nothing at all is told in its API, ${stream ? "streamed" : "whole"}`, async () => {
            const calls = world.provider.calls.length;
            world.provider.next(scripts.stalls());
            const told = await askModel(world, { api, model, stream });
            expect([told.status, errorOf(api, told).code]).to.deep.equal([504, "provider_timeout"]);
            expect(await lastOutcome()).to.deep.equal({ effect: "unknown", reason: "PROVIDER_TIMEOUT" });
            const call = await nextCall(calls);
            await until(() => call.isOver);
          });
        }
      });
    }
  }

  it("never leaves a connection to a provider busy", async () => {
    await until(() => world.provider.calls.every(({ isOver }) => isOver));
    const headers = { "x-api-key": world.keys.operator };
    const { items } = (await (await fetch(`${world.gateway.adminUrl}/admin/v1/providers`, { headers })).json()) as {
      items: readonly { readonly requests_in_flight: number }[];
    };
    expect(items.map((item) => item.requests_in_flight)).to.deep.equal(items.map(() => 0));
  });
});

describe("a gateway told to stop while a model streams", () => {
  let world: ModelWorld;
  afterEach(() => world.provider.stop());

  it("lets it finish, and leaves its outcome", async () => {
    world = await openModelWorld();
    world.provider.next((response, call) =>
      scripts.streams(answerEvents(call.api, { text: "one two" }), 150)(response, call),
    );
    const response = await openModel(world, { stream: true });
    const stopped = world.gateway.stop();
    const told = await toldBy(response);
    expect(told.text).to.match(/ two"[\s\S]*data: \[DONE\]\n\n$/);
    expect(await stopped).to.equal(0);
  });

  it("cuts it after `limits.drain_ms`, and frees the provider", async () => {
    world = await openModelWorld({ more: "limits: { drain_ms: 300 }", ownProcess: true });
    world.provider.next(slow);
    const response = await openModel(world, { stream: true });
    await sleep(100);
    const [told] = await Promise.all([
      toldBy(response).catch(() => "cut"),
      once(world.gateway.process, "exit"),
      world.gateway.stop(),
    ]);
    expect(told).to.equal("cut");
    await until(() => world.provider.calls.at(-1)?.isOver);
    expect(world.gateway.process.exitCode).to.equal(0);
  });
});

async function toldBy(response: Response): Promise<Told> {
  const text = await response.text();
  const { status, headers } = response;
  return { status, headers, text, json: () => JSON.parse(text) as ReturnType<Told["json"]> };
}
