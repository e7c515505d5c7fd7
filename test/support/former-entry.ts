import { randomBytes } from "node:crypto";
import { sealBytes, WrappingKeyFolder } from "../../core/evidence/key/wrapping-key.ts";
import { recordKey } from "../../core/evidence/record/key-space.ts";
import type { ActionRecord } from "../../core/evidence/record/record.ts";
import type { LedgerWorld } from "./ledger-world.ts";

/** Lays the private fields of a record as store format 1 had them: every commitment, under a data key that lies beside. */
export async function layFormerEntry(world: LedgerWorld, record: ActionRecord): Promise<void> {
  const { chain, seq, tenant } = record;
  const key = await new WrappingKeyFolder(world.keysPath, randomBytes).find(chain);
  if (key === undefined) throw new Error("expected the chain to have a wrapping key");
  const dataKey = randomBytes(32);
  const text = JSON.stringify(await world.ledger.disclosure(record));
  const entry = sealBytes(dataKey, `evidence-disclosure-v1\n${chain}\n${seq}`, Buffer.from(text), randomBytes);
  const wrapped = key.wrap(dataKey, `evidence-data-key-v1\n${chain}\n${seq}`, randomBytes);
  await world.store.batch([
    { type: "put", key: recordKey(tenant, seq, "disclosure"), value: entry },
    { type: "put", key: recordKey(tenant, seq, "data-key"), value: wrapped },
  ]);
}
