import { Command, InvalidArgumentError, Option } from "commander";
import { decisions } from "../action/decision.ts";
import { capabilities, phases, protocols } from "../action/envelope.ts";
import { asciiJson, isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { type AdminOptions, adminOption, askJson } from "./admin-client.ts";
import { describeEvaluation, describeExplanation, type ToldEvaluation } from "./evaluation-text.ts";
import { print } from "./print.ts";

interface TestActionOptions extends AdminOptions {
  readonly tool: string;
  readonly target: string;
  readonly protocol: string;
  readonly phase: string;
  readonly capability: string;
  readonly arguments: JsonObject;
  readonly output?: Json;
  readonly session?: string;
  readonly explain?: true;
  readonly expect?: string;
  readonly json?: true;
}

/** `gateway test-action`: what policy says of an action, which is not carried out. */
export function testActionCommand(): Command {
  return new Command("test-action")
    .description("ask a running gateway what its policies say of an action; nothing is carried out")
    .requiredOption("--tool <name>", "as its upstream calls it")
    .requiredOption("--target <name>", "the upstream, or `provider/model`")
    .addOption(new Option("--protocol <name>", "what kind of action").choices(protocols).default("mcp"))
    .addOption(new Option("--phase <name>", "what is asked of it").choices(phases).default("input"))
    .addOption(new Option("--capability <name>", "what it does").choices(capabilities).default("execute"))
    .option("--arguments <json>", "an object", parseObject, {})
    .option("--output <json>", "the answer, in phase `output`", parseJson)
    .option("--session <label>", "the session it would belong to")
    .addOption(new Option("--expect <decision>", "end with 1 unless this is decided").choices(decisions))
    .option("--explain", "say why: what its rules asked, and the nearest that did not decide")
    .option("--json", "print JSON")
    .addOption(adminOption())
    .addHelpText(
      "after",
      '\nExample:\n  gateway test-action --tool read_file --target files --capability read --arguments \'{"path":"/etc/hosts"}\'',
    )
    .action(testAction);
}

async function testAction({ admin, expect, json, ...action }: TestActionOptions): Promise<void> {
  const message = action as unknown as JsonObject;
  const { evaluation } = await askJson<{ evaluation: ToldEvaluation }>(
    { admin },
    "/admin/v1/test-action",
    "POST",
    message,
  );
  print(json ? asciiJson(evaluation) : describe(evaluation).join("\n"));
  if (expect === undefined || expect === evaluation.decision) return;
  process.stderr.write(`gateway: expected ${expect}, got ${evaluation.decision}\n`);
  process.exitCode = 1;
}

function describe(evaluation: ToldEvaluation): readonly string[] {
  const { explanation } = evaluation;
  return explanation === undefined ? describeEvaluation(evaluation) : describeExplanation(explanation);
}

function parseJson(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw new InvalidArgumentError("expected JSON");
  }
}

function parseObject(text: string): JsonObject {
  const value = parseJson(text);
  if (isJsonObject(value)) return value;
  throw new InvalidArgumentError("expected a JSON object");
}
