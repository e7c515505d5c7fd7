import { readFile } from "node:fs/promises";
import { type Decision, isDecision } from "../action/decision.ts";
import { GatewayError } from "../action/error.ts";
import { asciiJson, isJsonObject, type JsonObject } from "../action/json.ts";
import { showText } from "../action/visible-text.ts";
import { didYouMeanHint } from "../config/check.ts";
import { describeFileError, plainValue, type YamlNode } from "../config/document.ts";
import { FaultList, quoteInput } from "../config/fault.ts";
import { explainOperations } from "../explain/operation.ts";
import { readItems, startOf } from "../policy/extension-file.ts";
import { describedAction } from "../road/described-action.ts";
import { type AdminOptions, callAdmin } from "./admin-client.ts";
import { print, say, sayProgress } from "./print.ts";
import { decisionReason, describeExplanation, type EvaluationAnswer } from "./view/explanation.ts";

interface SimulateOptions extends AdminOptions {
  readonly explain?: true;
  readonly json?: true;
}

/** An action of the file, and the decision that its author expects. */
interface Case {
  readonly action: JsonObject;
  readonly expect: Decision | undefined;
}

const batchSize = 100;
const caseKeys = [...Object.keys(describedAction.properties), "expect"];

/** `gateway simulate`. Ends with 1 where a decision is not the expected one. */
export async function simulate(file: string, { admin, explain, json }: SimulateOptions): Promise<void> {
  const cases = await readCases(file);
  let wrong = 0;
  for (let from = 0; from < cases.length; from += batchSize) {
    if (from > 0) sayProgress(`${from} of ${cases.length} actions so far`);
    const batch = cases.slice(from, from + batchSize);
    const body = { actions: batch.map(({ action }) => action), explain };
    const { items } = await callAdmin<{ items: readonly EvaluationAnswer[] }>(
      { admin },
      explainOperations.simulate,
      body,
    );
    for (const [index, evaluation] of items.entries()) if (!report(batch[index] as Case, evaluation, json)) wrong++;
  }
  if (wrong === 0) return;
  say(`${wrong} of ${cases.length} actions are not decided as expected`);
  process.exitCode = 1;
}

/** Prints one evaluation; returns whether it is the expected one. */
function report({ action, expect }: Case, evaluation: EvaluationAnswer, json: true | undefined): boolean {
  const isExpected = expect === undefined || expect === evaluation.decision;
  if (json) {
    print(asciiJson({ ...evaluation, expected: expect ?? null, ok: isExpected }));
    return isExpected;
  }
  const name = `${showText(String(action.target))}/${showText(String(action.tool))}`;
  const fault = isExpected ? "" : `  (expected ${expect})`;
  const isReplayable = evaluation.verdicts.every(({ replayable }) => replayable !== false);
  const server = isReplayable ? "" : "  (another server took part: not replayable)";
  print(`${evaluation.decision.padEnd(6)}  ${name}  ${decisionReason(evaluation)}${fault}${server}`);
  const reasons = evaluation.explanation === undefined ? [] : describeExplanation(evaluation.explanation);
  for (const line of reasons) print(line === "" ? "" : `  ${line}`);
  return isExpected;
}

async function readCases(file: string): Promise<readonly Case[]> {
  const bytes = await readFile(file).catch((cause: unknown) => {
    throw new GatewayError("INVALID_REQUEST", `\`${file}\` cannot be read: ${describeFileError(cause)}`, { cause });
  });
  const faults = new FaultList("");
  const nodes = await readItems(file, bytes, "actions", faults);
  const cases = nodes.map((node) => readCase(node, faults));
  if (nodes.length === 0 && faults.count === 0)
    faults.addAt(startOf(file), "expected `actions` to be a list of actions, got none");
  faults.throwIfAny("INVALID_REQUEST", file);
  return cases;
}

function readCase(node: YamlNode, faults: FaultList): Case {
  const value = plainValue(node);
  if (!isJsonObject(value) || node.kind !== "map") {
    faults.addAt(node.place, "expected an action to be a mapping");
    return { action: {}, expect: undefined };
  }
  for (const [key, { keyPlace }] of node.members) {
    if (caseKeys.includes(key)) continue;
    faults.addAt(
      keyPlace,
      `expected a key of an action, or \`expect\`, got ${quoteInput(key)}${didYouMeanHint(key, caseKeys)}`,
    );
  }
  const { expect, ...action } = value;
  if (expect === undefined || isDecision(expect)) return { action, expect };
  faults.addAt(node.place, "expected `expect` to be allow, review or block");
  return { action, expect: undefined };
}
