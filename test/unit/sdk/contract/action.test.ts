import { expect } from "chai";
import type { ActionFacts } from "../../../../core/action/action-fact.ts";
import { capabilities } from "../../../../core/action/capability.ts";
import { phases, protocols, type ActionEnvelope as Sealed, withOutput } from "../../../../core/action/envelope.ts";
import type { Verdict as Judged, Finding as Recorded, Redaction as Redacting } from "../../../../core/action/policy.ts";
import { roles } from "../../../../core/action/role.ts";
import type { ActionEnvelope, Finding, Redaction, Verdict } from "../../../../sdk/contract/index.ts";
import { exampleAction } from "../../../../sdk/harness/index.ts";
import { makeAction } from "../../../support/action.ts";
import { compileSchema } from "../../../support/contract.ts";

/** `true` is its only value, and only where each of the two can stand for the other, with all that may be left out. */
type Same<A, B> = Assignable<A, B> &
  Assignable<B, A> &
  Assignable<Required<A>, Required<B>> &
  Assignable<Required<B>, Required<A>>;
type Assignable<A, B> = [A] extends [B] ? true : never;
const same: readonly [
  Same<ActionEnvelope, Omit<Sealed, "history">>,
  Same<NonNullable<ActionEnvelope["facts"]>, ActionFacts>,
  Same<Finding, Omit<Recorded, "mode" | "session_risk" | "taints" | "ticket">>,
  Same<Redaction, Redacting>,
  Same<Verdict, { findings: readonly Finding[] } & Pick<Judged, "decision" | "redactions">>,
] = [true, true, true, true, true];

/** As much of a schema as says which words there are. */
interface Words {
  readonly [name: string]: { readonly enum?: readonly string[]; readonly properties?: Words } | undefined;
}

const run = {
  subcommand: "push",
  options: ["-f"],
  remotes: ["origin"],
  refs: ["main"],
  force: true,
  config_overrides: [],
};
const wholeFacts: Required<ActionFacts> = {
  hosts: ["a.example"],
  paths: ["/etc/hosts"],
  more: false,
  effect: "write",
  shell: {
    parsed: true,
    dynamic: true,
    more: false,
    effect: "unknown",
    commands: [
      {
        name: null,
        argv: [null, "-x"],
        wrappers: ["sudo"],
        env: ["A"],
        effect: "unknown",
        redirects: [{ op: ">", path: null }],
        hosts: [],
        paths: [],
        place: "pipe",
      },
    ],
  },
  git: [{ ...run, effect: "network" }],
  sql: {
    parsed: true,
    dialect: null,
    effect: "read",
    statements: [
      {
        kind: "select",
        effect: "read",
        tables: { read: ["a"], write: [] },
        functions: ["now"],
        has_where: false,
        where_is_constant: false,
        into: false,
        locking: false,
      },
    ],
    more: false,
  },
  url: [{ scheme: "http", host: "::1", address: "::1", zone: "loopback", port: 80, userinfo: false, odd: false }],
  path: [{ plain: "/srv", inside: true, odd: false }],
  address: [{ kind: "mail", plain: "a@b.example", odd: false }],
  calls: [{ tool: "bash", effect: "write" }],
};

describe("the SDK's contract of actions", () => {
  const isAction = compileSchema("action");

  it("has the types of the gateway", () => {
    expect(same).to.deep.equal([true, true, true, true, true]);
  });

  it("describes what the gateway hands to a plugin", () => {
    const whole = makeAction({
      continuation: { requestState: "x" },
      tool_definition: {
        digest: "sha256:00",
        annotations: {},
        title: "Echo",
        description: "Answers.",
        input_schema: { type: "object" },
        output_schema: { type: "object" },
      },
      session: { id: "s", transport: "sse", label: "l" },
      untrusted: true,
      facts: wholeFacts,
      session_state: {
        risk: 12,
        actions: 3,
        reviews: 1,
        tools: 2,
        new_tool: true,
        taints: [{ name: "untrusted", target: "web", tool: "fetch", action: "a", at: 1 }],
      },
    });
    for (const action of [makeAction(), whole, withOutput(whole, null), exampleAction()]) {
      expect(isAction(action), JSON.stringify(isAction.errors)).to.equal(true);
    }
  });

  it("knows the same words", () => {
    const { properties } = isAction.schema as { readonly properties: Words };
    expect(properties.phase?.enum).to.have.members([...phases]);
    expect(properties.protocol?.enum).to.have.members([...protocols]);
    expect(properties.capability?.enum).to.have.members([...capabilities]);
    expect(properties.principal?.properties?.role?.enum).to.have.members([...roles]);
  });

  it("refuses what no action is", () => {
    for (const wrong of [{ version: 2 }, { phase: "after" }, { client: {} }, { more: 1 }, { tool: "x".repeat(513) }]) {
      expect(isAction({ ...makeAction(), ...wrong }), JSON.stringify(wrong)).to.equal(false);
    }
  });
});
