import { join } from "node:path";
import { expect } from "chai";
import type { ModelApi } from "../../../core/action/model-api.ts";
import { type Script, scripts } from "../../fixture/model-provider.ts";
import { answerEvents, answerOf, type ModelReply } from "../../fixture/model-reply.ts";
import { formsOf } from "../../support/canary.ts";
import { filesWith } from "../../support/disk-search.ts";
import { PackFolders } from "../../support/policy-pack.ts";
import { askModel, type Told } from "./ask.ts";
import { errorOf } from "./error-shape.ts";
import { halvesOf, secret, tenthsOf, thirdsOf, writeMarker } from "./leak.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

const apis = ["chat", "messages", "responses"] as const;
type Parts = readonly string[];

/** Texts of an answer that may hold the secret, each with a text around it that is longer than what is held back. */
const head = "é🔑 ".repeat(100);
const tail = ` and so on${" and on".repeat(60)}`;
const around = (what: string): string => head + what + tail;
const replies: Readonly<Record<string, (what: string) => ModelReply>> = {
  "the text": (what) => ({ text: around(what) }),
  "a tool's arguments": (what) => ({ text: "Well.", calls: [{ name: "send", arguments: { body: around(what) } }] }),
};
const refusal = (what: string): ModelReply => ({ refusal: around(what) });

/** Streams an answer with the secret, cut into these parts; all that is around it comes in two. */
function streams(reply: ModelReply, parts: Parts): Script {
  return (response, call) => {
    const events = answerEvents(call.api, reply, (text) => {
      const at = text.indexOf(secret);
      return at === -1 ? [text] : [text.slice(0, at), ...parts, text.slice(at + secret.length)];
    });
    return scripts.streams(events)(response, call);
  };
}

describe("a secret in an answer of a model", () => {
  const folders = new PackFolders();
  let marker: string;
  before(async () => {
    marker = await writeMarker(folders);
  });
  after(() => folders.remove());

  describe("that policy redacts", () => {
    let world: ModelWorld;
    before(async () => {
      world = await openModelWorld({ policy: `plugins: [{ path: "${marker}", phases: [output] }]` });
    });
    after(() => world.stop());

    for (const [what, make] of Object.entries(replies)) {
      for (const provider of apis) {
        for (const api of apis) {
          const pair = `${what}, ${provider} to a client of ${api}`;
          it(`is not in what is streamed, cut anywhere into two: ${pair} [S59, S60]`, async () => {
            for (const parts of halvesOf(secret)) await expectMarked(world, { api, provider, parts, make });
          });

          it(`is not in an answer that comes whole: ${pair} [S59]`, async () => {
            world.provider.next(scripts.answers(make(secret)));
            const told = await askModel(world, { api, model: `${provider}-model` });
            expect(meaningOf(api, told)).to.deep.equal(meaningOf(api, wholeTold(api, make("[mark]"))));
          });
        }
      }
    }

    it("is not in a refusal, streamed or whole [S59, S60]", async () => {
      for (const api of ["chat", "responses"] as const) {
        for (const parts of halvesOf(secret)) {
          await expectMarked(world, { api, provider: api, parts, make: refusal });
        }
      }
      world.provider.next(scripts.answers(refusal(secret)));
      expect((await askModel(world)).text)
        .to.include("[mark]")
        .and.not.include(secret);
    });

    for (const api of apis) {
      it(`is not in what is streamed, cut anywhere into three or into ten: ${api} [S60]`, async () => {
        for (const parts of [...thirdsOf(secret), ...tenthsOf(secret)]) {
          await expectMarked(world, { api, provider: api, parts, make: replies["the text"] as typeof refusal });
        }
      });
    }

    it("is not in the evidence, in a log or on the disk, and the record says what was redacted [S59]", async () => {
      const last = (await world.records()).at(-1);
      expect(last).to.include({ kind: "outcome", effect: "success" });
      const told = last?.evaluation?.policies.flatMap(({ redactions }) => redactions ?? []);
      expect(told).to.deep.equal([{ rule: "canary-mark.found", count: 1 }]);
      const { gateway } = world;
      for (const form of formsOf(secret)) {
        expect((gateway.stdout() + gateway.stderr()).includes(form)).to.equal(false);
        expect(await filesWith(join(gateway.folder, "data"), form)).to.deep.equal([]);
      }
    });
  });

  describe("that policy blocks", () => {
    const rules = `
  - id: open.canary
    title: No canary leaves
    decision: block
    severity: high
    risk: 90
    match: { phase: output, protocol: model }
    when: (has(output.choices) && output.choices.exists(c, has(c.message.content) && c.message.content.contains("${secret}"))) || (has(output.content) && output.content.exists(c, has(c.text) && c.text.contains("${secret}"))) || (has(output.output) && leaves(output.output).exists(l, l.text.contains("${secret}")))
    message: no canary leaves
`;
    let world: ModelWorld;
    before(async () => {
      world = await openModelWorld({ rules });
    });
    after(() => world.stop());

    for (const provider of apis) {
      for (const api of apis) {
        it(`ends the stream with no part of it sent: ${provider} to a client of ${api} [S59, S60]`, async () => {
          for (const parts of halvesOf(secret)) {
            world.provider.next(streams({ text: around(secret) }, parts));
            const told = await askModel(world, { api, stream: true, model: `${provider}-model` });
            expect(errorOf(api, told)).to.include({ code: "policy_blocked" });
            // No letter of it can be told from the text before it, which is all there is.
            expect(head.startsWith(textOf(api, told))).to.equal(true);
          }
          expect((await world.records()).at(-1)).to.include({ kind: "outcome", effect: "unknown" });
        });

        it(`withholds the answer that is asked for again without a stream: ${provider}, ${api} [S59]`, async () => {
          world.provider.next(scripts.answers({ text: around(secret) }));
          const told = await askModel(world, { api, model: `${provider}-model` });
          expect(told.status).to.equal(403);
          expect(errorOf(api, told)).to.include({ code: "policy_blocked" });
          expect(told.text).to.not.include(secret);
        });
      }
    }
  });

  describe("reaches the client", () => {
    const flips: Readonly<Record<string, (path: string) => Parameters<typeof openModelWorld>[0]>> = {
      "where the policy is on trial": (path) => ({
        policy: `plugins: [{ path: "${path}", phases: [output], mode: shadow }]`,
      }),
      "where policy reads requests alone": (path) => ({ policy: `plugins: [{ path: "${path}", phases: [input] }]` }),
      "where nothing is held back": (path) => ({
        policy: `plugins: [{ path: "${path}", phases: [output] }]`,
        settings: "holdback_bytes: 0",
      }),
    };
    for (const [title, options] of Object.entries(flips)) {
      it(title, async () => {
        const world = await openModelWorld(options(marker));
        try {
          for (const api of apis) {
            world.provider.next(streams({ text: around(secret) }, halvesOf(secret)[10] as Parts));
            const told = await askModel(world, { api, stream: true });
            expect(textOf(api, told)).to.equal(around(secret));
          }
        } finally {
          await world.stop();
        }
      });
    }
  });
});

interface Way {
  readonly api: ModelApi;
  readonly provider: ModelApi;
  readonly parts: Parts;
  readonly make: (what: string) => ModelReply;
}

/** The client gets the text around the secret and a mark in its place, to the letter. */
async function expectMarked(world: ModelWorld, { api, provider, parts, make }: Way): Promise<void> {
  world.provider.next(streams(make(secret), parts));
  const told = await askModel(world, { api, stream: true, model: `${provider}-model` });
  const expected = make("[mark]");
  const read = readStream(api, told.text);
  const [call] = expected.calls ?? [];
  expect(told.text, parts.join("|")).to.not.include(secret);
  expect(read.text, parts.join("|")).to.equal((expected.text ?? "") + (expected.refusal ?? ""));
  expect(read.input === "" ? undefined : JSON.parse(read.input), parts.join("|")).to.deep.equal(call?.arguments);
}

function textOf(api: ModelApi, told: Told): string {
  return readStream(api, told.text).text;
}

interface Delta {
  readonly content?: string | null;
  readonly refusal?: string | null;
  readonly text?: string;
  readonly partial_json?: string;
  readonly arguments?: string;
  readonly tool_calls?: readonly { readonly function?: { readonly arguments?: string } }[];
}

/** What a client puts together of a stream. */
function readStream(api: ModelApi, stream: string): { readonly text: string; readonly input: string } {
  if (api === "responses") return readResponses(stream);
  const deltas = [...stream.matchAll(/^data: (\{.*)$/gm)].flatMap(([, data = ""]): readonly Delta[] => {
    const event = JSON.parse(data) as { delta?: Delta; choices?: readonly { delta: Delta }[] };
    return api === "messages" ? [event.delta ?? {}] : (event.choices ?? []).map(({ delta }) => delta);
  });
  const input = deltas.map((delta) => delta.partial_json ?? delta.tool_calls?.[0]?.function?.arguments ?? "");
  const text = deltas.map((delta) => (delta.content ?? "") + (delta.refusal ?? "") + (delta.text ?? ""));
  return { text: text.join(""), input: input.join("") };
}

interface ResponsesEvent {
  readonly type: string;
  readonly delta?: string;
  readonly response?: { readonly output: readonly ResponsesItem[] };
}

interface ResponsesItem {
  readonly content?: readonly { readonly text?: string; readonly refusal?: string }[];
  readonly arguments?: string;
}

/** What the deltas of a stream add up to. Fails where the last event says otherwise. */
function readResponses(stream: string): { readonly text: string; readonly input: string } {
  const events = [...stream.matchAll(/^data: (\{.*)$/gm)].map(([, data = ""]) => JSON.parse(data) as ResponsesEvent);
  const said = (pattern: RegExp): string =>
    events
      .filter(({ type }) => pattern.test(type))
      .map(({ delta }) => delta)
      .join("");
  const read = { text: said(/^response\.(output_text|refusal)\.delta$/), input: said(/arguments\.delta$/) };
  const last = events.at(-1);
  if (last?.type !== "response.completed") return read;
  const output = last.response?.output ?? [];
  const text = output.flatMap(({ content = [] }) => content.map((part) => part.text ?? part.refusal)).join("");
  expect({ text, input: output.map((item) => item.arguments ?? "").join("") }).to.deep.equal(read);
  return read;
}

function wholeTold(api: ModelApi, reply: ModelReply): Pick<Told, "json"> {
  return { json: () => answerOf(api, reply) as ReturnType<Told["json"]> };
}

/** The text and what is called with what, of a whole answer. */
function meaningOf(api: ModelApi, told: Pick<Told, "json">): readonly unknown[] {
  const body = told.json() as Record<string, unknown>;
  if (api === "messages") {
    const content = body.content as readonly { readonly text?: string; readonly input?: unknown }[];
    return content.map(({ text, input }) => text ?? input);
  }
  if (api === "responses") {
    return (body.output as readonly ResponsesItem[]).flatMap(({ content = [], arguments: given }) =>
      given === undefined ? content.map(({ text }) => text) : [JSON.parse(given) as unknown],
    );
  }
  const [choice] = body.choices as readonly {
    readonly message: { readonly content: string; readonly tool_calls?: Delta["tool_calls"] };
  }[];
  const calls = choice?.message.tool_calls ?? [];
  return [choice?.message.content, ...calls.map((call) => JSON.parse(call.function?.arguments ?? "") as unknown)];
}
