/**
 * Runs the official conformance suite against the fixture server directly and through the gateway, and prints both
 * counts side by side. Usage: `node dist/test/conformance/run.js`. Exit code 1 where they differ.
 */
import { isDeepStrictEqual } from "node:util";
import { startRig } from "./rig.ts";
import { revisions, runSuite } from "./suite.ts";
import { comparisonTable, scoredCounts } from "./table.ts";

const rig = await startRig();
try {
  for (const revision of revisions) {
    const direct = await runSuite(rig.directUrl, revision);
    const governed = await runSuite(rig.governedUrl, revision);
    process.stdout.write(`\n${revision}\n${comparisonTable(direct, governed)}`);
    if (!isDeepStrictEqual(scoredCounts(direct), scoredCounts(governed))) process.exitCode = 1;
  }
} finally {
  await rig.stop();
}
