import { isFinal } from "../kernel/approval.ts";
import type { Operation } from "../kernel/operation.ts";
import { lastPart } from "../kernel/tenant-key.ts";
import { type BookParts, durably } from "./book.ts";
import { readEntry, type Seal } from "./entry.ts";
import { approvalRange } from "./key-space.ts";

/** The store, and who vouches for what lies in it. */
export interface Shelved {
  readonly store: BookParts["store"];
  readonly journal: Pick<BookParts["journal"], "seal">;
}

const atOnce = 256;

/** Deletes the approvals that are over and whose records are all before `firstKept`. Resolves when that is durable. */
export async function forgetApprovals({ store, journal }: Shelved, tenant: string, firstKept: number): Promise<void> {
  const seal: Seal = (text) => journal.seal(tenant, text);
  let operations: Operation[] = [];
  const write = async (): Promise<void> => {
    await store.batch(operations, durably);
    operations = [];
  };
  for await (const [key, text] of store.iterator(approvalRange(tenant))) {
    const approval = readEntry(text, tenant, lastPart(key), seal);
    if (typeof approval === "string" || !isFinal(approval.state)) continue;
    if (Math.max(approval.held_seq, approval.consumed_seq ?? 0) < firstKept) operations.push({ type: "del", key });
    if (operations.length === atOnce) await write();
  }
  if (operations.length > 0) await write();
}
