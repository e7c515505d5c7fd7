import { randomBytes } from "node:crypto";
import { writeSync } from "node:fs";
import { join } from "node:path";
import { evidenceRules } from "../../core/compose/evidence-rules.ts";
import { BatchThread } from "../../core/evidence/chain/batch-thread.ts";
import { KeyFolder } from "../../core/evidence/key/key-folder.ts";
import { WrappingKeyFolder } from "../../core/evidence/key/wrapping-key.ts";
import { Ledger } from "../../core/evidence/ledger.ts";
import { openStore } from "../../core/store/open.ts";
import { makeEvaluation, newAction } from "../support/ledger-world.ts";

/**
 * A process that decides and completes actions in the folder it is given until it is killed; those of its first two agents are large.
 * One line on stdout for each acknowledgement, written before anything else happens: `decided <action> <seq>`, `completed <action>`.
 */
const [dir = "", agents = "32"] = process.argv.slice(2);
const large = { page: "page of text. ".repeat(50_000) };
const largeAgents = 2;
const store = await openStore({ dir, enabled: true });
const ledger = await Ledger.open({
  store,
  holdsStore: () => true,
  highWaterPath: join(dir, "high-water"),
  keys: new KeyFolder(join(dir, "keys"), randomBytes),
  wrappingKeys: new WrappingKeyFolder(join(dir, "keys"), randomBytes),
  recordRules: evidenceRules,
  batchThread: new BatchThread(),
  fieldPolicy: { storeValues: true, storeLabels: true, redactFields: [] },
  clock: Date.now,
  random: randomBytes,
  writerId: "load",
  configDigest: `sha256:${"0".repeat(64)}`,
});
say("ready");
await Promise.all(Array.from({ length: Number(agents) }, (_, index) => act(`agent-${index}`, index < largeAgents)));

async function act(label: string, isLarge: boolean): Promise<never> {
  const [changed, output] = isLarge ? [{ arguments: large }, large] : [{}, { ok: true }];
  for (;;) {
    const action = newAction(changed, label);
    const { seq } = await ledger.actions.recordDecision(action, makeEvaluation(action));
    say(`decided ${action.id} ${seq}`);
    await ledger.actions.recordOutcome(action, { status: "success", output });
    say(`completed ${action.id}`);
  }
}

function say(line: string): void {
  writeSync(1, `${line}\n`);
}
