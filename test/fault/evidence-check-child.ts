import { createInterface } from "node:readline";
import { GatewayError } from "../../core/action/error.ts";
import { LedgerWorld, makeEvaluation, newAction } from "../support/ledger-world.ts";
import { type FolderContent, readContent } from "./evidence-content.ts";

/**
 * Reads lines from standard input: the content that folders once had, as JSON, then the folders. Opens each and says
 * what became of it, as one JSON line `{end, said}`. A process of its own, so that whoever judges outlives a database
 * that ends it.
 */
let expected: FolderContent | undefined;

for await (const line of createInterface(process.stdin)) {
  if (expected === undefined) {
    expected = JSON.parse(line) as FolderContent;
    continue;
  }
  const world = LedgerWorld.at(line);
  const answer = await judge(world, expected);
  await world.close();
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

async function judge(
  world: LedgerWorld,
  expected: FolderContent,
): Promise<{ readonly end: string; readonly said: string }> {
  try {
    await world.open();
    const { firstBad } = await world.ledger.verify("acme");
    if (firstBad !== undefined) return { end: "found", said: `${firstBad.reason} at ${firstBad.seq}` };
    const content = await readContent(world);
    const action = newAction();
    await world.ledger.actions.recordDecision(action, makeEvaluation(action));
    return compare(content, expected);
  } catch (error) {
    if (error instanceof GatewayError) return { end: "refused", said: error.message };
    return { end: "silent", said: String(error) };
  }
}

/** The verification was content: now everything must be there, the private fields as well. */
function compare(
  { texts, fields }: FolderContent,
  expected: FolderContent,
): { readonly end: string; readonly said: string } {
  if (JSON.stringify(texts) !== JSON.stringify(expected.texts)) return { end: "silent", said: "records differ" };
  const lost = fields.filter((each, at) => each !== expected.fields[at]);
  return lost.length === 0 ? { end: "kept", said: "" } : { end: "silent", said: lost.join() };
}
