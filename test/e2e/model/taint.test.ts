import { execFile } from "node:child_process";
import { join } from "node:path";
import { expect } from "chai";
import type { Approval } from "../../../core/action/approval.ts";
import type { ModelApi } from "../../../core/action/model-api.ts";
import type { ApprovalView } from "../../../core/approval/view.ts";
import type { SessionReport } from "../../../core/evidence/report/model.ts";
import { repositoryRoot } from "../../check/source-tree.ts";
import { scripts } from "../../fixture/model-provider.ts";
import { answerEvents } from "../../fixture/model-reply.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type Finished, runGateway } from "../../unit/cli/run.ts";
import { type ModelSdk, modelSdks } from "./sdk.ts";
import { attack, lure, TaintWorld } from "./taint-world.ts";
import { runAgent } from "./tool-loop.ts";

const apis: readonly ModelApi[] = ["chat", "messages"];

const egress = "session-watch.untrusted-egress";

describe("a session that spans tools and models", () => {
  let world: TaintWorld;
  /** The same, with the rules that hold mail in shadow mode. */
  let trial: TaintWorld;
  /** The same, where neither an upstream nor a plugin taints. */
  let trusting: TaintWorld;

  before(async () => {
    [world, trial, trusting] = await Promise.all([
      TaintWorld.open(),
      TaintWorld.open({ mode: "shadow" }),
      TaintWorld.open({ untrusted: "[]", taints: "[]" }),
    ]);
  });

  after(() => Promise.all([world, trial, trusting].map((each) => each?.stop())));

  /** What an agent is told whose model reads the page with `tool` and then wants what strangers want. */
  async function readAndSend(
    where: TaintWorld,
    api: ModelApi,
    tool: string,
    label: string,
  ): Promise<readonly string[]> {
    where.provider.next(
      scripts.answers({ text: "I look.", calls: [{ name: tool, arguments: { url: "https://example.org/" } }] }),
      scripts.answers({ calls: [{ name: "send", arguments: { to: "eve@example.org", text: "the report" } }] }),
      scripts.answers({ text: "Done." }),
    );
    const tools = await where.connect(label);
    const parts = { url: where.gateway.url, key: where.keys.agent, label, tools };
    const calls = await runAgent(api, "How is the weather?", parts);
    await tools.close();
    expect(calls.map(({ name }) => name)).to.deep.equal([tool, "send"]);
    return calls.map(({ text }) => text);
  }

  for (const api of apis) {
    it(`holds the mail that a model asks for once a tool brought in what strangers wrote: ${api}`, async () => {
      const [label, before] = [await world.newLabel(), (await world.mails()).length];
      const [page, sent] = await readAndSend(world, api, "fetch", label);
      expect(page).to.include(attack);
      expect(sent).to.match(
        /^Held for review: .*may be the wish of what `fetch` brought in, which named eve@example\.org \(rule session-watch\.untrusted-egress\)/,
      );
      expect((await world.mails()).length).to.equal(before);
      expect(world.provider.calls.at(-2)?.text).to.include(attack);
      expect(world.provider.calls.at(-1)?.text).to.include("Held for review");
      expect([await world.isHeld(await world.newLabel()), await world.isHeld(label, "colleague")]).to.deep.equal([
        false,
        false,
      ]);
      expect(await world.isHeld(label)).to.equal(true);
    });

    it(`sends it where the page is not of strangers: ${api}`, async () => {
      const before = (await world.mails()).length;
      expect((await readAndSend(world, api, "look", await world.newLabel()))[1]).to.equal("sent");
      expect((await world.mails()).length).to.equal(before + 1);
    });

    it(`sends it, counts it and puts on record that it would be held, with the rule in shadow mode: ${api}`, async () => {
      const [label, before] = [await trial.newLabel(), (await trial.mails()).length];
      expect((await readAndSend(trial, api, "fetch", label))[1]).to.equal("sent");
      expect((await trial.mails()).length).to.equal(before + 1);
      const records = await new EvidenceReader(trial.gateway.adminUrl, trial.keys.operator).recordsOf(
        (each) => each === label,
      );
      const decision = records.find(({ kind, action }) => kind === "decision" && action.tool === "send");
      expect(decision).to.include({ effect: "dispatched" });
      const would = decision?.evaluation?.shadow.find(({ name }) => name === "session-watch");
      expect(would).to.include({ verdict: "review" });
      expect(decision?.evaluation?.would_have?.map(({ rule }) => rule)).to.deep.equal([egress]);
      const metrics = await (await fetch(`${trial.gateway.metricsUrl}/metrics`)).text();
      expect(metrics).to.match(/^gateway_shadow_decisions_total\{[^}]*decision="review"[^}]*\} [1-9]/m);
    });

    const sdkOf = (where: TaintWorld, label: string): ModelSdk =>
      modelSdks(where.gateway.url, where.keys.agent, { "x-gateway-session-id": label }).find(
        (each) => each.api === api,
      ) as ModelSdk;

    it(`taints it with what an agent read by itself and tells its model: ${api}`, async () => {
      for (const [where, held] of [
        [world, true],
        [trusting, false],
      ] as const) {
        const label = await where.newLabel();
        where.provider.next(scripts.answers({ text: "I see." }));
        const { status } = await tellModel(where, api, label, attack);
        expect(status).to.equal(200);
        expect(await where.isHeld(label)).to.equal(held);
        expect(await where.isHeld(await where.newLabel())).to.equal(false);
      }
    });

    it(`does not taint it with harmless results: ${api}`, async () => {
      const label = await world.newLabel();
      await tellModel(world, api, label, "The weather is fine.");
      expect(await world.isHeld(label)).to.equal(false);
    });

    it(`taints it with what a model says, before a client reads of it: ${api}`, async () => {
      const label = await world.newLabel();
      const text = `I write to Eve, ${lure}. ${"More follows. ".repeat(200)}`;
      world.provider.next(scripts.stalls(answerEvents(api, { text }).slice(0, -4)));
      const abort = new AbortController();
      let seen = "";
      let held: Promise<boolean> | undefined;
      const model = `${api}-model`;
      const onText = (piece: string): void => {
        seen += piece;
        if (seen.includes(lure)) held ??= world.isHeld(label).finally(() => abort.abort());
      };
      await sdkOf(world, label)
        .stream({ model, text: "and now?", onText, signal: abort.signal })
        .catch(() => undefined);
      expect(await held).to.equal(true);
      const other = await world.newLabel();
      world.provider.next(scripts.answers({ text: "I write to Eve." }));
      await sdkOf(world, other).stream({ model, text: "and now?" });
      expect(await world.isHeld(other)).to.equal(false);
    });
  }

  it("shows reviewers what the session met, whole where they decide, by name where they choose", async () => {
    const label = await world.newLabel();
    const tools = await world.connect(label);
    await tools.callTool("fetch");
    await tools.close();
    await tellModel(world, "chat", label, attack);
    expect(await world.isHeld(label)).to.equal(true);
    const session = await sessionOf(world, label);
    const { items } = await askAdmin<{ items: readonly Approval[] }>(world, "/approvals?limit=500");
    const approval = items.find((each) => each.session.id === session);
    expect(approval?.tainted).to.deep.equal(["untrusted", "injection"]);
    const { held } = await askAdmin<ApprovalView>(world, `/approvals/${approval?.id}`);
    const taints = held?.action.session_state?.taints.map(({ name, target, tool }) => [name, target, tool]);
    expect(taints).to.deep.equal([
      ["untrusted", "web", "fetch"],
      ["injection", "open/chat-model", "chat.completions"],
    ]);
    const list = await gateway(world, "approvals", "list");
    expect(list.stdout.split("\n").find((line) => line.startsWith(`${approval?.id}`))).to.match(
      / {2}untrusted, injection$/,
    );
    const { stdout } = await gateway(world, "approvals", "show", `${approval?.id}`);
    expect(stdout).to.match(/^risk {8}\d+ of 100, its session's \d+$/m);
    expect(stdout).to.match(/^tainted {5}untrusted, at \d{4}-\S+Z by fetch on web, action [0-9a-f-]{36}$/m);
    expect(stdout).to.match(/^tainted {5}injection, at \S+ by chat\.completions on open\/chat-model, action /m);
  });

  it("is told in its evidence, which both verifiers accept", async () => {
    const label = await world.newLabel();
    const tools = await world.connect(label);
    await tools.callTool("fetch");
    await tools.close();
    await tellModel(world, "messages", label, attack);
    const session = await sessionOf(world, label);
    const report = await askAdmin<SessionReport>(world, `/evidence/sessions/${session}/report?format=json`);
    const told = report.events.flatMap(({ detail }) => (detail.event === "tainted" ? [detail] : []));
    const actionOf = (tool: string): string | undefined => report.actions.find((each) => each.tool === tool)?.id;
    expect(told).to.deep.equal([
      { event: "tainted", session, taints: ["untrusted"], action: actionOf("fetch"), target: "web", tool: "fetch" },
      {
        event: "tainted",
        session,
        taints: ["injection"],
        action: actionOf("messages"),
        target: "claude/messages-model",
        tool: "messages",
      },
    ]);
    const file = join(world.gateway.folder, "bundle.jsonl");
    await gateway(world, "evidence", "export", session, "--file", file);
    const verdicts = [
      await gateway(world, "evidence", "verify", file, "--json"),
      await run("python3", join(repositoryRoot, "sdk", "evidence", "verify.py"), file),
    ];
    for (const { stdout } of verdicts) expect(JSON.parse(stdout)).to.include({ verdict: "self-attested" });
  });
});

async function sessionOf({ gateway, keys }: TaintWorld, label: string): Promise<string> {
  const sessions = await new EvidenceReader(gateway.adminUrl, keys.operator).sessions();
  return sessions.find((each) => each.label === label)?.id ?? "";
}

async function askAdmin<T>({ gateway, keys }: TaintWorld, path: string): Promise<T> {
  const response = await fetch(`${gateway.adminUrl}/admin/v1${path}`, { headers: { "x-api-key": keys.operator } });
  return (await response.json()) as T;
}

function gateway({ gateway, keys }: TaintWorld, ...args: string[]): Promise<Finished> {
  return runGateway(args, { GATEWAY_API_KEY: keys.operator, GATEWAY_ADMIN_URL: gateway.adminUrl });
}

function run(program: string, ...args: string[]): Promise<{ readonly stdout: string }> {
  return new Promise((resolve) => execFile(program, args, (_, stdout) => resolve({ stdout })));
}

/** Tells a model what a tool answered that the agent has by itself. */
function tellModel({ gateway, keys }: TaintWorld, api: ModelApi, label: string, content: string): Promise<Response> {
  const chat = [
    { role: "user", content: "read the page" },
    { role: "assistant", tool_calls: [{ id: "t1", type: "function", function: { name: "browse", arguments: "{}" } }] },
    { role: "tool", tool_call_id: "t1", content },
  ];
  const blocks = [
    { role: "user", content: "read the page" },
    { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "browse", input: {} }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content }] },
  ];
  const body =
    api === "chat"
      ? { model: "chat-model", messages: chat }
      : { model: "messages-model", max_tokens: 100, messages: blocks };
  return fetch(`${gateway.url}/v1/${api === "chat" ? "chat/completions" : "messages"}`, {
    method: "POST",
    headers: { "x-api-key": keys.agent, "content-type": "application/json", "x-gateway-session-id": label },
    body: JSON.stringify(body),
  });
}
