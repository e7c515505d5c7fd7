import { readFile } from "node:fs/promises";
import { Command } from "commander";
import { type Decision, isDecision } from "../action/decision.ts";
import { GatewayError } from "../action/error.ts";
import { asciiJson, isJsonObject, type JsonObject } from "../action/json.ts";
import { showText } from "../action/visible-text.ts";
import type { Explanation } from "../explain/explained-decision.ts";
import { Faults } from "../policy/fault.ts";
import { readItems, startOf } from "../policy/yaml/file.ts";
import { toJson, type YamlNode } from "../policy/yaml/node.ts";
import { type AdminOptions, adminOption, askJson } from "./admin-client.ts";
import { describeExplanation, reasonOf, type ToldEvaluation } from "./evaluation-text.ts";
import { print, tellProgress } from "./print.ts";

interface SimulateOptions extends AdminOptions {
  readonly explain?: true;
  readonly json?: true;
}

/** An action of the file, and what its author expects of it. */
interface Simulated {
  readonly action: JsonObject;
  readonly expect: Decision | undefined;
}

interface Simulation {
  readonly items: readonly ToldEvaluation[];
}

const maxPage = 100;

/** `gateway simulate`: what policy says of many actions, none of which is carried out. */
export function simulateCommand(): Command {
  return new Command("simulate")
    .description("ask a running gateway what its policies say of a file of actions; nothing is carried out")
    .argument("<file>", "YAML or JSON: `actions`, a list of `{tool, target, capability, arguments, …, expect}`")
    .option("--explain", "say of each action why")
    .option("--json", "print a line of JSON for each action")
    .addOption(adminOption())
    .action(simulate);
}

async function simulate(file: string, { admin, explain, json }: SimulateOptions): Promise<void> {
  const actions = await readActions(file);
  let wrong = 0;
  for (let from = 0; from < actions.length; from += maxPage) {
    if (from > 0) tellProgress(`${from} of ${actions.length} actions so far`);
    const page = actions.slice(from, from + maxPage);
    const why = explain === undefined ? {} : { explain };
    const message = { actions: page.map(({ action }) => action), ...why };
    const { items } = await askJson<Simulation>({ admin }, "/admin/v1/simulate", "POST", message);
    for (const [index, told] of items.entries()) {
      const one = page[index] as Simulated;
      const isWrong = one.expect !== undefined && one.expect !== told.decision;
      if (isWrong) wrong++;
      print(json ? asciiJson({ ...told, expected: one.expect ?? null, ok: !isWrong }) : line(one, told, isWrong));
      if (!json && told.explanation !== undefined) print(describeWhy(told.explanation).join("\n"));
    }
  }
  if (wrong === 0) return;
  process.stderr.write(`gateway: ${wrong} of ${actions.length} actions are not decided as expected\n`);
  process.exitCode = 1;
}

/** Below the line of its action. */
function describeWhy(explanation: Explanation): readonly string[] {
  return describeExplanation(explanation).map((text) => (text === "" ? "" : `  ${text}`));
}

function line({ action, expect }: Simulated, told: ToldEvaluation, isWrong: boolean): string {
  const name = `${showText(String(action.target))}/${showText(String(action.tool))}`;
  return `${told.decision.padEnd(6)}  ${name}  ${reasonOf(told)}${isWrong ? `  (expected ${expect})` : ""}`;
}

async function readActions(file: string): Promise<readonly Simulated[]> {
  const bytes = await readFile(file).catch((cause: NodeJS.ErrnoException) => {
    throw new GatewayError("INVALID_REQUEST", `\`${file}\` cannot be read (${cause.code})`, { cause });
  });
  const faults = new Faults();
  const nodes = await readItems(file, bytes, "actions", faults);
  const actions = nodes.map((node) => readAction(node, faults));
  if (nodes.length === 0 && faults.count === 0)
    faults.add(startOf(file), "expected `actions` to be a list of actions, got none");
  faults.throwIfAny(file, "INVALID_REQUEST");
  return actions;
}

function readAction(node: YamlNode, faults: Faults): Simulated {
  const value = toJson(node);
  if (!isJsonObject(value)) {
    faults.add(node.place, "expected an action to be a mapping");
    return { action: {}, expect: undefined };
  }
  const { expect, ...action } = value;
  if (expect === undefined || isDecision(expect)) return { action, expect };
  faults.add(node.place, "expected `expect` to be allow, review or block");
  return { action, expect: undefined };
}
