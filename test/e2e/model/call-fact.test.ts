import { expect } from "chai";
import type { ModelApi } from "../../../core/action/model-api.ts";
import { type Script, scripts } from "../../fixture/model-provider.ts";
import { answerEvents, answerOf, type ReplyCall } from "../../fixture/model-reply.ts";
import { askModel } from "./ask.ts";
import { askGemini } from "./gemini-ask.ts";
import { modelSdks } from "./sdk.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

const apis = ["chat", "messages", "responses"] as const;
const forms = [...apis, "gemini"] as const;
type Form = (typeof forms)[number];

const statements = `tools:
    agents: [claude-code]
    capabilities: { str_replace_based_edit_tool: read, deploy_it: deploy }
    facts:
      bash: { shell: command }
      local_shell: { shell: command }
      query: { sql: statement, dialect: postgresql }
      str_replace_based_edit_tool: { path: path, root: /workspace }`;
const settings = `tool_passthrough: client\n  ${statements}`;
const packs = ["baseline", "shell", "sql"];

/** What a client of a form got: its status, all of its bytes, and whether it ended in an error. */
interface Got {
  readonly status: number;
  readonly bytes: string;
  readonly isRefused: boolean;
}

async function ask(world: ModelWorld, form: Form, model: string, stream: boolean): Promise<Got> {
  if (form === "gemini") {
    const { status, raw, error } = await askGemini(world, { model, ...(stream ? { stream: "sse" } : {}) });
    return { status, bytes: raw, isRefused: error !== undefined };
  }
  const { status, text } = await askModel(world, { api: form, model, stream });
  return { status, bytes: text, isRefused: text.includes("policy_blocked") };
}

const run = (command: string, name = "bash"): ReplyCall => ({ name, arguments: { command } });
const path = (value: string): ReplyCall => ({ name: "str_replace_based_edit_tool", arguments: { path: value } });

const harmful: Readonly<Record<string, readonly [calls: readonly ReplyCall[], rule: string]>> = {
  "a whole tree is deleted": [[run("rm -rf /")], "shell.wide-deletion"],
  "a whole tree is deleted by an agent's own tool": [[run("rm -rf /", "Bash")], "shell.wide-deletion"],
  "a table is dropped": [[{ name: "query", arguments: { statement: "DROP TABLE orders" } }], "sql.destruction"],
  "a path leaves its root": [[path("/etc/hosts")], "baseline.outside-root"],
  "a file holds credentials": [
    [{ name: "Read", arguments: { file_path: "/home/a/.ssh/id_rsa" } }],
    "baseline.call-credential",
  ],
  "one of several is harmful": [[run("ls"), path("/workspace/a.ts"), run("rm -rf /")], "shell.wide-deletion"],
};
const asked: Readonly<Record<string, readonly ReplyCall[]>> = {
  "a file is written": [run("echo hello > notes.txt")],
  "one of several writes": [run("ls -la"), run("touch notes.txt")],
  "a program is not known": [run("frobnicate --all")],
  "a command line cannot be read": [run("echo $(")],
  "the stated argument is missing": [{ name: "bash", arguments: { restart: true } }],
  "the stated argument has another type": [{ name: "bash", arguments: { command: { line: "ls" } } }],
  "its arguments are over the bound": [run(`ls ${"a".repeat(20_000)}`)],
  "there are more calls than are read": Array.from({ length: 21 }, () => run("ls")),
  "a tool deploys by its capability": [{ name: "deploy_it", arguments: {} }],
};
const benign: Readonly<Record<string, readonly ReplyCall[]>> = {
  "it only reads": [run("ls -la"), run("git status"), path("/workspace/a.ts")],
  "it only reads a table": [{ name: "query", arguments: { statement: "SELECT id FROM orders" } }],
  "nobody stated the tool": [{ name: "weather", arguments: { city: "rm -rf /" } }],
};

describe("the facts of the tool calls that a model asks for", () => {
  describe("with statements about the tools", () => {
    let world: ModelWorld;
    before(async () => {
      world = await openModelWorld({ settings, packs });
    });
    after(() => world.stop());

    for (const form of forms) {
      for (const stream of [false, true]) {
        const how = `${form}${stream ? ", streamed" : ""}`;
        const check = async (calls: readonly ReplyCall[], seen: (got: Got) => void | Promise<void>): Promise<void> => {
          for (const model of ["chat-model", "messages-model", "responses-model"]) {
            world.provider.script = scripts.answers({ text: "One moment.", calls });
            seen(await ask(world, form, model, stream));
          }
        };

        for (const [title, [calls, rule]] of Object.entries(harmful)) {
          it(`keeps a call from the agent where ${title}: ${how}`, async () => {
            await check(calls, ({ isRefused, bytes }) => {
              expect(isRefused, bytes).to.equal(true);
              expect(bytes)
                .to.include(rule)
                .and.not.match(/"rm|DROP|\/etc\/hosts|id_rsa/);
              for (const { name } of calls) expect(bytes).to.not.include(`"${name}"`);
            });
          });
        }

        it(`withholds what a person would be asked about: ${how}`, async () => {
          for (const [title, calls] of Object.entries(asked)) {
            await check(calls, ({ isRefused, bytes }) => {
              expect(isRefused, `${title}: ${bytes}`).to.equal(true);
              expect(bytes).to.include("baseline.call");
              for (const { name } of calls) expect(bytes).to.not.include(`"${name}"`);
            });
          }
        });

        it(`passes on what does no harm: ${how}`, async () => {
          for (const [title, calls] of Object.entries(benign)) {
            await check(calls, ({ status, isRefused, bytes }) => {
              expect([status, isRefused], `${title}: ${bytes}`).to.deep.equal([200, false]);
              for (const { name } of calls) expect(bytes).to.include(`"${name}"`);
            });
          }
        });
      }
    }

    it("reaches no client of an official SDK, whole or streamed", async () => {
      for (const sdk of modelSdks(world.gateway.url, world.keys.agent)) {
        const question = { model: `${sdk.api}-model`, text: "clean up", tools: true };
        for (const way of ["ask", "stream"] as const) {
          world.provider.script = scripts.answers({ text: "One moment.", calls: [run("rm -rf /")] });
          const got = await sdk[way](question).then(
            (answered) => JSON.stringify(answered),
            (error: Error) => error.message,
          );
          expect(got, `${sdk.name} ${way}`).to.include("shell.wide-deletion").and.not.include("rm -rf");
          world.provider.script = scripts.answers({ text: "One moment.", calls: [run("ls -la")] });
          expect((await sdk[way](question)).calls, sdk.name).to.deep.equal([run("ls -la")]);
        }
      }
    });

    it("lets the text before a call through as it comes, and no part of the call before the end", async () => {
      const text = "word ".repeat(200);
      for (const api of apis) {
        let seen = "";
        world.provider.script = scripts.answers({ text, calls: [run("rm -rf /")] });
        const told = await askModel(world, { api, stream: true });
        seen = told.text;
        expect(seen.split("word").length, api).to.be.greaterThan(60);
        expect(seen).to.not.include('"bash"').and.not.include("rm -rf");
      }
    });

    it("is unknown where the arguments are no JSON, or two readers could read them differently", async () => {
      for (const text of ['{"command":"ls"', '{"command":"ls","command":"rm -rf /"}', '"ls"', "[]"]) {
        for (const stream of [false, true]) {
          world.provider.script = rewritten(`{"command":"ls"}`, text, "chat");
          const told = await askModel(world, { api: "chat", stream });
          expect(told.text, text).to.include("baseline.call").and.not.include('"bash"');
        }
      }
    });

    it("judges a call whose name comes as an empty text again, and refuses one that gets another name", async () => {
      const named = (name: string): string =>
        `data: ${JSON.stringify({
          id: "c",
          object: "chat.completion.chunk",
          created: 1,
          model: "m",
          choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { name, arguments: "" } }] } }],
        })}\n\n`;
      const events = answerEvents("chat", { calls: [run("rm -rf /")] });
      for (const [name, code] of [
        ["", "shell.wide-deletion"],
        ["other", "provider_invalid"],
      ] as const) {
        const end = events.length - 2;
        world.provider.script = scripts.streams([...events.slice(0, end), named(name), ...events.slice(end)]);
        const told = await askModel(world, { api: "chat", stream: true });
        expect(told.text).to.include(code).and.not.include("rm -rf");
      }
    });

    it("reads the tools that the responses API defines", async () => {
      const item = (program: string): object => ({
        id: "lsh_1",
        type: "local_shell_call",
        call_id: "c1",
        status: "completed",
        action: { type: "exec", command: [program, "-rf", "/"], env: {} },
      });
      const whole = (program: string): object => ({ ...answerOf("responses", {}), output: [item(program)] });
      const event = (type: string, members: object): string =>
        `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
      for (const [program, isRefused] of [
        ["rm", true],
        ["ls", false],
      ] as const) {
        world.provider.script = scripts.says(200, whole(program));
        const told = await askModel(world, { api: "responses" });
        expect(told.text.includes("local_shell_call"), told.text).to.equal(!isRefused);
        world.provider.script = scripts.streams([
          event("response.created", { response: { ...answerOf("responses", {}), status: "in_progress", output: [] } }),
          event("response.output_item.added", { output_index: 0, item: item(program) }),
          event("response.output_item.done", { output_index: 0, item: item(program) }),
          // What is held for a call is held whatever follows it.
          ...Array.from({ length: 300 }, () => ": waiting\n\n"),
          event("response.completed", { response: whole(program) }),
        ]);
        const streamed = await askModel(world, { api: "responses", stream: true });
        expect(streamed.text.includes("local_shell_call"), streamed.text).to.equal(!isRefused);
      }
    });

    it("reads the input that comes whole at the beginning of a block", async () => {
      const block = { type: "tool_use", id: "t", name: "bash", input: { command: "rm -rf /" } };
      const events = answerEvents("messages", { text: "word ".repeat(200) });
      const begin = { type: "content_block_start", index: 9, content_block: block };
      const stop = { type: "content_block_stop", index: 9 };
      const extra = [begin, stop].map((data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`);
      world.provider.script = scripts.streams([...events.slice(0, 1), ...extra, ...events.slice(1)]);
      const told = await askModel(world, { api: "messages", stream: true });
      expect(told.text).to.include("shell.wide-deletion").and.not.include('"bash"');
    });

    it("explains the decision by its rules", async () => {
      world.provider.script = scripts.answers({ calls: [run("rm -rf /")] });
      const told = await askModel(world, { api: "chat" });
      const [, id] = /Decision ([0-9a-f-]{36})/.exec(told.text) ?? [];
      const response = await fetch(`${world.gateway.adminUrl}/admin/v1/decisions/${id}/explanation`, {
        headers: { "x-api-key": world.keys.operator },
      });
      const explained = await response.text();
      expect(response.status, explained).to.equal(200);
      expect(explained).to.include("shell.wide-deletion").and.include("baseline.call");
    });
  });

  it("are not there without statements: the control", async () => {
    const world = await openModelWorld({ packs });
    try {
      for (const form of forms) {
        for (const stream of [false, true]) {
          world.provider.script = scripts.answers({ text: "One moment.", calls: [run("rm -rf /")] });
          const { isRefused, bytes } = await ask(world, form, "chat-model", stream);
          expect(isRefused, bytes).to.equal(false);
          expect(bytes).to.include('"bash"').and.include("-rf");
        }
      }
    } finally {
      await world.stop();
    }
  });

  it("let models ask for what the operator allows", async () => {
    const world = await openModelWorld({
      settings,
      packs: ["shell"],
      rules: `
  - id: open.writes
    title: Writes are told
    decision: block
    match: { phase: output, protocol: model, effect: write }
    message: "{{ facts.calls.map(call, call.tool + ' ' + call.effect) }} {{ facts.shell.commands.map(each, each.name) }}"
    when: has(facts.calls) && has(facts.shell)
`,
    });
    try {
      world.provider.script = scripts.answers({ calls: [run("ls"), run("touch a")] });
      const told = await askModel(world, { api: "messages" });
      expect(told.text)
        .to.include("open.writes")
        .and.include("bash read")
        .and.include("bash write")
        .and.include("touch");
    } finally {
      await world.stop();
    }
  });
});

/** An answer whose only call has other arguments than the provider's JSON would hold. */
function rewritten(from: string, to: string, api: ModelApi): Script {
  const quote = (text: string): string => JSON.stringify(text).slice(1, -1);
  return (response, call) => {
    const reply = { calls: [run("ls")] };
    if (call.body.stream !== true) {
      return scripts.says(200, JSON.stringify(answerOf(api, reply)).replace(quote(from), quote(to)))(response, call);
    }
    const events = answerEvents(api, reply, (text) => [text]);
    return scripts.streams(events.map((event) => event.replace(quote(from), quote(to))))(response, call);
  };
}
