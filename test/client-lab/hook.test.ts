import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { Reviewer } from "../e2e/client/reviewer.ts";
import { openWorld, type World } from "../e2e/client/world.ts";
import { ModelProvider, type ProviderCall, type Script, scripts } from "../fixture/model-provider.ts";
import { program as gatewayProgram, runGateway } from "../unit/cli/run.ts";
import { type ClientProgram, labFile, runClient } from "./client-program.ts";

const rules = `rules:
  - { id: test.see, title: All may be seen, decision: allow, match: { phase: [list, output] } }
  - { id: test.think, title: Models may be asked, decision: allow, match: { phase: input, protocol: model } }
  - { id: test.run, title: Some commands run, decision: allow, match: { phase: input, protocol: shell }, when: 'args.command.contains("allowed.txt")' }
  - { id: test.hold, title: Some are reviewed, decision: review, match: { phase: input, protocol: shell }, when: 'args.command.contains("held.txt")', message: held }
  - { id: test.stop, title: Some are blocked, decision: block, match: { phase: input, protocol: shell }, when: 'args.command.contains("blocked.txt")', message: blocked }
`;

/** The commands that the model asks for, in order; each says in a file of its own that it ran. The held one is approved after its first try. */
const commands = ["allowed", "blocked", "held", "held", "held"].map((name) => `echo ran >> ${name}.txt`);

/** One of the coding agents, with the settings that `gateway hook` prints for it. */
interface CodingAgent {
  readonly model: string;
  readonly printed: readonly string[];
  readonly files: (settings: string, place: HookPlaceOfTest) => Readonly<Record<string, string>>;
  readonly program: (place: HookPlaceOfTest) => ClientProgram;
}

interface HookPlaceOfTest {
  readonly url: string;
  readonly key: string;
  readonly home: string;
}

const claudeCode: CodingAgent = {
  model: "messages-model",
  printed: ["hook", "claude-code", "--print-settings"],
  files: (settings) => ({ ".claude/settings.json": settings }),
  program: ({ url, key }) => ({
    command: process.execPath,
    args: [
      labFile("node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs"),
      ...["-p", "Try the commands.", "--model", "messages-model", "--allowedTools", "Bash"],
    ],
    env: {
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: key,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
    },
  }),
};

const agents: Readonly<Record<string, CodingAgent>> = {
  "Claude Code, by a command": claudeCode,
  "Claude Code, over HTTP": { ...claudeCode, printed: [...claudeCode.printed, "--http"] },
  "Codex, by a command": {
    model: "responses-model",
    printed: ["hook", "codex", "--print-settings"],
    files: (settings, { url }) => ({
      ".codex/hooks.json": settings,
      ".codex/config.toml": `
model = "responses-model"
model_provider = "gateway"
web_search = "disabled"
check_for_update_on_startup = false
analytics = { enabled = false }
features = { plugins = false, apps = false }
[model_providers.gateway]
name = "gateway"
base_url = "${url}/v1"
env_key = "GATEWAY_KEY"
wire_api = "responses"
`,
    }),
    program: ({ key }) => ({
      command: process.execPath,
      args: [
        labFile("node_modules/@openai/codex/bin/codex.js"),
        ...["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"],
        ...["--dangerously-bypass-approvals-and-sandbox", "Try the commands."],
      ],
      env: { GATEWAY_KEY: key },
    }),
  },
};

/** The answers to the calls so far, as the agent told its model. */
function toldOf({ api, body }: ProviderCall): readonly string[] {
  const text = JSON.stringify(api === "responses" ? body.input : body.messages);
  const items = JSON.parse(text) as readonly { type?: string; content?: unknown; output?: unknown }[];
  const parts = api === "responses" ? items : items.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  return parts
    .filter(({ type }) => type === "tool_result" || type === "function_call_output")
    .map((part) => JSON.stringify(part));
}

const shells = ["Bash", "exec_command", "shell_command", "shell"];

describe("coding agents that nobody here wrote, with the hook that the gateway prints settings for", function () {
  this.timeout(300_000);
  let provider: ModelProvider;
  let world: World;
  let reviewer: Reviewer;
  let home: string;
  let told: readonly string[];

  beforeEach(async () => {
    told = [];
    provider = await ModelProvider.start();
    world = await openWorld({ rules, more: configOf(provider), env: { PROVIDER_KEY: "of-the-provider-alone" } });
    reviewer = new Reviewer(world);
    home = await mkdtemp(join(tmpdir(), "client-lab-hook-"));
    provider.script = model;
  });

  afterEach(async () => {
    await world?.stop();
    provider?.stop();
    await rm(home, { recursive: true, force: true });
  });

  /** Asks for the commands one by one; the held one is approved once its first try was answered. */
  const model: Script = async (response, call) => {
    const offered = (call.body.tools ?? []) as readonly { name?: string }[];
    const shell = offered.find(({ name = "" }) => shells.includes(name))?.name;
    if (shell === undefined) return scripts.answers({ text: "Commands" })(response, call);
    told = toldOf(call);
    const command = commands[told.length];
    if (told.length === 3) for (const { id } of await reviewer.list()) await reviewer.approve(id);
    if (command === undefined) return scripts.answers({ text: "That is all." })(response, call);
    const args = shell === "exec_command" ? { cmd: command } : { command, description: `Step ${told.length}` };
    const id = `call_of_step_${told.length}`;
    return scripts.answers({ id: `answer_${told.length}`, calls: [{ id, name: shell, arguments: args }] })(
      response,
      call,
    );
  };

  /** `hookUrl`: undefined for an agent without the hook. */
  async function run(agent: CodingAgent, hookUrl: string | undefined): Promise<string> {
    const place = { url: world.gateway.url, key: world.key, home };
    const printed = await runGateway([...agent.printed, "--url", hookUrl ?? world.gateway.url, "--wait", "0"]);
    expect(printed.code).to.equal(0);
    const settings = hookUrl === undefined ? "{}" : printed.stdout;
    const shim = `#!/bin/sh\nexec '${process.execPath}' '${gatewayProgram}' "$@"\n`;
    for (const [path, content] of Object.entries({ "bin/gateway": shim, ...agent.files(settings, place) })) {
      await mkdir(dirname(join(home, path)), { recursive: true });
      await writeFile(join(home, path), content);
    }
    await chmod(join(home, "bin/gateway"), 0o755);
    const { env, ...client } = agent.program(place);
    const path = `${join(home, "bin")}:${process.env.PATH}`;
    return runClient({ ...client, env: { ...env, PATH: path, GATEWAY_API_KEY: world.key } }, home);
  }

  /** How often each command ran, as its file says. */
  async function witnesses(): Promise<Readonly<Record<string, number>>> {
    const counts: Record<string, number> = {};
    for (const name of ["allowed", "blocked", "held"]) {
      const text = await readFile(join(home, `${name}.txt`), "utf8").catch(() => "");
      counts[name] = text.split("ran").length - 1;
    }
    return counts;
  }

  for (const [name, agent] of Object.entries(agents)) {
    it(`${name}: runs what is allowed, once what is approved, and nothing else`, async () => {
      await run(agent, world.gateway.url);
      expect(told.length, JSON.stringify(told)).to.equal(commands.length);
      expect(told[1]).to.include("Blocked: blocked (rule test.stop)");
      expect(told[2]).to.match(/Held for review: held \(rule test\.hold\)\. Approval apr_\w+ is pending/);
      expect(told[4]).to.match(/Approval apr_\w+ is pending/);
      expect(await witnesses()).to.deep.equal({ allowed: 1, blocked: 0, held: 1 });
    });

    it(`${name}: runs everything without the hook, so that the files are witnesses`, async () => {
      await run(agent, undefined);
      expect(await witnesses()).to.deep.equal({ allowed: 1, blocked: 1, held: 3 });
    });

    it(`${name}: runs nothing while the gateway of its hook is down [S90]`, async () => {
      await run(agent, "http://127.0.0.1:9");
      expect(told.length).to.equal(commands.length);
      expect(await witnesses()).to.deep.equal({ allowed: 0, blocked: 0, held: 0 });
    });
  }
});

function configOf(provider: ModelProvider): string {
  return `
sessions: { review_flood: { reviews: 0 }, risk: { kill_at: 0 } }
providers:
  - { name: claude, type: anthropic, base_url: "${provider.baseUrl("anthropic")}", api_key_env: PROVIDER_KEY, models: [messages-model] }
  - { name: answering, type: responses, base_url: "${provider.baseUrl("responses")}", api_key_env: PROVIDER_KEY, models: [responses-model] }
model_gateway:
  tool_passthrough: client
  routes:
    - { model: messages-model, providers: [{ name: claude }] }
    - { model: responses-model, providers: [{ name: answering }] }
`;
}
