import { expect } from "chai";
import fc from "fast-check";
import { GatewayError } from "../../../../../core/action/error.ts";
import type { Json, JsonObject } from "../../../../../core/action/json.ts";
import { providerTools, readGeminiRequest } from "../../../../../core/provider/wire/gemini/request.ts";
import { toMessagesRequest } from "../../../../../core/provider/wire/to-messages/request.ts";

const hello = [{ role: "user", parts: [{ text: "hello" }] }];
const chatHello = [{ role: "user", content: "hello" }];

function chatOf(body: Json, stream = false): JsonObject {
  return readGeminiRequest(body, "the-model", stream).chat;
}

function faultOf(body: Json): string {
  try {
    chatOf(body);
    return "no fault";
  } catch (error) {
    if (error instanceof GatewayError) return `${error.code} ${error.detail}`;
    throw error;
  }
}

const calling = { functionCall: { name: "f", args: { a: 1 } } };
const calls = { role: "model", parts: [calling] };
const result = { functionResponse: { name: "f", response: { output: "1" } } };

describe("readGeminiRequest(body, model, stream)", () => {
  it("asks a streaming provider for the usage", () => {
    expect(chatOf({ contents: hello })).to.deep.equal({ model: "the-model", messages: chatHello });
    expect(readGeminiRequest({ contents: hello }, "the-model", false)).to.deep.include({
      showsThoughts: false,
      droppedHints: [],
    });
    expect(chatOf({ contents: hello }, true)).to.deep.equal({
      model: "the-model",
      messages: chatHello,
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  it("reads instructions, settings and tools", () => {
    const parameters = { type: "OBJECT", properties: { n: { type: "INTEGER", nullable: true } }, required: ["n"] };
    const body = {
      contents: hello,
      systemInstruction: { role: "system", parts: [{ text: "Be brief." }] },
      generationConfig: {
        temperature: 0.5,
        topP: 0.9,
        topK: 64,
        maxOutputTokens: 99,
        stopSequences: ["END"],
        seed: 3,
        presencePenalty: 0.1,
        frequencyPenalty: 0.2,
        candidateCount: 1,
        responseModalities: ["TEXT"],
        thinkingConfig: { includeThoughts: true, thinkingBudget: 512 },
      },
      tools: [
        {
          functionDeclarations: [
            { name: "f", description: "does", parameters },
            { name: "g", parametersJsonSchema: { type: "object", additionalProperties: false } },
            { name: "h" },
          ],
        },
      ],
      toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["f"] } },
      safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_NONE" }],
    };
    const read = readGeminiRequest(body, "the-model", false);
    expect(read.showsThoughts).to.equal(true);
    expect(read.droppedHints).to.deep.equal([
      "generationConfig.topK",
      "generationConfig.thinkingConfig",
      "safetySettings",
    ]);
    expect(read.chat).to.deep.equal({
      model: "the-model",
      messages: [{ role: "system", content: "Be brief." }, ...chatHello],
      temperature: 0.5,
      top_p: 0.9,
      max_completion_tokens: 99,
      seed: 3,
      presence_penalty: 0.1,
      frequency_penalty: 0.2,
      stop: ["END"],
      tools: [
        {
          type: "function",
          function: {
            name: "f",
            description: "does",
            parameters: { type: "object", properties: { n: { type: ["integer", "null"] } }, required: ["n"] },
          },
        },
        { type: "function", function: { name: "g", parameters: { type: "object", additionalProperties: false } } },
        { type: "function", function: { name: "h" } },
      ],
      tool_choice: { type: "function", function: { name: "f" } },
    });
  });

  it("reads names in snake case, and leaves those of arguments, results and schemas", () => {
    const camel = {
      contents: [
        { role: "user", parts: [{ inlineData: { mimeType: "image/png", data: "QUJD" } }] },
        { role: "model", parts: [{ functionCall: { name: "f", args: { first_name: 1 } } }] },
        { role: "user", parts: [{ functionResponse: { name: "f", response: { last_name: 2 } } }] },
      ],
      systemInstruction: { parts: [{ text: "x" }] },
      generationConfig: { maxOutputTokens: 5 },
      tools: [
        { functionDeclarations: [{ name: "f", parameters: { type: "OBJECT", properties: { first_name: {} } } }] },
      ],
    };
    const snake = JSON.parse(
      JSON.stringify(camel)
        .replace("inlineData", "inline_data")
        .replace("mimeType", "mime_type")
        .replaceAll("functionCall", "function_call")
        .replaceAll("functionResponse", "function_response")
        .replace("systemInstruction", "system_instruction")
        .replace("generationConfig", "generation_config")
        .replace("maxOutputTokens", "max_output_tokens")
        .replace("functionDeclarations", "function_declarations"),
    ) as Json;
    expect(chatOf(snake)).to.deep.equal(chatOf(camel));
    expect(JSON.stringify(chatOf(camel)))
      .to.include("first_name")
      .and.include("last_name");
    expect(chatOf(camel).messages).to.deep.include({
      role: "user",
      content: [{ type: "image_url", image_url: { url: "data:image/png;base64,QUJD" } }],
    });
    expect(faultOf({ contents: hello, systemInstruction: { parts: [] }, system_instruction: { parts: [] } })).to.equal(
      "INVALID_REQUEST expected `systemInstruction` once, got it in two spellings",
    );
  });

  it("joins turns of the model that follow each other, thoughts apart", () => {
    const contents = [
      ...hello,
      { role: "model", parts: [{ text: "Let me think.", thought: true }] },
      { role: "model", parts: [{ text: "One " }] },
      { role: "model", parts: [{ text: "two." }, { text: "" }] },
      { ...calls, parts: [{ ...calling, thoughtSignature: "skip_thought_signature_validator" }, { text: "" }] },
      { role: "function", parts: [result, { text: "and?" }] },
    ];
    expect(chatOf({ contents }).messages).to.deep.equal([
      ...chatHello,
      {
        role: "assistant",
        content: "One two.",
        reasoning_content: "Let me think.",
        tool_calls: [{ id: "call_gateway_0", type: "function", function: { name: "f", arguments: '{"a":1}' } }],
      },
      { role: "tool", tool_call_id: "call_gateway_0", content: "1" },
      { role: "user", content: "and?" },
    ]);
  });

  it("pairs results with calls by their ids, else by the name and the order", () => {
    const call = (name: string, id?: string): JsonObject => ({
      functionCall: { name, ...(id === undefined ? {} : { id }) },
    });
    const told = (name: string, id?: string): JsonObject => ({
      functionResponse: { name, response: {}, ...(id === undefined ? {} : { id }) },
    });
    const idsOf = (parts: readonly JsonObject[], results: readonly JsonObject[]): readonly unknown[] => {
      const body = { contents: [...hello, { role: "model", parts }, { role: "user", parts: results }] };
      return (chatOf(body).messages as readonly JsonObject[]).flatMap((each) => each.tool_call_id ?? []);
    };
    expect(
      idsOf([call("f", "1"), call("f", "2"), call("g", "3")], [told("g", "3"), told("f", "2"), told("f", "1")]),
    ).to.deep.equal(["3", "2", "1"]);
    expect(idsOf([call("f"), call("g"), call("f")], [told("f"), told("f"), told("g")])).to.deep.equal([
      "call_gateway_0",
      "call_gateway_2",
      "call_gateway_1",
    ]);
    expect(idsOf([call("f")], [told("f", "made-by-the-client")])).to.deep.equal(["call_gateway_0"]);
    expect(idsOf([call("f", "1")], [told("f")])).to.deep.equal(["1"]);
    for (const [parts, results] of [
      [[call("f", "1")], [told("f", "2")]],
      [[call("f")], [told("g")]],
      [[call("f")], [told("f"), told("f")]],
      [[call("f", "1"), call("g", "1")], [told("f", "1")]],
    ] as const) {
      expect(() => idsOf(parts, results)).to.throw(GatewayError, "invalid request");
    }
    expect(() =>
      idsOf(
        Array.from({ length: 129 }, () => call("f")),
        [told("f")],
      ),
    ).to.throw(GatewayError, "128");
  });

  it("writes a result as its text, or as JSON where it is more", () => {
    const contentOf = (response: Json): unknown => {
      const told = { functionResponse: { name: "f", response } };
      return (chatOf({ contents: [calls, { parts: [told] }] }).messages as readonly JsonObject[])[1]?.content;
    };
    expect(contentOf({ output: "line\nline" })).to.equal("line\nline");
    expect(contentOf({ output: "x", error: "y" })).to.equal('{"output":"x","error":"y"}');
    expect(contentOf({ output: { a: 1 } })).to.equal('{"output":{"a":1}}');
    expect(contentOf({ output: "x", ["__proto__"]: 1 })).to.equal('{"output":"x","__proto__":1}');
    expect(contentOf({})).to.equal("{}");
  });

  it("reads modes of tools and forms of answers", () => {
    const tools = [{ functionDeclarations: [{ name: "f" }, { name: "g" }] }];
    const choiceOf = (functionCallingConfig: Json): unknown =>
      chatOf({ contents: hello, tools, toolConfig: { functionCallingConfig } }).tool_choice;
    expect(choiceOf({})).to.equal("auto");
    expect(choiceOf({ mode: "NONE" })).to.equal("none");
    expect(choiceOf({ mode: "ANY" })).to.equal("required");
    expect(choiceOf({ mode: "ANY", allowedFunctionNames: ["g", "f"] })).to.equal("required");
    const formatOf = (generationConfig: JsonObject): unknown =>
      chatOf({ contents: hello, generationConfig }).response_format;
    expect(formatOf({ responseMimeType: "text/plain" })).to.equal(undefined);
    expect(formatOf({ responseMimeType: "application/json" })).to.deep.equal({ type: "json_object" });
    const responseSchema = { type: "ARRAY", items: { type: "STRING", maxLength: "5" }, propertyOrdering: ["a"] };
    expect(formatOf({ responseMimeType: "application/json", responseSchema })).to.deep.equal({
      type: "json_schema",
      json_schema: { name: "response", schema: { type: "array", items: { type: "string", maxLength: 5 } } },
    });
  });

  const refused: Readonly<Record<string, readonly [Json, string]>> = {
    "a cached content": [
      { contents: hello, cachedContent: "cachedContents/1" },
      "MODEL_UNTRANSLATABLE `cachedContent`",
    ],
    "an unknown member": [{ contents: hello, someDay: 1 }, "MODEL_UNTRANSLATABLE `someDay`"],
    "a tool that the provider runs": [
      { contents: hello, tools: [{ googleSearch: {} }] },
      "MODEL_UNTRANSLATABLE `tools[0].googleSearch`",
    ],
    "a file": [
      { contents: [{ parts: [{ fileData: { fileUri: "x" } }] }] },
      "MODEL_UNTRANSLATABLE `contents[0].parts[0].fileData`",
    ],
    "a document": [
      { contents: [{ parts: [{ inlineData: { mimeType: "application/pdf", data: "x" } }] }] },
      "MODEL_UNTRANSLATABLE `contents[0].parts[0].inlineData.mimeType`: `application/pdf`",
    ],
    "code that the provider ran": [
      { contents: [{ role: "model", parts: [{ executableCode: { code: "x" } }] }] },
      "MODEL_UNTRANSLATABLE `contents[0].parts[0].executableCode`",
    ],
    "a signed thought": [
      { contents: [{ role: "model", parts: [{ text: "x", thoughtSignature: "c2ln" }] }] },
      "MODEL_UNTRANSLATABLE `contents[0].parts[0].thoughtSignature`",
    ],
    "a text behind calls": [
      { contents: [{ role: "model", parts: [calling, { text: "x" }] }] },
      "MODEL_UNTRANSLATABLE `contents[0].parts[1]`: expected calls of functions after all else",
    ],
    "a result behind a text": [
      { contents: [calls, { parts: [{ text: "x" }, result] }] },
      "MODEL_UNTRANSLATABLE `contents[1].parts[1]`: expected results of functions before all else",
    ],
    "another role": [
      { contents: [{ role: "system", parts: [{ text: "x" }] }] },
      "MODEL_UNTRANSLATABLE `contents[0].role`: `system`",
    ],
    "several candidates": [
      { contents: hello, generationConfig: { candidateCount: 2 } },
      "MODEL_UNTRANSLATABLE `generationConfig.candidateCount`",
    ],
    "an enumeration": [
      { contents: hello, generationConfig: { responseMimeType: "text/x.enum" } },
      "MODEL_UNTRANSLATABLE `generationConfig.responseMimeType`: `text/x.enum`",
    ],
    "some functions of several": [
      {
        contents: hello,
        tools: [{ functionDeclarations: [{ name: "f" }, { name: "g" }, { name: "h" }] }],
        toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["f", "g"] } },
      },
      "MODEL_UNTRANSLATABLE `toolConfig.functionCallingConfig.allowedFunctionNames`: expected one name with mode `ANY`, or all",
    ],
    "a required call of nothing": [
      { contents: hello, toolConfig: { functionCallingConfig: { mode: "ANY" } } },
      "MODEL_UNTRANSLATABLE `toolConfig.functionCallingConfig.mode`: expected `tools`",
    ],
    "no contents": [{}, "INVALID_REQUEST `contents`: expected a list that is not empty"],
    "empty contents": [{ contents: [] }, "INVALID_REQUEST `contents`: expected a list that is not empty"],
    "contents that are a text": [{ contents: "hello" }, "INVALID_REQUEST `contents`: expected a list"],
    "no parts": [
      { contents: [{ role: "user" }] },
      "INVALID_REQUEST `contents[0].parts`: expected a list that is not empty",
    ],
    "an empty part": [
      { contents: [{ parts: [{}] }] },
      "INVALID_REQUEST `contents[0].parts[0].text`: expected a string",
    ],
    "a result of nothing": [
      { contents: [{ parts: [result] }] },
      "INVALID_REQUEST `contents[0].parts[0].functionResponse.name`: expected that of a call in the turn before, with its `id`",
    ],
    "a list": [[], "INVALID_REQUEST ``: expected an object"],
  };
  for (const [what, [body, fault]] of Object.entries(refused)) {
    it(`refuses ${what} by its name`, () => {
      expect(faultOf(body)).to.equal(fault);
    });
  }

  it("refuses an extra member wherever it stands, and says which", () => {
    const whole = {
      contents: [
        { role: "user", parts: [{ text: "x" }, { inlineData: { mimeType: "image/png", data: "QUJD" } }] },
        calls,
        { role: "user", parts: [result] },
      ],
      systemInstruction: { parts: [{ text: "x" }] },
      generationConfig: { temperature: 1 },
      tools: [{ functionDeclarations: [{ name: "f" }] }],
      toolConfig: { functionCallingConfig: { mode: "AUTO" } },
    };
    const places = objectsOf(whole, []);
    expect(places).to.have.length(18);
    fc.assert(
      fc.property(fc.constantFrom(...places), fc.string({ minLength: 1 }), fc.jsonValue(), (path, name, value) => {
        const member = `x_${name}`;
        const fault = faultOf(withMember(whole, path, member, value as Json));
        // Null is an absent member, as in every API.
        expect(fault).to.match(value === null ? /^no fault/ : /^MODEL_UNTRANSLATABLE /);
      }),
      { numRuns: 300 },
    );
  });

  it("gives what a provider of the messages API can be sent, too", () => {
    const contents = [...hello, calls, { role: "user", parts: [result] }];
    expect(toMessagesRequest(chatOf({ contents })).messages).to.deep.equal([
      { role: "user", content: "hello" },
      { role: "assistant", content: [{ type: "tool_use", id: "call_gateway_0", name: "f", input: { a: 1 } }] },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "call_gateway_0", content: "1" }],
      },
    ]);
  });
});

/** The paths of the objects in a request that are of the API: not of arguments or results. */
function objectsOf(value: unknown, path: readonly (string | number)[]): readonly (readonly (string | number)[])[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => objectsOf(item, [...path, index]));
  if (typeof value !== "object" || value === null) return [];
  const below = Object.entries(value)
    .filter(([name]) => name !== "args" && name !== "response")
    .flatMap(([name, member]) => objectsOf(member, [...path, name]));
  return [path, ...below];
}

function withMember(value: Json, path: readonly (string | number)[], name: string, member: Json): Json {
  const [first, ...rest] = path;
  if (first === undefined) return Object.fromEntries([...Object.entries(value as JsonObject), [name, member]]);
  if (Array.isArray(value)) {
    return value.map((item: Json, index) => (index === first ? withMember(item, rest, name, member) : item));
  }
  const object = value as JsonObject;
  return { ...object, [first]: withMember(object[first] as Json, rest, name, member) };
}

describe("providerTools(body)", () => {
  it("names the tools that a provider would run, in either spelling", () => {
    const functionDeclarations: Json = [{ name: "f" }];
    expect(
      providerTools({
        tools: [{ functionDeclarations }, { function_declarations: [], google_search: {} }, { codeExecution: {} }, 1],
      }),
    ).to.deep.equal([{ google_search: {} }, { codeExecution: {} }]);
    for (const body of [{}, { tools: {} }, [], null]) expect(providerTools(body)).to.deep.equal([]);
  });
});
