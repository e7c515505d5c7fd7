import { expect } from "chai";
import { Cancellation } from "../../../core/action/cancellation.ts";
import type { ActionEnvelope } from "../../../core/action/envelope.ts";
import type { Verdict } from "../../../core/action/policy.ts";
import { EgressGuard } from "../../../core/egress/egress-guard.ts";
import { EngineError } from "../../../core/engine/engine-fault.ts";
import { makeEngine } from "../../../core/engine/engine-load.ts";
import { type Engine, EnginePolicy } from "../../../core/engine/engine-policy.ts";
import { readEngine } from "../../../core/engine/manifest.ts";
import { PolicyServer } from "../../../core/engine/server/policy-server.ts";
import { PolicyChain } from "../../../core/policy/chain.ts";
import { noteCall } from "../../support/cedar-folder.ts";
import { engineExtension, engineRefusal } from "../../support/engine-folder.ts";
import {
  agentPolicies,
  cedarAgentFiles,
  opaServerFiles,
  StandIn,
  standInCedarAgent,
  standInOpa,
} from "../../support/policy-server.ts";

type Files = Readonly<Record<string, string>>;

let nowMs = 0;
const egress = new EgressGuard({ privateHosts: [] });

/** An engine that asks a stand-in. */
function engineOf(
  standIn: StandIn,
  files: Files,
  changed: { deadlineMs?: number; token?: string } = {},
): Promise<Engine> {
  const { deadlineMs = 30_000, token = null } = changed;
  const connect = (own: number | null): PolicyServer =>
    new PolicyServer({
      ...{ url: `${standIn.url}/`, token, deadlineMs: own ?? deadlineMs, egress, onCircuit: () => undefined },
      elapsedMs: () => nowMs,
    });
  return makeEngine("folder", readEngine("folder", null, engineExtension(files)), connect);
}

const rulesOf = ({ decision, findings }: Verdict): readonly unknown[] => [decision, findings.map(({ rule }) => rule)];

async function faultOf(engine: Engine, action: ActionEnvelope, cancel?: Cancellation): Promise<EngineError> {
  const fault = await Promise.resolve(engine.judge(action, cancel)).catch((error: unknown) => error);
  if (fault instanceof EngineError) return fault;
  throw new Error(`expected no verdict, got ${JSON.stringify(fault)}`);
}

describe("an engine on an OPA server", () => {
  let opa: StandIn;
  let engine: Engine;
  beforeEach(async () => {
    nowMs = 0;
    opa = await standInOpa().start();
    engine = await engineOf(opa, opaServerFiles(), { token: "t0ken" });
  });
  afterEach(() => opa.stop());

  const decide = async (text: string): Promise<Verdict> => engine.judge(noteCall({ text }));

  it("posts the input of `rego` to the entrypoint, with its token", async () => {
    const verdict = await decide("plain");
    expect(rulesOf(verdict)).to.deep.equal(["allow", []]);
    expect(verdict.answerDigest).to.equal(opa.digests[0]);
    const [{ path, authorization, body } = { path: "", authorization: "", body: {} }] = opa.requests;
    expect([path, authorization]).to.deep.equal(["/v1/data/gateway/decision", "Bearer t0ken"]);
    expect(Object.keys(body)).to.deep.equal(["input"]);
    expect(body.input).to.deep.include({ tool: "write_note", phase: "input", arguments: { text: "plain" } });
    expect(body.input).not.to.have.property("history");
  });

  it("decides as the server says, with its reasons and the digest of the answer", async () => {
    const verdict = await decide("a secret");
    expect(rulesOf(verdict)).to.deep.equal(["block", ["notes.no-secret"]]);
    expect(verdict.answerDigest).to.equal(opa.digests.at(-1));
    expect(rulesOf(await decide("a refusal"))).to.deep.equal(["block", ["notes.not-permitted"]]);
    expect(rulesOf(await decide("a question"))).to.deep.equal(["review", ["notes.asks"]]);
  });

  for (const [text, reason, message] of [
    ["a hole", "answer", "`gateway/decision` is undefined on the server"],
    ["a number", "answer", "expected true, false, or an object"],
    ["a list", "answer", "expected an object with `result`"],
    ["a half", "answer", "expected strict JSON"],
    ["a pair", "answer", "expected strict JSON"],
    ["a zip", "answer", "without content-encoding"],
    ["a conflict", "status", "expected HTTP 200 from the server, got 500"],
    ["a made thing", "status", "got 201"],
    ["a redirect", "status", "got 307"],
    ["an absence", "status", "got 503"],
  ] as const) {
    it(`fails for ${text}, with the digest of the answer`, async () => {
      const fault = await faultOf(engine, noteCall({ text }));
      expect(fault.reason).to.equal(reason);
      expect(fault.message).to.include(message);
      expect(fault.answerDigest).to.equal(opa.digests.at(-1));
      expect(opa.requests).to.have.length(1);
    });
  }

  for (const [text, reason, message] of [
    ["a flood", "answer", "at most 65536 bytes"],
    ["a cut", "unreachable", "the connection to the server failed"],
  ] as const) {
    it(`fails for ${text}, of which there is no digest`, async () => {
      const fault = await faultOf(engine, noteCall({ text }));
      expect([fault.reason, fault.answerDigest]).to.deep.equal([reason, undefined]);
      expect(fault.message).to.include(message);
    });
  }

  it("fails for an action that is too large, and asks nobody", async () => {
    expect((await faultOf(engine, noteCall({ text: "x".repeat(1_048_576) }))).reason).to.equal("input");
    expect(opa.requests).to.deep.equal([]);
  });

  it("fails after its own deadline, and ends the request", async () => {
    const hasty = await engineOf(
      opa,
      opaServerFiles({ "engine.yaml": `${opaServerFiles()["engine.yaml"]}deadline_ms: 50\n` }),
    );
    const fault = await faultOf(hasty, noteCall({ text: "a wait" }));
    expect([fault.reason, fault.message]).to.deep.equal(["timeout", "expected an answer within 50 ms"]);
    await opa.until(() => opa.abandoned === 1 || opa.requests.length === 0);
  });

  it("ends the request of an agent that goes away, and none that ended before", async () => {
    const cancel = new Cancellation();
    const fault = faultOf(engine, noteCall({ text: "a wait" }), cancel);
    await opa.until(() => opa.requests.length === 1);
    cancel.abort(new Error("gone"));
    expect((await fault).reason).to.equal("cancelled");
    await opa.until(() => opa.abandoned === 1);
    expect((await faultOf(engine, noteCall({ text: "plain" }), cancel)).reason).to.equal("cancelled");
    expect(opa.requests).to.have.length(1);
  });

  it("asks no more while the server fails, and again once it answers", async () => {
    for (let round = 0; round < 5; round++)
      expect((await faultOf(engine, noteCall({ text: "a cut" }))).reason).to.equal("unreachable");
    expect((await faultOf(engine, noteCall({ text: "plain" }))).reason).to.equal("circuit_open");
    expect(opa.requests).to.have.length(5);
    nowMs = 1_000;
    expect((await decide("plain")).decision).to.equal("allow");
    expect((await decide("plain")).decision).to.equal("allow");
  });

  it("keeps asking after failures that one action may cause", async () => {
    for (const text of ["a conflict", "a hole", "a flood", "a number", "a redirect", "a half"])
      expect((await faultOf(engine, noteCall({ text }))).reason).to.be.oneOf(["status", "answer"]);
    expect((await decide("plain")).decision).to.equal("allow");
  });

  it("has at most 64 requests in flight", async () => {
    const cancel = new Cancellation();
    const waiting = Array.from({ length: 64 }, () => faultOf(engine, noteCall({ text: "a wait" }), cancel));
    expect((await faultOf(engine, noteCall({ text: "plain" }))).reason).to.equal("overloaded");
    cancel.abort(new Error("gone"));
    expect(new Set((await Promise.all(waiting)).map(({ reason }) => reason))).to.deep.equal(new Set(["cancelled"]));
    expect((await decide("plain")).decision).to.equal("allow");
  });

  it("blocks in the chain where it fails, marked as not replayable, with the digest of what was answered", async () => {
    const failures: string[] = [];
    const observer = {
      failed: (...failure: readonly string[]) => void failures.push(failure.join(" ")),
      circuit: () => undefined,
    };
    const { ref } = readEngine("folder", null, engineExtension(opaServerFiles()));
    const policy = new EnginePolicy({ ref, mode: "enforce", phases: ["input"], engine, observer });
    const options = { defaultDecision: "allow", deadlineMs: 30_000, newId: () => "id", elapsedMs: () => 0 } as const;
    const chain = new PolicyChain({ ...options, policies: [policy] });
    const { decision, verdicts, determining } = await chain.evaluate(noteCall({ text: "a hole" }));
    expect(decision).to.equal("block");
    expect(verdicts[0]).to.include({ replayable: false, answerDigest: opa.digests[0] });
    expect(verdicts[0]?.error).to.include("`gateway/decision` is undefined on the server");
    expect(determining.map(({ rule }) => rule)).to.deep.equal(["policy_error"]);
    const cut = await chain.evaluate(noteCall({ text: "a cut" }));
    expect(cut.decision).to.equal("block");
    expect(cut.verdicts[0]).to.include({ replayable: false });
    expect(cut.verdicts[0]).not.to.have.property("answerDigest");
    expect(failures).to.deep.equal(["opa-server answer", "opa-server unreachable"]);
  });

  it("does not connect where the guard refuses", async () => {
    const guarded = new EgressGuard({ privateHosts: [] });
    guarded.claimPort(Number(new URL(opa.url).port));
    const server = new PolicyServer({
      ...{ url: opa.url, token: null, deadlineMs: 30_000, egress: guarded, onCircuit: () => undefined },
    });
    const refused = await server.post("/v1/data/x", "{}").catch((error: EngineError) => error);
    expect(refused).to.include({
      reason: "unreachable",
      message: "the connection to the server failed (EGRESS_REFUSED)",
    });
    expect(opa.requests).to.deep.equal([]);
  });

  const manifest = String(opaServerFiles()["engine.yaml"]);
  for (const [name, files, reason] of [
    ["tests, which would need the server", { "tests/a.yaml": "cases: []" }, "tests/a.yaml:1:1: expected no tests"],
    ["a path that leaves its place", { "engine.yaml": `${manifest}entrypoint: a/../b\n` }, "engine.yaml:5:"],
    ["policies of another engine", { "engine.yaml": `${manifest}policies: [{ id: a }]\n` }, "expected no `policies`"],
  ] as const satisfies readonly (readonly [string, Files, string])[]) {
    it(`is refused for ${name}`, async () => {
      expect(await engineRefusal(opaServerFiles(files))).to.include(reason);
    });
  }

  it("is refused a deadline where it evaluates here", async () => {
    const local = manifest.replace("opa-server", "rego");
    expect(await engineRefusal({ "engine.yaml": `${local}deadline_ms: 9\n` })).to.include("expected no `deadline_ms`");
  });
});

describe("an engine on a cedar-agent", () => {
  let agent: StandIn;
  let engine: Engine;
  before(async () => {
    nowMs = 0;
    agent = await (await standInCedarAgent(agentPolicies)).start();
    engine = await engineOf(agent, cedarAgentFiles());
  });
  after(() => agent.stop());

  it("decides by the server's policies, which see the gateway's agent and tool", async () => {
    const verdict = await engine.judge(noteCall({ text: "plain" }));
    expect(rulesOf(verdict)).to.deep.equal(["allow", ["agents.write"]]);
    expect(verdict.answerDigest).to.equal(agent.digests.at(-1));
    const { body = {} } = agent.requests.at(-1) ?? {};
    expect(body.action).to.equal(`Action::"write"`);
    expect(body.resource).to.equal(`Tool::"local/write_note"`);
    expect(body.context).to.deep.equal({ arguments: { text: "plain" } });
  });

  it("says of a policy what the signed folder says", async () => {
    const { decision, findings } = await engine.judge(noteCall({ text: "a secret" }));
    expect(decision).to.equal("block");
    expect(findings).to.deep.equal([
      {
        ...{ rule: "agents.no-secret", decision: "block", message: "secrets stay here", severity: "critical" },
        ...{ risk: 90, mode: "enforce" },
      },
    ]);
    const held = await engine.judge(noteCall({}, { capability: "delete" }));
    expect(held.findings[0]).to.include({ rule: "agents.delete-asks", decision: "review", approvals: 2 });
    const other = await engine.judge(noteCall({ text: "plain" }, { target: "elsewhere" }));
    expect(rulesOf(other)).to.deep.equal(["block", ["agents.not-permitted"]]);
  });

  it("fails where a policy fails on the server, which Cedar leaves out of its answer", async () => {
    const fault = await faultOf(engine, noteCall({ count: 3 }));
    expect([fault.reason, fault.message]).to.deep.equal(["evaluation", "1 policies failed on the server"]);
    expect(fault.answerDigest).to.equal(agent.digests.at(-1));
  });

  it("blocks what the schema does not declare or fit, and asks nobody", async () => {
    const asked = agent.requests.length;
    const read = await engine.judge(noteCall({}, { capability: "read" }));
    expect(rulesOf(read)).to.deep.equal(["block", ["agents.not-permitted"]]);
    expect(read).not.to.have.property("answerDigest");
    expect((await faultOf(engine, noteCall({ text: 3 }))).reason).to.equal("input");
    expect(agent.requests).to.have.length(asked);
  });

  it("names tools so that Cedar reads the same name", async () => {
    const tool = `a"\\\n\u007f\u2028b`;
    const verdict = await engine.judge(noteCall({ text: "plain" }, { tool }));
    expect(verdict.decision).to.equal("allow");
    expect(agent.requests.at(-1)?.body.resource).to.equal(`Tool::"local/a\\"\\\\\\u{a}\\u{7f}\u2028b"`);
  });

  for (const [name, answer, message] of [
    ["another decision", { decision: "allow", diagnostics: { reason: ["a"], errors: [] } }, "`decision` to be Allow"],
    ["no diagnostics", { decision: "Allow" }, "`diagnostics` with lists"],
    ["no errors", { decision: "Allow", diagnostics: { reason: ["a"] } }, "`diagnostics` with lists"],
    ["Allow by nobody", { decision: "Allow", diagnostics: { reason: [], errors: [] } }, "Allow to name a policy"],
    ["an id that is none", { decision: "Deny", diagnostics: { reason: ["A B"], errors: [] } }, "ids of policies"],
    ["a list", [], "`decision` to be Allow"],
  ] as const) {
    it(`fails for an answer with ${name}`, async () => {
      const odd = await new StandIn(() => ({ body: JSON.stringify(answer) })).start();
      try {
        const fault = await faultOf(await engineOf(odd, cedarAgentFiles()), noteCall({ text: "plain" }));
        expect(fault.reason).to.equal("answer");
        expect(fault.message).to.include(message);
        expect(fault.answerDigest).to.equal(odd.digests[0]);
      } finally {
        await odd.stop();
      }
    });
  }

  const manifest = String(cedarAgentFiles()["engine.yaml"]);
  for (const [name, files, reason] of [
    ["a schema that is none", { "schema.cedarschema": "entity" }, "schema.cedarschema:1:"],
    ["an entrypoint", { "engine.yaml": `${manifest}entrypoint: a/b\n` }, "expected no `entrypoint`"],
    ["a policy twice", { "engine.yaml": `${manifest}  - { id: no-secret }\n` }, "an id of its own"],
    [
      "approvals of no review",
      { "engine.yaml": `${manifest}  - { id: b, approvals: 2 }\n` },
      "expected `approvals` only",
    ],
  ] as const satisfies readonly (readonly [string, Files, string])[]) {
    it(`is refused for ${name}`, async () => {
      expect(await engineRefusal(cedarAgentFiles(files))).to.include(reason);
    });
  }
});
