import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { type ModelProvider, type Script, scripts } from "../../fixture/model-provider.ts";
import { answerOf } from "../../fixture/model-reply.ts";
import { contentOf, FleetWorld, httpConfig, providerKey } from "./fixture.ts";

let world: FleetWorld;
let provider: ModelProvider;

/** In each suite, because a hook outside of any runs for the tests of every file. */
function inOwnWorld(): void {
  beforeEach(async () => {
    world = new FleetWorld();
    provider = await world.provider();
  });
  afterEach(() => world.close());
}

describe("a whole answer", () => {
  inOwnWorld();

  it("comes with its exact bytes where nothing was translated", async () => {
    world.open([httpConfig(provider)]);
    const bytes = `{ "choices" : [],\n"b":1.50, "a":"\\u00fc" }`;
    provider.next(scripts.says(200, bytes));
    const { raw, body } = await world.whole();
    expect(Buffer.from(raw ?? []).toString()).to.equal(bytes);
    expect(body).to.deep.equal({ choices: [], b: 1.5, a: "ü" });
  });

  it("comes in the client's API, and without bytes, where it was translated", async () => {
    world.open([httpConfig(provider, { type: "anthropic" })]);
    provider.next(scripts.answers({ text: "Hi there." }));
    const { raw, body } = await world.whole();
    expect(raw).to.equal(undefined);
    expect(body).to.have.nested.property("choices[0].message.content", "Hi there.");
    expect(body.created).to.be.closeTo(Date.now() / 1000, 60);
  });
});

describe("a long answer", () => {
  inOwnWorld();

  const text = "ź of a long answer ".repeat(20_000);
  const bytes = Buffer.from(JSON.stringify(answerOf("chat", { text })));

  it("is read over several turns, and is what a short one is [S76]", async () => {
    world.open([httpConfig(provider)]);
    provider.next(scripts.says(200, bytes));
    const { raw, body } = await world.whole();
    expect(Buffer.from(raw ?? []).equals(bytes)).to.equal(true);
    expect(contentOf(body)).to.equal(text);
    // Before the scan, and at its end.
    expect(world.pauses).to.be.at.least(2);
  });

  for (const [name, ends, message] of [
    ["no JSON", "", /malformed JSON/],
    ["a key twice", ',"choices":[]}', /duplicate key/],
    ["no object", "]", /expected a JSON object/],
    ["invalid UTF-8", Buffer.from([0x22, 0xff, 0x22]), /UTF-8/],
  ] as const) {
    it(`is PROVIDER_INVALID where it is ${name}`, async () => {
      world.open([httpConfig(provider)]);
      const begins = name === "no object" ? `["${"x".repeat(300_000)}"` : bytes.subarray(0, -1);
      provider.next(scripts.says(200, Buffer.concat([Buffer.from(begins), Buffer.from(ends)])));
      const { error } = await world.failed();
      expect(error.code).to.equal("PROVIDER_INVALID");
      expect(error.message).to.match(message);
    });
  }
});

describe("an answer that is none", () => {
  inOwnWorld();

  const deep = `{"choices":${"[".repeat(10_000)}${"]".repeat(10_000)}}`;
  const huge = JSON.stringify(answerOf("chat", { text: "x".repeat(2_000_000) }));
  const bomb = gzipSync(Buffer.alloc(50_000_000));
  const stream = { "content-type": "text/event-stream" };
  const table: Readonly<Record<string, readonly [Script, RegExp]>> = {
    "deeper than the bound [S17]": [scripts.says(200, deep), /at most 64 levels/],
    "longer than the bound [S19]": [scripts.says(200, huge), /at most 1048576 bytes/],
    "encoded, 50 MB of it [S19]": [scripts.says(200, bomb, { "content-encoding": "gzip" }), /without content-encoding/],
    "another type": [scripts.says(200, "<html>", { "content-type": "text/html" }), /type `application\/json`/],
    "a stream nobody asked for": [scripts.says(200, "data: {}\n\n", stream), /type `application\/json`/],
    "no JSON": [scripts.says(200, "{"), /malformed JSON/],
    "no object": [scripts.says(200, "[1]"), /expected a JSON object/],
    "invalid UTF-8": [scripts.says(200, Buffer.from([0x7b, 0xff, 0x7d])), /UTF-8/],
    "a key twice": [scripts.says(200, '{"a":1,"a":2}'), /duplicate key/],
    "the gateway's own key [S12]": [scripts.says(200, `{"a":"${providerKey}"}`), /own key/],
    "a redirect": [scripts.says(307, "", { location: "http://127.0.0.1:1/" }), /no redirect, got HTTP 307/],
  };
  for (const [name, [script, message]] of Object.entries(table)) {
    it(`is PROVIDER_INVALID: ${name}`, async () => {
      world.open([httpConfig(provider, { maxRetries: 3 })]);
      provider.next(script);
      const { error, status, body, mayFallBack } = await world.failed();
      expect(error.code).to.equal("PROVIDER_INVALID");
      expect(error.message).to.match(message);
      expect(error.message).to.not.include(providerKey);
      expect({ status, body, mayFallBack }).to.deep.equal({ status: 502, body: null, mayFallBack: true });
      expect(provider.calls, "served, so never asked again").to.have.length(1);
    });
  }

  it("leaves prototypes as they are [S18]", async () => {
    world.open([httpConfig(provider)]);
    provider.next(scripts.says(200, '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'));
    await world.whole();
    expect(({} as { polluted?: number }).polluted).to.equal(undefined);
  });
});

describe("an error of the provider's", () => {
  inOwnWorld();

  for (const status of [400, 404, 413, 422]) {
    it(`keeps its status and its words: ${status}`, async () => {
      world.open([httpConfig(provider, { maxRetries: 3 })]);
      provider.next(scripts.says(status));
      const failed = await world.failed();
      expect(failed.status).to.equal(status);
      expect(failed.error.code).to.equal("PROVIDER_REFUSED");
      expect(failed.body).to.have.nested.property("error.message", `status ${status}`);
      expect(failed).to.include({ mayFallBack: false, outcome: "error" });
      expect(provider.calls).to.have.length(1);
    });
  }

  it("is written in the client's API", async () => {
    world.open([httpConfig(provider, { type: "anthropic" })]);
    provider.next(scripts.says(404));
    const { body } = await world.failed();
    expect(body).to.have.nested.property("error.message", "status 404");
    expect(body).to.have.nested.property("error.param", null);
  });

  for (const status of [401, 402, 403, 500, 503]) {
    it(`says nothing of the gateway's own affairs: ${status}`, async () => {
      world.open([httpConfig(provider)]);
      provider.next(scripts.says(status, { error: { message: `bad key ${providerKey}` } }));
      const { error, body, ...failed } = await world.failed();
      expect(failed).to.include({ status: 502, mayFallBack: true, outcome: "error" });
      expect(error.code).to.equal("PROVIDER_UNAVAILABLE");
      expect(body).to.equal(null);
    });
  }

  for (const status of [429, 529]) {
    it(`keeps ${status}, and when to come again`, async () => {
      world.open([httpConfig(provider)]);
      provider.next(scripts.says(status, undefined, { "retry-after": "7" }));
      const { error, body, ...failed } = await world.failed();
      expect(failed).to.include({ status, mayFallBack: true, outcome: "error" });
      expect(error.code).to.equal("PROVIDER_BUSY");
      expect(error.data).to.include({ retry_after_s: 7 });
      expect(body).to.have.nested.property("error.message", `status ${status}`);
    });
  }

  it("asks nobody to wait for longer than a day", async () => {
    world.open([httpConfig(provider)]);
    provider.next(scripts.says(503, undefined, { "retry-after": "999999999" }));
    expect((await world.failed()).error.data).to.include({ retry_after_s: 86_400 });
  });

  it("never shows the provider's key, however it is escaped [S12]", async () => {
    world.open([httpConfig(provider)]);
    const escaped = [...providerKey].map((char) => `\\u00${char.charCodeAt(0).toString(16)}`).join("");
    for (const key of [providerKey, escaped]) {
      provider.next(scripts.says(400, `{"error":{"message":"key ${key} is wrong","code":"${key}"}}`));
      const { body, error } = await world.failed();
      expect(body).to.have.nested.property("error.message", "key [key] is wrong");
      expect(JSON.stringify([body, error.message, error.data, world.events])).to.not.include(providerKey);
    }
  });

  it("says no more than the status where it is a page, too long, or nothing", async () => {
    world.open([httpConfig(provider)]);
    for (const said of ["<html>", "x".repeat(100_000), "", `{"error":${"[".repeat(5_000)}`]) {
      provider.next(scripts.says(400, said, { "content-type": "text/html" }));
      const { body, status } = await world.failed();
      expect(status).to.equal(400);
      expect(body).to.have.nested.property("error.message", "the provider answered with status 400");
    }
  });
});

describe("a provider that keeps nobody's time", () => {
  inOwnWorld();

  it("has its time to the first byte, headers or not", async () => {
    world.open([httpConfig(provider, { firstByteTimeoutMs: 80, maxRetries: 3 })]);
    const headersOnly: Script = (response) =>
      response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
    for (const script of [scripts.stalls(), headersOnly]) {
      provider.next(script);
      const { error, ...failed } = await world.failed();
      expect(error.code).to.equal("PROVIDER_TIMEOUT");
      expect(failed).to.include({ status: 504, outcome: "unknown", mayFallBack: true });
    }
    expect(provider.calls, "it may have been served").to.have.length(2);
  });

  it("has its time between bytes, and in all", async () => {
    const drip: Script = (response) => {
      response.writeHead(200, { "content-type": "application/json" }).write("{");
      const timer = setInterval(() => response.write(" "), 30);
      response.once("close", () => clearInterval(timer));
    };
    const stall: Script = (response) => void response.writeHead(200, { "content-type": "application/json" }).write("{");
    world.open([httpConfig(provider, { idleTimeoutMs: 100, maxTimeoutMs: 400, firstByteTimeoutMs: 400 })]);
    for (const [script, text] of [
      [stall, "expected more within 100 ms since the last byte"],
      [drip, "expected more within 400 ms in all"],
    ] as const) {
      provider.next(script);
      expect((await world.failed()).error.detail).to.equal(text);
    }
  });
});
