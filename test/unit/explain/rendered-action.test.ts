import { expect } from "chai";
import type { ActionEnvelope } from "../../../core/action/envelope.ts";
import type { JsonObject } from "../../../core/action/json.ts";
import type { Finding, Policy, Verdict } from "../../../core/action/policy.ts";
import { memberHider, type RenderedAction, renderAction } from "../../../core/explain/rendered-action.ts";
import { PolicyChain } from "../../../core/policy/chain.ts";
import { makeAction } from "../../support/action.ts";
import { openFirstParty } from "../../support/first-party.ts";

const nothing: Verdict = { decision: "abstain", findings: [], risk: 0 };

function pluginThat(evaluate: Policy["evaluate"], mode: Policy["mode"] = "enforce"): Policy {
  return { ref: { kind: "plugin", name: "p", version: "1.0.0", digest: "sha256:00", signer: null }, mode, evaluate };
}

function found(pointer?: string): Verdict {
  const finding = { rule: "p.a", decision: "block", message: "m", severity: "low", risk: 1, mode: "enforce" } as const;
  const findings: Finding[] = [pointer === undefined ? finding : { ...finding, pointer }];
  return { decision: "block", findings, risk: 1 };
}

function show(
  policies: readonly Policy[],
  changed: Partial<ActionEnvelope>,
  never: readonly string[] = [],
): Promise<RenderedAction | null> {
  const newId = (): string => "id";
  const chain = new PolicyChain({ policies, defaultDecision: "allow", deadlineMs: 1_000, newId, elapsedMs: () => 0 });
  return renderAction({ chain, hide: memberHider(never), newId }, makeAction(changed));
}

const argumentsOf = async (shown: Promise<RenderedAction | null>): Promise<unknown> => (await shown)?.action.arguments;

describe("showAction(parts, action)", () => {
  it("leaves an action in which nothing is found as it is", async () => {
    const told = await show([pluginThat(() => nothing)], { arguments: { a: "b" } });
    expect(told).to.deep.include({ isRedacted: false });
    expect(told?.action.arguments).to.deep.equal({ a: "b" });
  });

  it("hides what a plugin would redact, were it an answer, and what it points at", async () => {
    const guard = await openFirstParty("pii-guard");
    const egress = await openFirstParty("secret-egress");
    const args = { to: "née q7xv2.lmp9@example.com", note: "fine", deep: [{ key: "AKIAIOSFODNN7EXAMPLF" }] };
    const told = await show([guard, egress], { arguments: args });
    expect(told?.isRedacted).to.equal(true);
    const left = told?.action.arguments as { to: string; note: string; deep: unknown };
    expect(JSON.stringify(left)).to.not.include("q7xv2.lmp9").and.not.include("AKIA");
    expect(left).to.deep.include({ note: "fine", deep: [{ key: "[redacted]" }] });
    expect(JSON.stringify(await argumentsOf(show([], { arguments: args }))))
      .to.include("q7xv2")
      .and.include("AKIA");
  });

  it("hides it also for a plugin in shadow mode", async () => {
    const policy = pluginThat(({ phase }) => (phase === "input" ? found("/arguments/a") : nothing), "shadow");
    expect(await argumentsOf(show([policy], { arguments: { a: "b" } }))).to.deep.equal({ a: "[redacted]" });
  });

  it("hides more than a plugin tells of at once", async () => {
    const one = pluginThat(({ phase, arguments: args }) => {
      const [next] = Object.entries(args as JsonObject).filter(([, value]) => value === "secret");
      return phase === "input" && next !== undefined ? found(`/arguments/${next[0]}`) : nothing;
    });
    const secrets = (count: number): JsonObject =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`m${at}`, "secret"]));
    expect(JSON.stringify(await argumentsOf(show([one], { arguments: secrets(4) })))).to.not.include("secret");
    expect(await show([one], { arguments: secrets(50) }), "too many rounds").to.equal(null);
  });

  const silent: readonly (readonly [string, Policy["evaluate"]])[] = [
    [
      "throws",
      () => {
        throw new Error("no");
      },
    ],
    ["would block an answer and does not say where", ({ phase }) => (phase === "output" ? found() : nothing)],
    ["points at what is not there", ({ phase }) => (phase === "input" ? found("/arguments/none/at/all") : nothing)],
  ];
  for (const [what, evaluate] of silent) {
    it(`shows nothing where a plugin ${what}`, async () => {
      expect(await show([pluginThat(evaluate)], { arguments: { a: "b" } })).to.equal(null);
    });
  }

  it("hides members that evidence never keeps, and facts that were found in them", async () => {
    const url = {
      scheme: "https",
      host: "secret.example",
      zone: "name",
      port: 443,
      userinfo: false,
      odd: false,
    } as const;
    const facts = { hosts: ["secret.example"], paths: [], more: false, effect: "read", url: [url] } as const;
    const changed = { arguments: { url: "https://secret.example/x", other: 1 }, facts };
    const told = await show([], changed, ["read_*:url"]);
    expect(told?.action.arguments).to.deep.equal({ url: "[redacted]", other: 1 });
    expect(told?.action.facts).to.deep.equal({ hosts: [], paths: [], more: false, effect: "read" });
    expect(told?.isRedacted).to.equal(true);
    expect((await show([], changed, ["write_*:url"]))?.action.facts).to.deep.equal(facts);
  });

  it("tells nothing of the session's past", async () => {
    const past = {
      at: 0,
      protocol: "mcp",
      tool: "t",
      target: "t",
      capability: "read",
      decision: "allow",
      dispatched: true,
    } as const;
    const told = await show([], { history: [{ ...past, hosts: ["secret.example"], paths: [] }] });
    expect(told?.action).to.not.have.property("history");
    expect(told?.isRedacted).to.equal(false);
  });
});
