import { expect } from "chai";
import type { ModelApi } from "../../../core/action/model-api.ts";
import type { ActionRecord } from "../../../core/evidence/record/record.ts";
import { scripts } from "../../fixture/model-provider.ts";
import { Agent, type Answer } from "../../support/agent.ts";
import { type Choice, choosingPlugin } from "../../support/choosing-plugin.ts";
import { type Mood, MoodyUpstream } from "../../support/moody-upstream.ts";
import { PackFolders } from "../../support/policy-pack.ts";
import { abstain } from "../../support/wasm-plugin.ts";
import { askModel, type Told } from "../model/ask.ts";
import { type ModelWorld, openModelWorld } from "../model/world.ts";

/** How a plugin fails at an action whose JSON holds a word; `near` and `far` stand before the word. */
const failures: readonly Choice[] = [
  ["-throws", abstain, "(call $error_set (i64.const 8))"],
  ["-traps", abstain, "unreachable"],
  ["-never-ends", abstain, "(loop $forever (br $forever))"],
  ["-says-nothing", abstain, "(return (i32.const 0))"],
  ["-says-nan", '{"decision":"allow","findings":[],"risk":NaN}'],
  ["-says-undefined", '{"findings":[]}'],
  ["-says-permit", '{"decision":"permit","findings":[]}'],
];
/** With so much memory, a plugin is only ever called in the worker pool. */
const farPages = 32;

/** A word that makes one policy fail, and what evidence then says. */
interface Failing {
  readonly word: string;
  readonly policy: string;
  readonly rule: string;
}

const failing: readonly Failing[] = [
  ...["near", "far"].flatMap((policy) =>
    failures.map(([end]) => ({ word: policy + end, policy, rule: "policy_error" })),
  ),
  ...["throws", "never-ends"].map((end) => ({ word: `pack-${end}`, policy: "open", rule: `open.${end}` })),
];
const harmless = "harmless";

const hundred = `[${"0,".repeat(99)}0]`;
const endless = `${hundred}.all(a, ${hundred}.all(b, ${hundred}.all(c, a + b + c >= 0)))`;

/** Rules of the pack that fail: one asks for a number that is none, one loops a million times. */
const rules = (
  [
    ["throws", (text: string) => `int(${text}) == 1`],
    ["never-ends", () => endless],
  ] as const
)
  .flatMap(([end, fails]) => {
    const at = (text: string): string => `${text}.contains("pack-${end}") && ${fails(text)}`;
    const rule = (step: string, phases: string, when: string): string =>
      `  - { id: open.${end}${step}, title: T, decision: allow, match: { phase: [${phases}] }, when: '${when}' }\n`;
    return [
      rule("", "list, input", at("tool")),
      rule("-asked", "input", `leaves(args).exists(leaf, ${at("leaf.text")})`),
      rule("-answered", "output", `leaves(output).exists(leaf, ${at("leaf.text")})`),
    ];
  })
  .join("");

/** An upstream that answers with a text. */
function saying(text: string): Mood {
  return (response, id) => {
    const body = { jsonrpc: "2.0", id, result: { content: [{ type: "text", text }] } };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
  };
}

/** Long enough that a stream of it is under way before the word comes, and goes on after it. */
const longTextWith = (word: string): string => `${"so it went ".repeat(40)}${word} ${"and on ".repeat(40)}`;

describe("a policy that cannot answer", () => {
  const folders = new PackFolders();
  let upstream: MoodyUpstream;
  let world: ModelWorld;
  let agent: Agent;

  before(async () => {
    upstream = await MoodyUpstream.start();
    // Harmless ones between, for a plugin that fails five times in a row rests.
    const names = failing.flatMap(({ word }, index) => [word, `${harmless}-${index}`]);
    upstream.publish(["echo", ...names].map((name) => ({ name, inputSchema: { type: "object" } })));
    const plugin = async (name: string, pages: number): Promise<string> => {
      const choices = failures.map(([end, ...rest]): Choice => [name + end, ...rest]);
      const files = choosingPlugin(name, choices, pages);
      const limits = `limits: { fuel: 50000000, memory_pages: ${farPages} }\n`;
      return folders.write({ ...files, "plugin.yaml": files["plugin.yaml"] + limits });
    };
    const paths = [await plugin("near", 1), await plugin("far", farPages)];
    world = await openModelWorld({
      rules,
      policy: `plugins: [${paths.map((path) => `{ path: "${path}" }`).join(", ")}]\n  deadline_ms: 5000`,
      more: `upstreams: [{ name: moody, transport: http, url: "${upstream.url}", protocol: legacy, connection: shared }]`,
    });
    agent = new Agent(world.gateway.url, world.keys.agent);
  });

  after(async () => {
    await agent?.hangUp();
    await world?.stop();
    upstream?.stop();
    await folders.remove();
  });

  beforeEach(() => {
    upstream.mood = saying(harmless);
    world.provider.script = scripts.answers({ text: harmless });
  });

  /** The record that was written last. */
  async function lastRecord(): Promise<ActionRecord | undefined> {
    return (await world.records()).toSorted((a, b) => a.seq - b.seq).at(-1);
  }

  function isBlocked({ result }: Answer): boolean {
    return result?.isError === true && result.content?.[0]?.text.startsWith("Blocked by policy") === true;
  }

  /** What evidence says last is that this policy could not answer, and that this blocked the action. */
  async function expectOnRecord({ policy, rule }: Failing, step: string, kind: string, effects: string[]) {
    const record = await lastRecord();
    expect(record?.kind).to.equal(kind);
    expect(record?.effect).to.be.oneOf(effects);
    expect(record?.evaluation).to.deep.include({ decision: "block", by_default: false, errors: [policy] });
    expect(record?.evaluation?.rules).to.include(policy === "open" ? `${rule}${step}` : rule);
  }

  const ask = (api: ModelApi, stream: boolean, text: string): Promise<Told> => askModel(world, { api, stream, text });

  it("about a tool in a list hides it, and blocks the call of it all the same [S29]", async () => {
    const { result } = (await agent.send("tools/list")) as { result?: { tools?: readonly { name: string }[] } };
    const others = failing.map((_, index) => `${harmless}-${index}`);
    expect(result?.tools?.map(({ name }) => name)).to.have.members(["echo", ...others]);
    for (const each of failing) {
      expect(isBlocked(await agent.call(each.word)), each.word).to.equal(true);
      await expectOnRecord(each, "", "decision", ["not_dispatched"]);
      expect(isBlocked(await agent.call("echo"))).to.equal(false);
    }
    expect(new Set(upstream.calls.map(({ name }) => name))).to.deep.equal(new Set(["echo"]));
  });

  for (const each of failing) {
    describe(`because it fails as \`${each.word}\``, () => {
      it("blocks the call of a tool, which the upstream never hears of [S29]", async () => {
        const calls = upstream.calls.length;
        expect(isBlocked(await agent.call("echo", { text: each.word }))).to.equal(true);
        await expectOnRecord(each, "-asked", "decision", ["not_dispatched"]);
        expect(upstream.calls).to.have.length(calls);
        expect(isBlocked(await agent.call("echo", { text: harmless }))).to.equal(false);
        expect(upstream.calls).to.have.length(calls + 1);
      });

      it("withholds the answer of a tool [S29]", async () => {
        for (const [word, blocks] of [
          [each.word, true],
          [harmless, false],
        ] as const) {
          upstream.mood = saying(word);
          const answer = await agent.call("echo");
          expect(JSON.stringify(answer).includes(word)).to.equal(!blocks);
          if (blocks) await expectOnRecord(each, "-answered", "outcome", ["success"]);
        }
      });

      for (const api of ["chat", "messages"] as const) {
        it(`blocks a request of the ${api} API, which no provider hears of [S29]`, async () => {
          const calls = world.provider.calls.length;
          expect((await ask(api, false, each.word)).status).to.equal(403);
          await expectOnRecord(each, "-asked", "decision", ["not_dispatched"]);
          expect(world.provider.calls).to.have.length(calls);
          expect((await ask(api, false, harmless)).status).to.equal(200);
        });

        it(`withholds an answer of the ${api} API, whole or streamed, and the word does not leave [S29]`, async () => {
          for (const stream of [false, true]) {
            world.provider.script = scripts.answers({ text: longTextWith(each.word) });
            const told = await ask(api, stream, "hello");
            expect(told.text).to.include("policy_blocked").and.not.include(each.word.slice(each.policy.length));
            expect(told.text.includes("went")).to.equal(stream);
            await expectOnRecord(each, "-answered", "outcome", stream ? ["unknown"] : ["success"]);
            world.provider.script = scripts.answers({ text: longTextWith(harmless) });
            expect((await ask(api, stream, "hello")).text)
              .to.include(harmless)
              .and.not.include("policy_blocked");
          }
        });
      }
    });
  }
});
