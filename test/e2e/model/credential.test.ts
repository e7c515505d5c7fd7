import { join } from "node:path";
import { expect } from "chai";
import type { ModelApi } from "../../../core/action/model-api.ts";
import { type Script, scripts } from "../../fixture/model-provider.ts";
import { answerEvents, answerOf } from "../../fixture/model-reply.ts";
import { canaryOf, entriesIn, formsOf } from "../../support/canary.ts";
import { filesWith } from "../../support/disk-search.ts";
import { askModel } from "./ask.ts";
import { errorOf } from "./error-shape.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

const apis = ["chat", "messages"] as const;

/** Headers with a canary each that a client, or a proxy before the gateway, may send. */
const names = [
  "cookie",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-real-ip",
  "forwarded",
  "via",
  "x-client-token",
  "proxy-authorization",
  "openai-organization",
  "x-stainless-os",
  "user-agent",
  "referer",
  "traceparent",
  "x-gateway-session-id",
] as const;
const hidden = Object.fromEntries(names.map((name) => [name, canaryOf(name)]));

/** Headers of ours and of HTTP; nothing else reaches a provider. */
const bearer = ["accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "host"];
const sentHeaders: Readonly<Record<ModelApi, readonly string[]>> = {
  chat: bearer,
  responses: bearer,
  messages: [
    "accept",
    "accept-encoding",
    "anthropic-version",
    "connection",
    "content-length",
    "content-type",
    "host",
    "x-api-key",
  ],
};

describe("credentials of a model request", () => {
  let world: ModelWorld;
  before(async () => {
    world = await openModelWorld({ provider: "max_retries: 0\n    breaker: { failures: 1000 }" });
  });
  after(() => world.stop());

  for (const provider of apis) {
    for (const api of apis) {
      for (const kind of ["once", "under both names"] as const) {
        it(`of a client of ${api}, sent ${kind}, and its other headers stay here: ${provider} [S12]`, async () => {
          const own = kind === "under both names" ? { authorization: `Bearer ${world.keys.agent}` } : {};
          const told = await askModel(world, { api, model: `${provider}-model`, headers: { ...hidden, ...own } });
          expect(told.status, told.text).to.equal(200);
          const call = world.provider.calls.at(-1);
          expect(Object.keys(call?.headers ?? {}).sort()).to.deep.equal(sentHeaders[provider]);
          const sent = JSON.stringify(call?.rawHeaders) + call?.text;
          for (const secret of [world.keys.agent, ...Object.values(hidden)]) {
            for (const form of formsOf(secret)) expect(sent).to.not.include(form);
          }
          const shown = provider === "chat" ? call?.headers.authorization : call?.headers["x-api-key"];
          expect(shown).to.equal(provider === "chat" ? `Bearer ${world.providerKey}` : world.providerKey);
        });
      }
    }
  }

  describe("of the gateway, which a provider shows", () => {
    /** Places of an answer where a provider, or what stands before it, may repeat the key it was sent. */
    const shows: Readonly<Record<string, (key: string) => Script>> = {
      "in an answer": (key) => (response, call) =>
        scripts.says(200, answerOf(call.api, { text: `your key is ${key}` }))(response, call),
      "in a refusal":
        (key) =>
        (response, { api }) => {
          const error = { type: "invalid_request_error", message: `bad key ${key}`, param: key, code: key };
          const body = api === "chat" ? { error } : { type: "error", error, request_id: key };
          response.writeHead(400, { "content-type": "application/json", "x-echo": key }).end(JSON.stringify(body));
        },
      "in a failure": (key) => scripts.says(401, { error: { message: `wrong key ${key}` } }),
      "in no JSON": (key) => scripts.says(200, `<html>${key}</html>`),
      "in a header": (key) => (response, call) => {
        response.setHeader("x-echo", key).setHeader("set-cookie", `k=${key}`);
        return scripts.answers({ text: "hello" })(response, call);
      },
    };
    const streams: Readonly<Record<string, (key: string) => Script>> = {
      "in a stream": (key) => (response, call) =>
        scripts.streams(answerEvents(call.api, { text: `your key is ${key} you know` }))(response, call),
      "in an error of a stream": (key) => (response, call) => {
        const error = { type: "api_error", message: `bad key ${key}` };
        const data = JSON.stringify(call.api === "chat" ? { error } : { type: "error", error });
        const last = `${call.api === "chat" ? "" : "event: error\n"}data: ${data}\n\n`;
        return scripts.streams([...answerEvents(call.api, { text: "hello" }).slice(0, 3), last])(response, call);
      },
      "in a comment": (key) => (response, call) =>
        scripts.streams([`: ${key}\n\n`, ...answerEvents(call.api, { text: "hello" })])(response, call),
    };

    for (const provider of apis) {
      for (const api of apis) {
        for (const [what, make] of [...Object.entries(shows), ...Object.entries(streams)]) {
          it(`${what}, reaches no client: ${provider} to a client of ${api} [S12]`, async () => {
            world.provider.next(make(world.providerKey));
            const told = await askModel(world, {
              api,
              model: `${provider}-model`,
              stream: Object.hasOwn(streams, what),
            });
            const all = told.text + JSON.stringify([...told.headers]);
            for (const form of formsOf(world.providerKey)) expect(all).to.not.include(form);
            if (what !== "in a header") expect(errorOf(api, told).message).to.not.equal("");
          });
        }
      }
    }
  });

  it("are in no evidence, log, metric or view of a provider [S12]", async () => {
    const { gateway, keys, providerKey } = world;
    const headers = { "x-api-key": keys.operator };
    const views = await Promise.all(
      [
        `${gateway.metricsUrl}/metrics`,
        `${gateway.adminUrl}/admin/v1/providers`,
        `${gateway.adminUrl}/admin/v1/usage`,
      ].map(async (url) => (await fetch(url, { headers })).text()),
    );
    const said = gateway.stdout() + gateway.stderr() + views.join("") + JSON.stringify(await world.records());
    const stored = await entriesIn(join(gateway.folder, "data"));
    expect(stored).to.include("outcome");
    // A session's label is the client's own name for it: it is on record.
    const client = Object.entries(hidden).filter(([name]) => name !== "x-gateway-session-id" && name !== "user-agent");
    for (const secret of [keys.agent, providerKey, ...client.map(([, value]) => value)]) {
      for (const form of formsOf(secret)) {
        expect(said.includes(form), form).to.equal(false);
        expect(stored.includes(form), form).to.equal(false);
        expect(await filesWith(join(gateway.folder, "data"), form)).to.deep.equal([]);
      }
    }
  });
});
