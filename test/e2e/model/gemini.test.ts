import { expect } from "chai";
import fc from "fast-check";
import { scripts } from "../../fixture/model-provider.ts";
import { answerEvents, type ModelReply } from "../../fixture/model-reply.ts";
import { until } from "../../support/event-stream.ts";
import { PackFolders } from "../../support/policy-pack.ts";
import { roundsOf } from "../../support/rounds.ts";
import { askGemini, codeOf, type GeminiAsked, openGemini, readGemini } from "./gemini-ask.ts";
import { halvesOf, secret, writeMarker } from "./leak.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

const rules = `
  - id: open.not-asked
    title: The word is not said to a model
    decision: block
    severity: high
    risk: 80
    match: { phase: input, protocol: model }
    when: args.messages.exists(m, string(m.content).contains("forbidden"))
    message: the word is not said
  - id: open.not-answered
    title: The word is not said by a model
    decision: block
    severity: high
    risk: 80
    match: { phase: output, protocol: model }
    when: has(output.choices) && string(output.choices[0].message.content).contains("forbidden")
    message: the word is not said
  - id: open.ask-first
    title: Somebody is asked first
    decision: review
    severity: low
    risk: 10
    match: { phase: input, protocol: model }
    when: args.messages.exists(m, string(m.content).contains("please review"))
    message: asked for review
`;
const models = ["chat-model", "messages-model", "responses-model"] as const;
const streams = [undefined, "sse", "array"] as const;
const reply: ModelReply = { text: "It is sunny.", calls: [{ name: "weather", arguments: { city: "Zürich" } }] };
const tools = [{ functionDeclarations: [{ name: "weather", parameters: { type: "OBJECT" } }] }];

describe("the Gemini API", () => {
  let world: ModelWorld;
  before(async () => {
    world = await openModelWorld({ rules });
  });
  after(() => world.stop());
  beforeEach(() => {
    world.provider.script = scripts.answers(reply);
  });

  /** What the step sends to the providers. */
  const sentBy = async (step: () => Promise<unknown>): Promise<number> => {
    const before = world.provider.calls.length;
    await step();
    return world.provider.calls.length - before;
  };
  const each = (title: string, check: (asked: GeminiAsked) => Promise<void>): void => {
    for (const model of models) {
      for (const stream of streams) {
        it(`${title}: ${model}, ${stream ?? "whole"}`, () =>
          check({ model, ...(stream === undefined ? {} : { stream }) }));
      }
    }
  };

  each("answers with text, calls, the reason of the end and the usage", async (asked) => {
    const told = await askGemini(world, { ...asked, body: { tools } });
    expect(told.status).to.equal(200);
    expect(told.text).to.equal(reply.text);
    expect(told.calls.map((call) => [call?.name, call?.args])).to.deep.equal([["weather", { city: "Zürich" }]]);
    expect(told.finish).to.equal("STOP");
    expect(told.usage).to.deep.equal({ promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 });
    if (asked.stream !== undefined) expect(told.items.length).to.be.above(3);
    const type = asked.stream === "sse" ? "text/event-stream" : "application/json";
    expect(told.headers.get("content-type")).to.match(new RegExp(`^${type}`));
    const record = (await world.records()).at(-1);
    expect(record).to.include({ kind: "outcome", effect: "success" });
    expect(record?.action).to.include({ protocol: "model", tool: "chat.completions", capability: "generate" });
  });

  each("tells the model what its calls came to", async (asked) => {
    const first = await askGemini(world, { ...asked, body: { tools } });
    const [call] = first.calls;
    world.provider.script = scripts.answers({ text: "Take a hat." });
    const told = await askGemini(world, {
      ...asked,
      body: {
        tools,
        contents: [
          { role: "user", parts: [{ text: "weather?" }] },
          ...first.items.flatMap((item) => item.candidates?.map(({ content }) => content) ?? []),
          {
            role: "user",
            parts: [{ functionResponse: { id: call?.id, name: call?.name, response: { output: "sun" } } }],
          },
        ],
      },
    });
    expect(told.text).to.equal("Take a hat.");
    const sent = world.provider.calls.at(-1)?.text ?? "";
    expect(sent)
      .to.match(/"(?:content|output)":"sun"/)
      .and.include(String(call?.id));
  });

  each("refuses what policy blocks, with our code and the request's id, and asks no provider", async (asked) => {
    const sent = await sentBy(async () => {
      const told = await askGemini(world, { ...asked, text: "say the forbidden word" });
      expect(told.status).to.equal(403);
      expect(told.error).to.include({ code: 403, status: "PERMISSION_DENIED" });
      expect(told.error?.message).to.include("the word is not said");
      expect(codeOf(told.error)).to.equal("policy_blocked");
      expect(told.raw).to.include(String(told.headers.get("request-id")));
      expect(told.headers.get("x-should-retry")).to.equal("false");
    });
    expect(sent).to.equal(0);
  });

  each("holds what has to be reviewed, and serves the same request once it is approved, once", async (asked) => {
    const held = { ...asked, text: `please review ${asked.model} ${asked.stream}` };
    const sent = await sentBy(async () => {
      const told = await askGemini(world, held);
      expect([told.status, codeOf(told.error)]).to.deep.equal([403, "approval_required"]);
      const [, id] = /Approval (apr_[0-9a-f]{32}) is pending/.exec(told.error?.message ?? "") ?? [];
      const approved = await fetch(`${world.gateway.adminUrl}/admin/v1/approvals/${id}/approve`, {
        method: "POST",
        headers: { "x-api-key": world.keys.operator, "content-type": "application/json" },
        body: "{}",
      });
      expect(approved.status).to.equal(200);
    });
    expect(sent).to.equal(0);
    expect(await sentBy(async () => expect((await askGemini(world, held)).status).to.equal(200))).to.equal(1);
    expect(await sentBy(async () => expect((await askGemini(world, held)).status).to.equal(403))).to.equal(0);
  });

  each("withholds an answer that policy blocks, whole or half-way", async (asked) => {
    world.provider.script = scripts.answers({ text: `${"well, ".repeat(100)} the forbidden word` });
    const told = await askGemini(world, asked);
    expect(told.error).to.include({ code: 403, status: "PERMISSION_DENIED" });
    expect(codeOf(told.error)).to.equal("policy_blocked");
    expect(told.raw).to.not.include("forb");
    expect(told.status).to.equal(asked.stream === undefined ? 403 : 200);
    expect(told.finish).to.equal(undefined);
    if (asked.stream !== undefined) expect(told.text).to.match(/^(well, )+/);
    // Google's client looks for the error behind the last event.
    if (asked.stream === "sse")
      expect(JSON.parse(told.raw.split("\n\n").at(-1) ?? "")).to.deep.equal({ error: told.error });
    expect((await world.records()).at(-1)).to.include({ kind: "outcome" });
  });

  each("passes the provider's refusal in its own envelope", async (asked) => {
    world.provider.script = scripts.says(429, undefined, { "retry-after": "70" });
    const told = await askGemini(world, asked);
    expect(told.status).to.equal(429);
    expect(told.error).to.deep.include({ code: 429, status: "RESOURCE_EXHAUSTED", message: "status 429" });
    expect(told.headers.get("retry-after")).to.equal("70");
  });

  each("frees the provider at once where its client aborts", async (asked) => {
    const [calls, abort] = [world.provider.calls.length, new AbortController()];
    world.provider.script = (response, call) => {
      const events = answerEvents(call.api, { text: "word ".repeat(2_000) });
      return asked.stream === undefined ? scripts.stalls()(response, call) : scripts.streams(events, 5)(response, call);
    };
    const opened = openGemini(world, { ...asked, signal: abort.signal });
    if (asked.stream === undefined) opened.catch(() => undefined);
    else await (await opened).body?.getReader().read();
    const call = await until(() => world.provider.calls[calls]);
    abort.abort();
    await until(() => call.brokenAtMs);
    const last = await until(async () => {
      const record = (await world.records()).at(-1);
      return record?.kind === "outcome" && record;
    });
    expect(last).to.include({ effect: "unknown", reason: "CANCELLED" });
  });

  for (const stream of ["sse", "array"] as const) {
    const faults = {
      dies: [(events: readonly string[]) => scripts.dies(events), "provider_unavailable", 502],
      "is cut short": [(events: readonly string[]) => scripts.streams(events), "provider_invalid", 502],
    } as const;
    for (const [what, [make, code, status]] of Object.entries(faults)) {
      it(`ends with an error where the stream of a provider ${what}: ${stream}`, async () => {
        const events = answerEvents("chat", { text: "word ".repeat(2_000) });
        world.provider.script = make(events.slice(0, 200));
        const told = await askGemini(world, { stream });
        expect(told.text).to.match(/^word /);
        expect(told.error).to.include({ code: status, status: "UNAVAILABLE" });
        expect(codeOf(told.error)).to.equal(code);
        expect(told.finish).to.equal(undefined);
      });
    }

    it(`ends with the error of a provider where its stream does: ${stream}`, async () => {
      const error = 'data: {"error":{"message":"overloaded","type":"server_error"}}\n\n';
      world.provider.script = scripts.streams([...answerEvents("chat", { text: "one two" }).slice(0, 2), error]);
      const told = await askGemini(world, { stream });
      expect(told.error).to.include({ code: 500, message: "overloaded" });
      expect(told.finish).to.equal(undefined);
      if (stream === "sse") expect(told.raw.endsWith(JSON.stringify({ error: told.error }))).to.equal(true);
    });

    it(`refuses arguments that are no JSON before policy and client see them: ${stream}`, async () => {
      const events = answerEvents("chat", { text: "x", calls: [{ name: "f", arguments: {} }] });
      world.provider.script = scripts.streams(
        events.map((event) => event.replace('"arguments":"{}"', '"arguments":"{"')),
      );
      const told = await askGemini(world, { stream, body: { tools } });
      expect(codeOf(told.error)).to.equal("model_untranslatable");
      expect(told.calls).to.deep.equal([]);
      expect((await world.records()).at(-1)).to.include({ kind: "outcome", effect: "unknown" });
    });
  }

  it("shows the model's thinking to those who ask for it", async () => {
    world.provider.script = scripts.streams([
      'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"reasoning_content":"Hm."}}]}\n\n',
      'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"Yes."},"finish_reason":"stop"}]}\n\n',
      "data: [DONE]\n\n",
    ]);
    const generationConfig = { thinkingConfig: { includeThoughts: true, thinkingBudget: 128 } };
    const shown = await askGemini(world, { stream: "sse", body: { generationConfig } });
    expect(shown.items.flatMap(({ candidates }) => candidates?.[0]?.content.parts ?? [])).to.deep.include({
      text: "Hm.",
      thought: true,
    });
    expect((await askGemini(world, { stream: "sse" })).text).to.equal("Yes.");
  });

  it("names the hints that it drops in the log, once", async () => {
    const hints = { generationConfig: { topK: 3 }, safetySettings: [] };
    for (let round = 0; round < 2; round++) expect((await askGemini(world, { body: hints })).status).to.equal(200);
    const { gateway } = world;
    const lines = `${gateway.stdout()}${gateway.stderr()}`
      .split("\n")
      .filter((line) => line.includes("request_hints_dropped"));
    for (const hint of ["generationConfig.topK", "safetySettings"]) {
      expect(lines.filter((line) => line.includes(hint))).to.have.length(1);
    }
    const sent = world.provider.calls
      .slice(-2)
      .map(({ text }) => text)
      .join("");
    expect(sent).to.not.match(/topK|top_k|safety/);
  });

  it("is served under `/v1` too, and with the key as other APIs take it", async () => {
    expect((await askGemini(world, { version: "v1" })).text).to.equal(reply.text);
    for (const headers of [{ "x-api-key": world.keys.agent }, { authorization: `Bearer ${world.keys.agent}` }]) {
      const response = await fetch(`${world.gateway.url}/v1beta/models/chat-model:generateContent`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({ contents: [{ parts: [{ text: "x" }] }] }),
      });
      expect(response.status).to.equal(200);
    }
  });

  const get = async (
    path: string,
    key = world.keys.agent,
  ): Promise<{ status: number; body: Record<string, unknown> }> => {
    const response = await fetch(world.gateway.url + path, { headers: { "x-goog-api-key": key } });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };

  it("lists the models, and shows each", async () => {
    const shown = {
      name: "models/chat-model",
      version: "001",
      displayName: "chat-model",
      supportedGenerationMethods: ["generateContent", "streamGenerateContent", "countTokens"],
    };
    for (const path of ["/v1beta/models", "/v1beta/models?pageSize=10", "/v1/models"]) {
      const { body } = await get(path);
      expect((body.models as readonly { readonly name: string }[]).map(({ name }) => name)).to.deep.equal([
        "models/chat-model",
        "models/messages-model",
        "models/responses-model",
        "models/mock",
      ]);
      expect((body.models as readonly unknown[])[0]).to.deep.equal(shown);
    }
    expect(await get("/v1beta/models/chat-model")).to.deep.equal({ status: 200, body: shown });
    const unknown = await get("/v1beta/models/chat-modle");
    expect(unknown.status).to.equal(404);
    expect(unknown.body).to.have.nested.property("error.status", "NOT_FOUND");
    expect(unknown.body).to.have.nested.property("error.message").that.includes("chat-model");
  });

  it("counts the tokens of a request, given itself or as `generateContentRequest`", async () => {
    const count = async (body: object): Promise<unknown> => {
      const response = await fetch(`${world.gateway.url}/v1beta/models/chat-model:countTokens`, {
        method: "POST",
        headers: { "x-goog-api-key": world.keys.agent, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      return response.json();
    };
    const contents = [{ role: "user", parts: [{ text: "How is the weather?" }] }];
    const counted = (await count({ contents })) as { readonly totalTokens: number };
    expect(counted.totalTokens).to.be.above(5);
    expect(await count({ generateContentRequest: { model: "models/chat-model", contents } })).to.deep.equal(counted);
    expect(await count({ generateContentRequest: { model: "models/other", contents } })).to.have.nested.property(
      "error.status",
      "INVALID_ARGUMENT",
    );
    expect(await sentBy(() => count({ contents }))).to.equal(0);
  });

  const post = async (path: string, body: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> =>
    fetch(world.gateway.url + path, {
      method: "POST",
      headers: { "x-goog-api-key": world.keys.agent, "content-type": "application/json", ...headers },
      body,
    });
  const good = '{"contents":[{"parts":[{"text":"x"}]}]}';
  const path = "/v1beta/models/chat-model:generateContent";
  const bad: Readonly<Record<string, readonly [string, string, number, string]>> = {
    "malformed JSON": [path, "{not json", 400, "malformed_json"],
    "a name twice": [path, '{"contents":[],"contents":[]}', 400, "malformed_json"],
    "a depth of 10,000": [path, `{"contents":${"[".repeat(10_000)}${"]".repeat(10_000)}}`, 400, "json_bound"],
    "a list": [path, `[${good}]`, 400, "invalid_request"],
    "no contents": [path, "{}", 400, "invalid_request"],
    "`__proto__` beside them": [path, good.replace("{", '{"__proto__":{"a":1},'), 400, "model_untranslatable"],
    "another model in the body": [path, good.replace("{", '{"model":"models/x",'), 400, "invalid_request"],
    "`stream` in the body": [path, good.replace("{", '{"stream":true,'), 400, "model_untranslatable"],
    "a search of the provider's": [path, good.replace("{", '{"tools":[{"googleSearch":{}}],'), 400, "tools_disabled"],
    "tools that are no list": [path, good.replace("{", '{"tools":{"googleSearch":{}},'), 400, "invalid_request"],
    "an unknown model": [path.replace("chat-model", "chat-modle"), good, 404, "model_not_found"],
    "another method": [path.replace("generateContent", "embedContent"), good, 404, "not_found"],
    "no method": ["/v1beta/models/chat-model", good, 404, "not_found"],
    "another way to stream": [`${path}?alt=proto`, good, 400, "invalid_request"],
    "two ways to stream": [`${path}?alt=sse&alt=json`, good, 400, "invalid_request"],
    "a path that is not served": ["/v1beta/files", good, 404, "not_found"],
  };
  for (const [what, [target, body, status, code]] of Object.entries(bad)) {
    it(`refuses ${what} in its own envelope, and neither sends nor records anything`, async () => {
      const records = (await world.records()).length;
      const sent = await sentBy(async () => {
        const told = await readGemini(await post(target, body));
        expect([told.status, codeOf(told.error)]).to.deep.equal([status, code]);
        expect(told.error?.code).to.equal(status);
        expect(told.error?.status).to.equal(status === 404 ? "NOT_FOUND" : "INVALID_ARGUMENT");
      });
      expect(sent).to.equal(0);
      expect((await world.records()).length).to.equal(records);
    });
  }

  it("takes no key from a URL, beside one in a header or alone, and says so", async () => {
    for (const key of [world.keys.agent, ""]) {
      const headers: Record<string, string> = { "content-type": "application/json" };
      if (key !== "") headers["x-goog-api-key"] = key;
      const response = await fetch(`${world.gateway.url}${path}?key=${world.keys.agent}`, {
        method: "POST",
        headers,
        body: good,
      });
      const told = await readGemini(response);
      expect([told.status, told.error?.status]).to.deep.equal([401, "UNAUTHENTICATED"]);
      expect(told.error?.message).to.include("got one in the URL");
      expect(told.raw).to.not.include(world.keys.agent);
    }
    const { gateway } = world;
    expect(gateway.stdout() + gateway.stderr()).to.not.include(world.keys.agent);
    const wrong = await readGemini(await post(path, good, { "x-goog-api-key": "wrong" }));
    expect([wrong.status, wrong.error?.status]).to.deep.equal([401, "UNAUTHENTICATED"]);
  });

  it("names what the API of a provider cannot do by the member of this API", async () => {
    const settings = [
      ["messages-model", { responseMimeType: "application/json" }],
      ["messages-model", { seed: 3 }],
      ["responses-model", { stopSequences: ["END"] }],
    ] as const;
    for (const [model, generationConfig] of settings) {
      const told = await askGemini(world, { model, body: { generationConfig } });
      expect(told.error?.message).to.include(`\`generationConfig.${Object.keys(generationConfig)[0]}\``);
      expect((await askGemini(world, { body: { generationConfig } })).status).to.equal(200);
    }
  });

  it("sends no member to a provider that was not judged, whatever stands beside those of the API", async () => {
    const mark = "not-judged";
    const places: readonly ((more: object) => object)[] = [
      (more) => ({ ...more }),
      (more) => ({ contents: [{ parts: [{ text: "x" }], ...more }] }),
      (more) => ({ contents: [{ parts: [{ text: "x", ...more }] }] }),
      (more) => ({ systemInstruction: { parts: [{ text: "x" }], ...more } }),
      (more) => ({ generationConfig: more }),
      (more) => ({ generationConfig: { thinkingConfig: more } }),
      (more) => ({ safetySettings: [more] }),
      (more) => ({ tools: [{ functionDeclarations: [], ...more }] }),
      (more) => ({ tools: [{ functionDeclarations: [{ name: "f", ...more }] }] }),
      (more) => ({ toolConfig: more }),
    ];
    const before = world.provider.calls.length;
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...places), fc.string(), fc.jsonValue(), async (place, name, value) => {
        const body = place({ [`${mark}-${name}`]: [mark, value] });
        await askGemini(world, {
          body: body as Record<string, unknown>,
          headers: { tracestate: `a=${mark}`, "x-goog-user-project": mark },
        });
      }),
      { numRuns: roundsOf(30, 300) },
    );
    for (const call of world.provider.calls.slice(before)) {
      expect(call.text + JSON.stringify(call.headers)).to.not.include(mark);
    }
  });
});

describe("a secret in an answer of the Gemini API that policy redacts", () => {
  const folders = new PackFolders();
  let world: ModelWorld;
  before(async () => {
    const marker = await writeMarker(folders);
    world = await openModelWorld({ policy: `plugins: [{ path: "${marker}", phases: [output] }]` });
  });
  after(async () => {
    await world.stop();
    await folders.remove();
  });

  const around = (what: string): string => `${"é🔑 ".repeat(100)}${what} and so on${" and on".repeat(60)}`;
  const replies: Readonly<Record<string, (what: string) => ModelReply>> = {
    "the text": (what) => ({ text: around(what) }),
    "the arguments of a function": (what) => ({
      text: "Well.",
      calls: [{ name: "send", arguments: { body: around(what) } }],
    }),
  };
  for (const [what, make] of Object.entries(replies)) {
    for (const model of models) {
      for (const stream of streams) {
        it(`is not in ${what}, cut anywhere: ${model}, ${stream ?? "whole"} [S59, S60]`, async () => {
          const marked = make("[mark]");
          for (const parts of stream === undefined ? [[secret]] : halvesOf(secret)) {
            world.provider.next((response, call) => {
              if (stream === undefined) return scripts.answers(make(secret))(response, call);
              const events = answerEvents(call.api, make(secret), (text) => {
                const at = text.indexOf(secret);
                return at === -1 ? [text] : [text.slice(0, at), ...parts, text.slice(at + secret.length)];
              });
              return scripts.streams(events)(response, call);
            });
            const told = await askGemini(world, { model, ...(stream === undefined ? {} : { stream }) });
            expect(told.text, parts.join("|")).to.equal(marked.text);
            expect(told.calls.map((call) => call?.args)).to.deep.equal(
              (marked.calls ?? []).map((call) => call.arguments),
            );
            expect(told.raw).to.not.include(secret);
          }
        });
      }
    }
  }
});

describe("functions of the Gemini API", () => {
  for (const setting of ["off", "client", "all"]) {
    it(`are passed with \`tool_passthrough: ${setting}\`, but for those that a provider runs`, async () => {
      const listed = setting === "all" ? "\n  provider_tools: [codeExecution]" : "";
      const world = await openModelWorld({ settings: `tool_passthrough: ${setting}${listed}` });
      try {
        expect((await askGemini(world, { body: { tools } })).status).to.equal(200);
        const before = world.provider.calls.length;
        for (const name of ["googleSearch", "google_search", "urlContext", "codeExecution", "someDay"]) {
          const told = await askGemini(world, { body: { tools: [...tools, { [name]: {} }] } });
          expect(told.status, name).to.equal(400);
          expect(told.error?.message).to.include(name);
          // No API of a provider has it, listed or not.
          const code = setting === "all" && name === "codeExecution" ? "model_untranslatable" : "tools_disabled";
          expect(codeOf(told.error)).to.equal(code);
        }
        expect(world.provider.calls.length).to.equal(before);
      } finally {
        await world.stop();
      }
    });
  }
});
