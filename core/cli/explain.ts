import { Command } from "commander";
import { asciiJson } from "../action/json.ts";
import type { Explanation } from "../explain/explained-decision.ts";
import { type AdminOptions, adminOption, askJson } from "./admin-client.ts";
import { describeExplanation } from "./evaluation-text.ts";
import { print } from "./print.ts";

interface ExplainOptions extends AdminOptions {
  readonly json?: true;
}

/** `gateway explain`: why something was decided. */
export function explainCommand(): Command {
  return new Command("explain")
    .description("print why something was decided: the rules that did, what they asked, and those that nearly did")
    .argument("<id>", "of the decision, as a refusal names it, or of its action")
    .option("--json", "print JSON")
    .addOption(adminOption())
    .action(explain);
}

async function explain(id: string, { admin, json }: ExplainOptions): Promise<void> {
  const path = `/admin/v1/decisions/${encodeURIComponent(id)}/explanation`;
  const explanation = await askJson<Explanation>({ admin }, path);
  print(json ? asciiJson(explanation) : describeExplanation(explanation).join("\n"));
}
