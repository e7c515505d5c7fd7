import { contentDigest } from "../action/canonical-json.ts";
import type { DefinitionFinding } from "../action/envelope.ts";
import type { Finding, Policy, PolicyRef, Verdict } from "../action/policy.ts";

const abstention: Verdict = Object.freeze({ decision: "abstain", findings: Object.freeze([]), risk: 0 });

/** The reason of each finding, for agents and for the list of upstreams. */
const messages: Readonly<Record<DefinitionFinding, string>> = {
  changed: "the tool's definition is not the one that was pinned",
  renamed: "the tool is new, and one of its upstream that it resembles is gone",
  shadowing: "the tool's definition claims or steers a tool of another upstream",
  look_alike: "the tool's name resembles another",
  instructions: "the tool's definition contains text that gives orders to a model",
  unreviewed: "the tool's definition was not reviewed yet",
  denied: "a reviewer denied the tool's definition",
  limit: "the tool's definition is too large, or its upstream has too many",
};

const risks: Readonly<Record<DefinitionFinding, number>> = {
  changed: 70,
  renamed: 50,
  shadowing: 80,
  look_alike: 70,
  instructions: 80,
  unreviewed: 20,
  denied: 80,
  limit: 50,
};

const ref: PolicyRef = Object.freeze({
  kind: "session",
  name: "definition-guard",
  version: "1",
  digest: contentDigest("definition-guard-v1"),
  signer: null,
});

/** Blocks the tools whose definitions are withheld, in lists and in calls. The chain asks it about these only. */
export const definitionGuard: Policy = Object.freeze({
  ref,
  mode: "enforce",
  readsOutput: () => false,
  evaluate: ({ phase, tool_definition: definition }): Verdict => {
    const { findings = [] } = definition ?? {};
    if (phase === "output" || findings.length === 0) return abstention;
    const reported = findings.map(report);
    return { decision: "block", findings: reported, risk: Math.max(...reported.map(({ risk }) => risk)) };
  },
} satisfies Policy);

function report(finding: DefinitionFinding): Finding {
  const next = "it is withheld until a reviewer approves it (`gateway definitions list`)";
  return {
    rule: `definition.${finding}`,
    decision: "block",
    message: `${messages[finding]}: ${next}`,
    severity: "high",
    risk: risks[finding],
    // The upstream did this: it must not stop the agent that calls the tool.
    session_risk: 0,
    mode: "enforce",
  };
}
