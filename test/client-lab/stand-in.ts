import type { ModelApi } from "../../core/action/model-api.ts";
import { type ProviderCall, type Script, scripts } from "../fixture/model-provider.ts";
import type { ModelReply } from "../fixture/model-reply.ts";
import { farewell, type Task } from "./task.ts";

/** A public model API; the last is one that the gateway does not speak. */
export type LabApi = ModelApi | "generateContent";

interface Part {
  readonly type?: string;
  readonly role?: string;
  readonly text?: string;
  readonly name?: string;
  readonly content?: string | readonly Part[];
  readonly output?: string | readonly Part[];
  readonly function?: { readonly name?: string };
  readonly parts?: readonly Part[];
  readonly functionResponse?: { readonly response: object };
  readonly functionDeclarations?: readonly Part[];
}

type Body = ProviderCall["body"];

/** What the agent told its model of its calls so far, in order, as each API has it. */
const toldIn: Readonly<Record<LabApi, (body: Body) => readonly string[]>> = {
  chat: (body) => partsOf(body.messages).flatMap((each) => (each.role === "tool" ? [textOf(each.content)] : [])),
  messages: (body) =>
    partsOf(body.messages)
      .flatMap(({ content }) => partsOf(content))
      .flatMap((each) => (each.type === "tool_result" ? [textOf(each.content)] : [])),
  responses: (body) =>
    partsOf(body.input).flatMap((each) => (each.type === "function_call_output" ? [textOf(each.output)] : [])),
  generateContent: (body) =>
    partsOf(body.contents)
      .flatMap(({ parts }) => partsOf(parts))
      .flatMap((each) => (each.functionResponse === undefined ? [] : [JSON.stringify(each.functionResponse.response)])),
};

/** The model of a task: asks for its calls by the names that the agent gave the tools, one by one, and then for none. */
export function modelOf(task: Task): Script {
  return async (response, call) => {
    const names = toolNames(call.body);
    const answer = (reply: ModelReply): Script =>
      apiOf(call) === "generateContent" ? generated(reply) : scripts.answers(reply);
    if (!names.some((name) => name.endsWith("read_note"))) return answer({ text: "Notes" })(response, call);
    const told = toldIn[apiOf(call)](call.body);
    const [wanted, id] = [await task.next(told), `answer_${told.length}`];
    if (wanted === undefined) return answer({ id, text: farewell })(response, call);
    const name = names.find((each) => each.endsWith(wanted.tool));
    if (name === undefined) throw new Error(`expected a tool ${wanted.tool}, got ${names.join(", ")}`);
    return answer({ id, calls: [{ id: `call_of_step_${told.length}`, name, arguments: wanted.args }] })(response, call);
  };
}

export function apiOf({ api, path }: ProviderCall): LabApi {
  return path.includes("enerateContent") ? "generateContent" : api;
}

function toolNames({ tools }: Body): readonly string[] {
  return partsOf(tools)
    .flatMap((each) => each.functionDeclarations ?? [each])
    .map((each) => each.name ?? each.function?.name ?? "");
}

/** An answer of `generateContent`, or the one event of its stream. */
function generated({ text, calls = [] }: ModelReply): Script {
  const parts = [
    ...(text === undefined ? [] : [{ text }]),
    ...calls.map(({ id, name, arguments: args }) => ({ functionCall: { id, name, args } })),
  ];
  const candidates = [{ index: 0, content: { role: "model", parts }, finishReason: "STOP" }];
  const body = JSON.stringify({
    candidates,
    usageMetadata: { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 },
  });
  return (response, call) =>
    (call.path.includes("streamGenerateContent") ? scripts.streams([`data: ${body}\n\n`]) : scripts.says(200, body))(
      response,
      call,
    );
}

function partsOf(value: unknown): readonly Part[] {
  return Array.isArray(value) ? (value as readonly Part[]) : [];
}

function textOf(content: Part["content"]): string {
  if (typeof content === "string") return content;
  return (content ?? []).map(({ text = "" }) => text).join("");
}
