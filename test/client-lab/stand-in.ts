import type { ModelApi } from "../../core/action/model-api.ts";
import { type ProviderCall, type Script, scripts } from "../fixture/model-provider.ts";
import { farewell, type Task } from "./task.ts";

interface Part {
  readonly type?: string;
  readonly role?: string;
  readonly text?: string;
  readonly name?: string;
  readonly content?: string | readonly Part[];
  readonly output?: string | readonly Part[];
  readonly function?: { readonly name?: string };
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
    const names = toolNames(call.body);
    if (!names.some((name) => name.endsWith("read_note"))) return scripts.answers({ text: "Notes" })(response, call);
    const told = toldIn[call.api](call.body);
    const [wanted, id] = [await task.next(told), `answer_${told.length}`];
    if (wanted === undefined) return scripts.answers({ id, text: farewell })(response, call);
    const name = names.find((each) => each.endsWith(wanted.tool));
    if (name === undefined) throw new Error(`expected a tool ${wanted.tool}, got ${names.join(", ")}`);
    return scripts.answers({ id, calls: [{ id: `call_of_step_${told.length}`, name, arguments: wanted.args }] })(
      response,
      call,
    );
  };
}

function toolNames({ tools }: Body): readonly string[] {
  return partsOf(tools).map((each) => each.name ?? each.function?.name ?? "");
}

function partsOf(value: unknown): readonly Part[] {
  return Array.isArray(value) ? (value as readonly Part[]) : [];
}

function textOf(content: Part["content"]): string {
  if (typeof content === "string") return content;
  return (content ?? []).map(({ text = "" }) => text).join("");
}
