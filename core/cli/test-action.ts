import { asciiJson } from "../action/json.ts";
import { explainOperations } from "../explain/operation.ts";
import { type AdminOptions, callAdmin } from "./admin-client.ts";
import { print, say } from "./print.ts";
import { describeEvaluation, describeExplanation, type EvaluationAnswer } from "./view/explanation.ts";

interface TestActionOptions extends AdminOptions {
  readonly expect?: string;
  readonly json?: true;
}

/** `gateway test-action`. The other options are members of the action. */
export async function testAction({ admin, expect, json, ...action }: TestActionOptions): Promise<void> {
  const { evaluation } = await callAdmin<{ evaluation: EvaluationAnswer }>(
    { admin },
    explainOperations.testAction,
    action,
  );
  const { explanation } = evaluation;
  const lines = explanation === undefined ? describeEvaluation(evaluation) : describeExplanation(explanation);
  print(json ? asciiJson(evaluation) : lines.join("\n"));
  if (expect === undefined || expect === evaluation.decision) return;
  say(`expected ${expect}, got ${evaluation.decision}`);
  process.exitCode = 1;
}
