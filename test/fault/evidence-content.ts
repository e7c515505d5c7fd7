import { GatewayError } from "../../core/action/error.ts";
import type { ActionRecord } from "../../core/evidence/record/record.ts";
import type { LedgerWorld } from "../support/ledger-world.ts";

/** Everything that a tenant's evidence holds. */
export interface FolderContent {
  readonly texts: readonly string[];
  /** The private fields of each action as JSON, or the code of the error that says they are lost. */
  readonly fields: readonly string[];
}

export async function readContent(world: LedgerWorld): Promise<FolderContent> {
  const records = await world.recordsOf();
  const actions = records.filter((record): record is ActionRecord => "action" in record);
  const fields: string[] = [];
  for (const record of actions) fields.push(await readFields(world, record));
  return { texts: await world.texts(), fields };
}

async function readFields(world: LedgerWorld, record: ActionRecord): Promise<string> {
  try {
    return JSON.stringify(await world.ledger.disclosure(record));
  } catch (error) {
    if (error instanceof GatewayError) return `${error.code} ${error.detail}`;
    throw error;
  }
}
