import { runChainTask } from "../evidence/reading/chain-task.ts";
import { evidenceRules } from "./evidence-rules.ts";

await runChainTask(evidenceRules);
