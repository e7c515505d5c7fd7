import { randomBytes } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { GatewayError } from "../../core/action/error.ts";
import { evidenceRules } from "../../core/compose/evidence-rules.ts";
import { KeyFolder } from "../../core/evidence/key/key-folder.ts";
import { WrappingKeyFolder } from "../../core/evidence/key/wrapping-key.ts";
import { Ledger } from "../../core/evidence/ledger.ts";
import { openStore } from "../../core/store/open.ts";
import { makeEvaluation, newAction } from "../support/ledger-world.ts";

/**
 * Writes evidence, breaks the disk (see disk-fault.c), mends it, writes again, and ends without closing anything.
 * Says as one JSON line what was acknowledged and how the rest was refused.
 */
const [dir = "", fault = ""] = process.argv.slice(2);
const control = process.env.FAULT_FILE ?? "";
const store = await openStore({ dir, enabled: true });
const warnings: string[] = [];
const ledger = await Ledger.open({
  store,
  holdsStore: () => true,
  highWaterPath: join(dir, "high-water"),
  keys: new KeyFolder(join(dir, "keys"), randomBytes),
  wrappingKeys: new WrappingKeyFolder(join(dir, "keys"), randomBytes),
  recordRules: evidenceRules,
  fieldPolicy: { storeValues: true, storeLabels: true, redactFields: [] },
  clock: Date.now,
  random: randomBytes,
  writerId: "disk",
  configDigest: `sha256:${"0".repeat(64)}`,
  onWarning: (message) => warnings.push(message),
});

const acknowledged: string[] = [];
const refused: string[] = [];
const interrupted = newAction();
await decide(interrupted);
await Promise.all(Array.from({ length: 20 }, () => act()));
const before = acknowledged.length;
await writeFile(control, fault);
await Promise.all(Array.from({ length: 20 }, () => act()));
const outcome = await ledger.actions
  .recordOutcome(interrupted, { status: "success", output: null })
  .then(() => "recorded", codeOf);
await act();
await sleep(1_100); // a repair is attempted at most once a second, and must fail while the disk does
await act();
await sleep(200);
await act();
const during = { acknowledged: acknowledged.length, refused: [...refused] };
await rm(control);
await sleep(1_100);
await act(); // asks for a repair, where none is under way that will succeed now
const mendedBy = Date.now() + 10_000;
while (ledger.status().some((each) => each.state !== "ready")) {
  if (Date.now() > mendedBy) throw new Error("expected the ledger to mend itself within 10 s");
  await sleep(10);
}
const mended = acknowledged.length;
await Promise.all(Array.from({ length: 20 }, () => act()));
const report = await ledger.verify("acme");
process.stdout.write(
  `${JSON.stringify({ before, during, mended, acknowledged, outcome, interrupted: interrupted.id, report, warnings })}\n`,
  () => process.kill(process.pid, "SIGKILL"),
);

async function act(): Promise<void> {
  const action = newAction();
  if (await decide(action))
    await ledger.actions.recordOutcome(action, { status: "success", output: null }).catch(codeOf);
}

async function decide(action: ReturnType<typeof newAction>): Promise<boolean> {
  try {
    await ledger.actions.recordDecision(action, makeEvaluation(action));
    acknowledged.push(action.id);
    return true;
  } catch (error) {
    refused.push(codeOf(error));
    return false;
  }
}

function codeOf(error: unknown): string {
  return error instanceof GatewayError ? error.code : String(error);
}
