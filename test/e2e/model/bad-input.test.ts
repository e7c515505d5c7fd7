import { gzipSync } from "node:zlib";
import { expect } from "chai";
import type { ModelApi } from "../../../core/action/model-api.ts";
import { maxGrowth } from "../../support/duration.ts";
import { processorMs } from "../../support/resident.ts";
import { type HeaderList, send, type WireResponse } from "../../support/wire.ts";
import { errorIn } from "./error-shape.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

const paths: Readonly<Record<Exclude<ModelApi, "responses">, string>> = {
  chat: "/v1/chat/completions",
  messages: "/v1/messages",
};
const mebibyte = 1_048_576;
const json = ["content-type", "application/json"] as const;

interface Case {
  /** Unless told, a body that is served. */
  readonly body?: string | Uint8Array;
  readonly method?: string;
  readonly target?: (path: string) => string;
  /** In the place of the key and the type. */
  readonly headers?: (key: string) => HeaderList;
  readonly status: number;
  readonly code: string;
}

const good = '{"model":"chat-model","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}';
const bad = (body: string | Uint8Array, code: string, status = 400): Case => ({ body, status, code });
const messages = (text: string): string => `{"model":"chat-model","messages":[{"role":"user","content":${text}}]}`;
const headed = (headers: (key: string) => HeaderList, status: number, code: string): Case => ({
  headers,
  status,
  code,
});

const cases: Readonly<Record<string, Case>> = {
  "malformed JSON": bad("{not json", "malformed_json"),
  "an empty body": bad("", "malformed_json"),
  "half a request": bad(good.slice(0, -4), "malformed_json"),
  "a request and more": bad(`${good}{}`, "malformed_json"),
  "a list": bad(`[${good}]`, "invalid_request"),
  null: bad("null", "invalid_request"),
  "a depth of 10,000": bad(messages("[".repeat(10_000) + "]".repeat(10_000)), "json_bound"),
  "100,000 members and more": bad(messages(`[${"1,".repeat(100_001)}1]`), "json_bound"),
  "a name twice": bad('{"model":"chat-model","model":"chat-model","messages":[]}', "malformed_json"),
  "invalid UTF-8": bad(Buffer.from(messages('"\xff"'), "latin1"), "malformed_json"),
  "a lone surrogate": bad(messages('"\\ud800"'), "malformed_json"),
  "no model": bad('{"messages":[{"role":"user","content":"x"}]}', "invalid_request"),
  "a model of 10,000 characters": bad(good.replace("chat-model", "m".repeat(10_000)), "invalid_request"),
  "`__proto__` for a model": bad(good.replace("chat-model", "__proto__"), "model_not_found", 404),
  "an unknown model": bad(good.replace("chat-model", "chat-modle"), "model_not_found", 404),
  "no messages": bad('{"model":"chat-model"}', "invalid_request"),
  "messages that are a text": bad('{"model":"chat-model","messages":"hello"}', "invalid_request"),
  "`stream` that is a text": bad(good.replace('{"model"', '{"stream":"yes","model"'), "invalid_request"),
  "10 MiB": bad(Buffer.alloc(10 * mebibyte, " "), "body_too_large", 413),
  "no key": headed(() => [json], 401, "invalid_api_key"),
  "a wrong key": headed((key) => [json, ["x-api-key", `${key}x`]], 401, "invalid_api_key"),
  "two keys": headed((key) => [json, ["x-api-key", key], ["x-api-key", key]], 400, "duplicate_header"),
  "no type": headed((key) => [["x-api-key", key]], 415, "unsupported_media_type"),
  "a form": headed(
    (key) => [
      ["x-api-key", key],
      ["content-type", "application/x-www-form-urlencoded"],
    ],
    415,
    "unsupported_media_type",
  ),
  "a compressed body": {
    ...headed((key) => [["x-api-key", key], json, ["content-encoding", "gzip"]], 415, "unsupported_media_type"),
    body: gzipSync(Buffer.alloc(50 * mebibyte, " ")),
  },
  "101 headers": headed(
    (key) => [["x-api-key", key], json, ...Array.from({ length: 101 }, (_, at): [string, string] => [`x-${at}`, "1"])],
    431,
    "headers_too_large",
  ),
  "another method": { method: "PUT", status: 405, code: "method_not_allowed" },
  "another spelling of the path": { target: (path) => `${path}/`, status: 404, code: "not_found" },
};

describe("bad input of a model request", () => {
  let world: ModelWorld;
  before(async () => {
    world = await openModelWorld();
  });
  after(() => world.stop());

  for (const api of ["chat", "messages"] as const) {
    const ask = (one: Partial<Case>): Promise<WireResponse> =>
      send(world.gateway.url, {
        method: one.method ?? "POST",
        target: (one.target ?? ((path) => path))(paths[api]),
        headers: one.headers?.(world.keys.agent) ?? [json, ["x-api-key", world.keys.agent]],
        body: one.body ?? good,
      });

    for (const [what, one] of Object.entries(cases)) {
      it(`is told in the shape of ${api}, and nothing is sent or recorded: ${what} [S17, S19]`, async () => {
        const response = await ask(one);
        const id = response.headers.get("request-id");
        expect(response.status).to.equal(one.status);
        expect(response.headers.get("content-type")).to.match(/^application\/json/);
        expect(id)
          .to.match(/^[0-9a-f-]{36}$/)
          .and.equal(response.headers.get("x-request-id"));
        expect(errorIn(api, JSON.parse(response.body), id)).to.include({ code: one.code });
        expect(world.provider.calls).to.deep.equal([]);
        expect(await world.records()).to.deep.equal([]);
      });
    }

    it(`costs no more than a few small ones, however deep it is: ${api} [S17]`, async () => {
      const costOf = async (one: Case): Promise<number> => {
        const before = await processorMs(world.gateway);
        for (let round = 0; round < 50; round++) await ask(one);
        return (await processorMs(world.gateway)) - before;
      };
      await costOf(cases["malformed JSON"] as Case);
      const small = await costOf(cases["malformed JSON"] as Case);
      expect((await costOf(cases["a depth of 10,000"] as Case)) / Math.max(small, 100)).to.be.below(maxGrowth);
    });
  }

  it("is refused by a gateway that serves what is good", async () => {
    for (const target of Object.values(paths)) {
      const headers: HeaderList = [json, ["x-api-key", world.keys.agent]];
      expect((await send(world.gateway.url, { method: "POST", target, headers, body: good })).status).to.equal(200);
    }
    expect(world.provider.calls).to.have.length(2);
  });
});
