import { gzipSync } from "node:zlib";
import { expect } from "chai";
import type { ModelApi } from "../../../core/action/model-api.ts";
import { type Script, scripts } from "../../fixture/model-provider.ts";
import { answerEvents, answerOf } from "../../fixture/model-reply.ts";
import { maxGrowth } from "../../support/duration.ts";
import { until } from "../../support/event-stream.ts";
import { recordedApi, recordedBytes, recordedNames } from "../../support/recorded-stream.ts";
import { processorMs, residentBytes } from "../../support/resident.ts";
import { askModel } from "./ask.ts";
import { errorOf } from "./error-shape.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

const mebibyte = 1_048_576;
const deep = `${"[".repeat(10_000)}${"]".repeat(10_000)}`;
const events = { "content-type": "text/event-stream" };
const apis = ["chat", "messages"] as const;

type Make = (api: ModelApi) => Script;

const long = (api: ModelApi): readonly string[] => answerEvents(api, { text: "word ".repeat(50) });
const textEvent = (api: ModelApi): string => long(api).find((event) => event.includes("word")) as string;
/** The beginning of a good stream, and then this. */
const then =
  (more: (api: ModelApi) => string): Make =>
  (api) =>
    scripts.streams([...long(api).slice(0, 10), more(api)]);
const named = (api: ModelApi, data: string): string =>
  `${api === "messages" ? "event: content_block_delta\n" : ""}data: ${data}\n\n`;

const compressedBlanks = gzipSync(Buffer.alloc(50 * mebibyte, " "));

/** What a provider may do to a stream, and how much of an answer the client may have had before. */
const streams: Readonly<Record<string, Make>> = {
  "is no JSON": then((api) => named(api, "{not json")),
  "is a text": then((api) => named(api, '"text"')),
  "has a depth of 10,000": then((api) => named(api, `{"type":"content_block_delta","choices":${deep}}`)),
  "has a name twice": then((api) => named(api, '{"type":"content_block_delta","type":"content_block_delta"}')),
  "is no UTF-8": (api) =>
    scripts.streams([...long(api).slice(0, 10), Buffer.from(named(api, '{"a":"\xff"}'), "latin1")]),
  "ends before its last event": (api) => scripts.streams(long(api).slice(0, -1)),
  "is cut inside an event": (api) => scripts.streams([...long(api).slice(0, 10), textEvent(api).slice(0, -20)]),
  "is empty": () => scripts.streams([]),
  "is of another type": (api) => scripts.says(200, long(api).join(""), { "content-type": "text/plain" }),
  "is a whole answer": (api) => scripts.says(200, answerOf(api, { text: "hello" })),
  "is compressed": (api) => scripts.says(200, gzipSync(long(api).join("")), { ...events, "content-encoding": "gzip" }),
  "is 50 MB of compressed blanks": () => scripts.says(200, compressedBlanks, { ...events, "content-encoding": "gzip" }),
  "is 50 MB of text": (api) => (response, call) =>
    scripts.streams([...long(api).slice(0, 10), ...Array(50).fill(bigEvent(api))])(response, call),
  "is one event of 50 MB": (api) => scripts.streams([named(api, " ".repeat(50 * mebibyte))]),
  "is 50 MB of comments in one event": () => scripts.streams(Array(50).fill(`: ${"x".repeat(mebibyte)}\n`)),
};

/** What a provider may do to a whole answer. */
const wholes: Readonly<Record<string, Make>> = {
  "is no JSON": () => scripts.says(200, "{not json"),
  "is a list": () => scripts.says(200, "[]"),
  "is cut": (api) => scripts.says(200, JSON.stringify(answerOf(api, { text: "hello" })).slice(0, -5)),
  "is empty": () => scripts.says(200, ""),
  "has a depth of 10,000": () => scripts.says(200, `{"choices":${deep},"content":${deep}}`),
  "has a name twice": () => scripts.says(200, '{"id":"1","id":"2"}'),
  "is no UTF-8": () => scripts.says(200, Buffer.from('{"id":"\xff"}', "latin1")),
  "is of another type": (api) => scripts.says(200, answerOf(api, {}), { "content-type": "text/html" }),
  "is a stream": (api) => scripts.streams(long(api)),
  "is compressed": () => scripts.says(200, gzipSync("{}"), { "content-encoding": "gzip" }),
  "is 50 MB of compressed blanks": () => scripts.says(200, compressedBlanks, { "content-encoding": "gzip" }),
  "is 50 MB": () => scripts.says(200, Buffer.alloc(50 * mebibyte, " ")),
  "is a redirect": () => scripts.says(307, "", { location: "/elsewhere" }),
  "is a status alone": () => scripts.says(500, ""),
};

/** Recordings with an end that leave something out, or go on after it. */
const ended = /-no-reason$|-no-start$|-after-end$|chat-late-arguments$|chat-nameless-call$/;

describe("a malformed answer of a provider", () => {
  let world: ModelWorld;
  before(async () => {
    world = await openModelWorld({ provider: "max_retries: 0\n    breaker: { failures: 1000 }" });
  });
  after(() => world.stop());

  /** Asks a provider of each API in each API. */
  function each(title: string, stream: boolean, make: Make, of: readonly ModelApi[] = apis): void {
    for (const provider of of) {
      for (const api of apis) {
        it(`${title}: ${provider} to a client of ${api} [S17, S19]`, async () => {
          world.provider.next(make(provider));
          const told = await askModel(world, { api, stream, model: `${provider}-model` });
          await expectRefused(api, told.status, errorOf(api, told));
        });
      }
    }
  }

  async function expectRefused(
    api: ModelApi,
    status: number,
    { type, code }: ReturnType<typeof errorOf>,
  ): Promise<void> {
    expect(status).to.be.oneOf([200, 502]);
    expect(type).to.equal(api === "messages" ? "api_error" : "server_error");
    expect(code).to.be.oneOf(["provider_invalid", "provider_unavailable"]);
    const [call, last] = [world.provider.calls.at(-1), (await world.records()).at(-1)];
    expect(last?.kind).to.equal("outcome");
    expect(last?.effect).to.be.oneOf(["unknown", "error"]);
    expect(call?.path).to.not.equal("/elsewhere");
    // Answered to its end, or broken off: no answer is left half-read.
    await until(() => call?.isOver === true);
  }

  for (const name of recordedNames("malformed/")) {
    const api = recordedApi(name);
    const bytes = Buffer.from(recordedBytes(name));
    const make: Make = () => scripts.streams([bytes]);
    const what = `recorded: ${name.slice("malformed/".length)}`;
    if (!ended.test(name)) each(what, true, make, [api]);
    else {
      it(`${what}: reaches a client of ${api} as far as its end, for nobody reads it differently`, async () => {
        world.provider.next(make(api));
        const told = await askModel(world, { api, stream: true });
        expect(told.text).to.not.equal("");
        expect(bytes.toString().startsWith(told.text)).to.equal(true);
        const ends = {
          chat: /\ndata: \[DONE\]\n\n$/,
          messages: /\ndata: {"type": "message_stop"}\n\n$/,
          responses: /\ndata: {"type":"response.completed".*}\n\n$/,
        };
        expect(told.text).to.match(ends[api]);
      });
    }
  }
  for (const [what, make] of Object.entries(streams)) each(`a stream that ${what}`, true, make);
  for (const [what, make] of Object.entries(wholes)) each(`an answer that ${what}`, false, make);

  it("costs no more than a few good ones, however deep it is [S17]", async () => {
    const costOf = async (make: Make): Promise<number> => {
      const before = await processorMs(world.gateway);
      for (let round = 0; round < 50; round++) {
        world.provider.next(make("chat"));
        await askModel(world);
      }
      return (await processorMs(world.gateway)) - before;
    };
    const answers: Make = () => scripts.answers({ text: "hello" });
    await costOf(answers);
    const good = await costOf(answers);
    expect((await costOf(wholes["has a depth of 10,000"] as Make)) / Math.max(good, 100)).to.be.below(maxGrowth);
  });

  it("takes no memory with it, whatever its size [S19]", async () => {
    const before = await residentBytes(world.gateway);
    let largest = 0;
    for (const make of [...Object.entries(streams), ...Object.entries(wholes)].filter(([what]) =>
      what.includes("50 MB"),
    )) {
      for (let round = 0; round < 3; round++) {
        world.provider.next(make[1]("chat"));
        await askModel(world, { stream: make[1] === streams[make[0]] });
        largest = Math.max(largest, await residentBytes(world.gateway));
      }
    }
    expect(largest - before).to.be.below(150 * mebibyte);
  });
});

function bigEvent(api: ModelApi): string {
  return textEvent(api).replace("word", "word ".repeat(40_000)).repeat(5);
}
