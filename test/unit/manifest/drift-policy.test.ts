import { expect } from "chai";
import { type ActionEnvelope, everyUpstream } from "../../../core/action/envelope.ts";
import { findPlaces } from "../../../core/action/fact.ts";
import type { JsonObject } from "../../../core/action/json.ts";
import { DriftPolicy, type DriftRule } from "../../../core/manifest/manifest-control.ts";
import { type Declaration, declare } from "../../../core/manifest/plan.ts";
import { readTaskManifest } from "../../../core/manifest/task-manifest.ts";
import { checkVerdict } from "../../../core/policy/verdict.ts";
import { makeAction } from "../../support/action.ts";

const end = Date.parse("2026-06-01T00:00:00Z");
const manifest = {
  task: "nightly",
  principal: "agent",
  expected_tools: ["files/read_*", "files/write_file"],
  expected_resources: ["/srv/app/*", "file:///srv/app/*", "prompt:summary"],
  write_domains: ["/srv/app"],
  max_actions: 3,
  expires_at: new Date(end).toISOString(),
};

describe("DriftPolicy.evaluate(action)", () => {
  let nowMs: number;
  let declaration: Declaration | undefined;
  let asked: string[];

  beforeEach(() => {
    nowMs = end - 1;
    declaration = declare(readTaskManifest(manifest), "owner", "2026-05-01T00:00:00.000Z");
    asked = [];
  });

  function policy(rule: DriftRule = { mode: "enforce", decision: "review" }): DriftPolicy {
    const find = (tenant: string, task: string): Declaration | undefined => {
      asked.push(`${tenant} ${task}`);
      return declaration;
    };
    return new DriftPolicy({ rule, requireTask: false, manifests: { find }, clock: () => nowMs });
  }

  function action(changed: Partial<ActionEnvelope> = {}, actions = 0): ActionEnvelope {
    const args = (changed.arguments ?? {}) as JsonObject;
    const session_state = { risk: 0, actions, reviews: 0, tools: 0, new_tool: true, taints: [] };
    const expected = {
      task: "nightly",
      target: "files",
      tool: "read_file",
      facts: { ...findPlaces(args), effect: "read" as const },
      session_state,
    };
    return makeAction({ ...expected, ...changed });
  }

  /** The decision and the last part of each finding's rule. */
  function said(of: ActionEnvelope, by = policy()): string {
    const { decision, findings } = by.evaluate(of);
    return [decision, ...findings.map(({ rule }) => rule.replace("session.drift.", ""))].join(" ");
  }

  it("says nothing of what is expected, and permits nothing", () => {
    expect(said(action())).to.equal("abstain");
    expect(said(action({ arguments: { path: "/srv/app/x" } }))).to.equal("abstain");
    expect(asked[0]).to.equal("acme nightly");
  });

  describe("values", () => {
    const limits = {
      expected_hosts: ["*.acme.example"],
      expected_addresses: ["*@acme.example"],
      arguments: { read_file: { account: ["DE1*", "7"], "/lines/*/to": ["ada"] }, "files/read_all": { of: ["a"] } },
    };
    const address = (plain: string, odd = false): Partial<ActionEnvelope> => ({
      facts: { hosts: [], paths: [], more: false, effect: "read", address: [{ kind: "mail", plain, odd }] },
    });
    const expectSaid = (args: JsonObject, expected: string, changed: Partial<ActionEnvelope> = {}): void => {
      expect(said(action({ arguments: args, ...changed })), JSON.stringify(args)).to.equal(expected);
    };

    beforeEach(() => {
      declaration = declare(readTaskManifest({ ...manifest, ...limits }), "owner", "2026-05-01T00:00:00.000Z");
    });

    it("are departures where an argument has another one than the manifest lists", () => {
      for (const args of [{}, { account: null }, { account: "DE12" }, { account: 7 }, { account: ["DE1", "DE12"] }]) {
        expectSaid(args, "abstain");
      }
      for (const account of ["DE2", 8, true, { id: "DE1" }, ["DE1", "DE2"], [["DE1"]]]) {
        expectSaid({ account }, "review argument");
      }
      expectSaid({ lines: [{ to: "ada" }, { to: "ada" }] }, "abstain");
      expectSaid({ lines: [{ to: "ada" }, { to: "eve" }] }, "review argument");
      expectSaid({ of: "b" }, "abstain");
      expectSaid({ of: "b" }, "review argument", { tool: "read_all" });
    });

    it("are departures where a host or an address is not expected, for what only reads too", () => {
      expectSaid({ url: "https://WWW.acme.example/" }, "abstain");
      expectSaid({ url: "https://evil.example/" }, "review host");
      expectSaid({}, "abstain", address("ada@acme.example"));
      expectSaid({}, "review address", address("ada@evil.example"));
      expectSaid({}, "review address", address("ada@acme.example", true));
    });
  });

  it("asks nobody about an action without a task", () => {
    expect(said(action({ task: null, tool: "rm" }))).to.equal("abstain");
    expect(asked).to.deep.equal([]);
  });

  it("blocks what a task without a manifest attempts: it was withdrawn", () => {
    declaration = undefined;
    expect(said(action())).to.equal("block expired");
  });

  it("speaks of attempts alone, and not of what goes to every upstream", () => {
    nowMs = end;
    for (const phase of ["list", "output"] as const) expect(said(action({ phase, tool: "rm" }))).to.equal("abstain");
    expect(said(action({ tool: "tools/list", target: everyUpstream }))).to.equal("abstain");
  });

  it("holds a tool that is not expected, on any upstream", () => {
    expect(said(action({ tool: "delete_file" }))).to.equal("review tool");
    expect(said(action({ target: "files2" }))).to.equal("review tool");
    expect(said(action({ tool: "sampling/createMessage" }))).to.equal("review tool");
  });

  it("holds a path that is not expected, also behind a word of a command", () => {
    expect(said(action({ arguments: { path: "/srv/app/../x" } }))).to.equal("review resource");
    expect(said(action({ arguments: { command: "/srv/app/run </etc/passwd" } }))).to.equal("review resource");
    expect(said(action({ arguments: { path: "/srv/app/my notes.txt" } }))).to.equal("abstain");
  });

  const resources: Readonly<Record<string, readonly [tool: string, params: JsonObject, said: string]>> = {
    "a URI": ["resources/read", { uri: "file:///srv/app/x" }, "abstain"],
    "another URI": ["resources/read", { uri: "file:///srv/x" }, "review resource"],
    "a URI that climbs": ["resources/read", { uri: "file:///srv/app/../x" }, "review resource"],
    "a URI that climbs in escapes": ["resources/subscribe", { uri: "file:///srv/app/%2e%2e/x" }, "review resource"],
    "a prompt": ["prompts/get", { name: "summary" }, "abstain"],
    "another prompt": ["prompts/get", { name: "summary2" }, "review resource"],
    "a completion for a prompt": ["completion/complete", { ref: { type: "ref/prompt", name: "summary" } }, "abstain"],
    "a completion for another resource": [
      "completion/complete",
      { ref: { type: "ref/resource", uri: "db://x" } },
      "review resource",
    ],
  };
  for (const [what, [tool, params, expected]] of Object.entries(resources)) {
    it(`says \`${expected}\` of ${what}, which is no tool`, () => {
      expect(said(action({ tool, arguments: params }))).to.equal(expected);
    });
  }

  it("holds what reaches beyond the write domains where it does more than read", () => {
    const outside = { arguments: { url: "https://evil.example" } };
    expect(said(action(outside))).to.equal("abstain");
    for (const capability of ["write", "delete", "execute", "deploy", "network", "approve"] as const) {
      expect(said(action({ ...outside, capability })), capability).to.equal("review write_domain");
    }
  });

  it("counts what is not known as outside", () => {
    const facts = { hosts: [], paths: ["/srv/app/x"], more: true, effect: "read" as const };
    expect(said(action({ capability: "write", facts }))).to.equal("review resource write_domain");
    const wide = { ...manifest, expected_resources: ["*"], write_domains: ["*"] };
    declaration = declare(readTaskManifest(wide), "owner", "");
    expect(said(action({ capability: "write", facts }))).to.equal("abstain");
  });

  it("blocks the action after the last one, and none before [R8-3]", () => {
    expect([2, 3, 4].map((actions) => said(action({}, actions)))).to.deep.equal([
      "abstain",
      "block actions",
      "block actions",
    ]);
  });

  it("blocks from the moment it ends", () => {
    expect(said(action())).to.equal("abstain");
    nowMs = end;
    expect(said(action())).to.equal("block expired");
  });

  it("asks of a model request nothing but its number and its time", () => {
    const model = { protocol: "model", tool: "chat.completions", target: "mock/mock", capability: "generate" } as const;
    const { facts: _, ...request } = action({ ...model, arguments: { text: "/etc/passwd" } });
    expect(said(request)).to.equal("abstain");
    const spent = { ...action({}, 3).session_state } as NonNullable<ActionEnvelope["session_state"]>;
    expect(said({ ...request, session_state: spent })).to.equal("block actions");
  });

  it("throws for an action that nobody showed with its session: nobody may guess that it is the first", () => {
    const { session_state: _, ...blind } = action();
    expect(() => policy().evaluate(blind)).to.throw(TypeError, "session's state");
    const { facts: __, ...unread } = action();
    expect(() => policy().evaluate(unread)).to.throw(TypeError, "facts");
  });

  it("says all departures at once, the strictest counts, and each has points for the session [R2.5-3]", () => {
    const spent = action({ tool: "rm", capability: "delete", arguments: { path: "/etc" } }, 3);
    expect(said(spent)).to.equal("block actions tool resource write_domain");
    const verdict = policy().evaluate(spent);
    expect(verdict.risk).to.equal(Math.max(...verdict.findings.map(({ risk }) => risk)));
    for (const { session_risk: points } of verdict.findings) expect(points).to.be.greaterThan(0);
    expect(checkVerdict(verdict, spent)).to.deep.equal(verdict);
  });

  it("blocks what is not expected where it is told to", () => {
    expect(said(action({ tool: "rm" }), policy({ mode: "enforce", decision: "block" }))).to.equal("block tool");
  });

  it("decides nothing in shadow mode, the manifest's own before the configured [R3.2-12]", () => {
    const shadow: DriftRule = { mode: "shadow", decision: "review" };
    const strange = action({ tool: "rm" });
    expect(said(strange, policy(shadow))).to.equal("abstain tool");
    expect(checkVerdict(policy(shadow).evaluate(strange), strange)).to.be.an("object");
    declaration = declare(readTaskManifest({ ...manifest, mode: "enforce" }), "owner", "");
    expect(said(strange, policy(shadow))).to.equal("review tool");
    declaration = declare(readTaskManifest({ ...manifest, mode: "shadow" }), "owner", "");
    expect(said(strange)).to.equal("abstain tool");
  });

  it("names at most three places, each cut to 256 characters", () => {
    const paths = Array.from({ length: 9 }, (_, index) => `/etc/${index}/${"x".repeat(900)}`);
    const [finding] = policy().evaluate(action({ arguments: { paths } })).findings;
    expect(finding?.message.length).to.be.within(3 * 256, 4 * 256);
  });
});
