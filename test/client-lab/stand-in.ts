import type { ModelApi } from "../../core/action/model-api.ts";
import { type ProviderCall, type Script, scripts } from "../fixture/model-provider.ts";
import type { ReplyCall } from "../fixture/model-reply.ts";
import { farewell, type Task } from "./task.ts";

interface Part {
  readonly type?: string;
  readonly role?: string;
  readonly text?: string;
  readonly name?: string;
  readonly content?: string | readonly Part[];
  readonly output?: string | readonly Part[];
  readonly function?: { readonly name?: string };
  readonly tools?: readonly Part[];
}

type Body = ProviderCall["body"];

/** What the agent told its model of its calls so far, in order, as each API has it. */
const toldIn: Readonly<Record<ModelApi, (body: Body) => readonly string[]>> = {
  chat: (body) => partsOf(body.messages).flatMap((each) => (each.role === "tool" ? [textOf(each.content)] : [])),
  messages: (body) =>
    partsOf(body.messages)
      .flatMap(({ content }) => partsOf(content))
      .flatMap((each) => (each.type === "tool_result" ? [textOf(each.content)] : [])),
  responses: (body) =>
    partsOf(body.input).flatMap((each) => (each.type === "function_call_output" ? [textOf(each.output)] : [])),
};

/** The model of a task: asks for its calls by the names that the agent gave the tools, one by one, and then for none. */
export function modelOf(task: Task): Script {
  return async (response, call) => {
    const tools = toolsOf(call.body);
    if (!tools.some(({ name }) => name.endsWith("read_note")))
      return scripts.answers({ text: "Notes" })(response, call);
    const told = toldIn[call.api](call.body);
    const [wanted, id] = [await task.next(told), `answer_${told.length}`];
    if (wanted === undefined) return scripts.answers({ id, text: farewell })(response, call);
    const tool = tools.find(({ name }) => name.endsWith(wanted.tool));
    if (tool === undefined) throw new Error(`expected a tool ${wanted.tool}, got ${JSON.stringify(tools)}`);
    const asked = { ...tool, id: `call_of_step_${told.length}`, arguments: wanted.args };
    return scripts.answers({ id, calls: [asked] })(response, call);
  };
}

/** The tools that a request offers; those of a namespace, as the responses API has them, are called by both names. */
function toolsOf({ tools }: Body): readonly Pick<ReplyCall, "name" | "namespace">[] {
  return partsOf(tools).flatMap((each) => {
    const { name = each.function?.name ?? "" } = each;
    if (each.type === "namespace") return toolsOf({ tools: each.tools }).map((tool) => ({ ...tool, namespace: name }));
    return [{ name }];
  });
}

function partsOf(value: unknown): readonly Part[] {
  return Array.isArray(value) ? (value as readonly Part[]) : [];
}

function textOf(content: Part["content"]): string {
  if (typeof content === "string") return content;
  return (content ?? []).map(({ text = "" }) => text).join("");
}
