import type { ActionEnvelope } from "../../action/envelope.ts";
import type { PolicyExplanation, RuleExplainer } from "../../action/explanation.ts";
import type { Verdict } from "../../action/policy.ts";
import { type Engine, explainBy } from "../engine-policy.ts";
import { inputOf } from "../input.ts";
import { readRegoAnswer } from "./rego-answer.ts";
import type { RegoMachine } from "./rego-machine.ts";

const encoder = new TextEncoder();

/** A folder of Rego policies: a pure function of the envelope. */
export class RegoEngine implements Engine {
  readonly type = "rego";
  readonly explainer: RuleExplainer;
  readonly #name: string;
  readonly #entrypoint: string;
  readonly #machine: RegoMachine;

  /** `name` is the prefix of its rules. */
  constructor(name: string, entrypoint: string, machine: RegoMachine) {
    this.#name = name;
    this.#entrypoint = entrypoint;
    this.#machine = machine;
    // A module does not name its rules before it decides by them.
    this.explainer = { explain: (action) => this.#explain(action), describeRules: () => [] };
  }

  judge(action: ActionEnvelope): Verdict {
    const input = encoder.encode(JSON.stringify(inputOf(action)));
    return readRegoAnswer(this.#machine.evaluate(input), this.#name);
  }

  #explain(action: ActionEnvelope): PolicyExplanation {
    return explainBy(() =>
      this.judge(action).findings.map(({ rule, message, decision, severity }) => ({
        ...{ rule, title: message, decision, severity, mode: "enforce" as const },
        ...{ file: moduleFile, line: 1, outcome: "held" as const },
        why: `the entrypoint \`${this.#entrypoint}\` gives this reason: ${message}`,
        ...{ mismatches: [], conditions: [] },
      })),
    );
  }
}

/** The module of a bundle. */
export const moduleFile = "policy.wasm";
