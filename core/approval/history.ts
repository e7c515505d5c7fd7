import { type Approval, type ApprovalState, isFinal } from "../action/approval.ts";
import type { BatchOperation } from "../action/commit-hook.ts";
import { durably } from "../evidence/record/key-space.ts";
import { lastPart } from "../store/key-range.ts";
import type { ApprovalStore, ApprovalStoreOptions } from "./approval-store.ts";
import { approvalKey, approvalRange, breakGlassRange, readEntry, type Seal } from "./entry.ts";

interface ApprovalPageRequest {
  readonly limit: number;
  /** The `next` of an earlier page. */
  readonly cursor?: string;
}

export interface ApprovalPage {
  readonly items: readonly Approval[];
  /** Null at the end. */
  readonly next: string | null;
}

/** Entries read for one page: a page may have fewer items than requested, and a cursor. */
const maxRead = 5_000;

/** Lists the pending or approved approvals of a tenant, the oldest request first. */
export function listLive(
  approvals: ApprovalStore,
  tenant: string,
  state: ApprovalState,
  page: ApprovalPageRequest,
): ApprovalPage {
  const { limit, cursor = "" } = page;
  const rest = approvals.live
    .of(tenant)
    .map(({ approval }) => approval)
    .filter((approval) => approval.state === state && approval.id > cursor);
  return { items: rest.slice(0, limit), next: rest.length > limit ? (rest[limit - 1] as Approval).id : null };
}

/** Lists the ended approvals of a tenant, the latest request first; of one state where that is given. */
export async function listEnded(
  approvals: ApprovalStore,
  tenant: string,
  state: ApprovalState | undefined,
  { limit, cursor }: ApprovalPageRequest,
): Promise<ApprovalPage> {
  const { gte, lt } = approvalRange(tenant);
  const range = { gte, lt: cursor === undefined ? lt : approvalKey(tenant, cursor), reverse: true };
  const items: Approval[] = [];
  let read = 0;
  for await (const [key, text] of approvals.options.store.iterator(range)) {
    const id = lastPart(key);
    const approval = approvals.read(tenant, id, text);
    if (approval !== undefined && (state === undefined ? isFinal(approval.state) : approval.state === state)) {
      items.push(approval);
    }
    if (items.length === limit || ++read === maxRead) return { items, next: id };
  }
  return { items, next: null };
}

/** Lists the break-glass uses of a tenant without a post-mortem; there are at most ten. */
export async function listBreakGlass(approvals: ApprovalStore, tenant: string): Promise<readonly Approval[]> {
  const keys = await approvals.options.store.keys(breakGlassRange(tenant)).all();
  return Promise.all(keys.map((key) => approvals.find(tenant, lastPart(key))));
}

/** Finds the latest consumed approval of the same tool, for comparison by a reviewer. */
export async function findLastUsed(
  approvals: ApprovalStore,
  { tenant, action }: Approval,
): Promise<Approval | undefined> {
  let read = 0;
  for await (const [key, text] of approvals.options.store.iterator({ ...approvalRange(tenant), reverse: true })) {
    const used = approvals.read(tenant, lastPart(key), text);
    const isSame = used?.action.tool === action.tool && used.action.target === action.target;
    if (isSame && used.state === "consumed" && used.consumed_seq !== undefined) return used;
    if (++read === maxRead) return undefined;
  }
  return undefined;
}

interface PruneSource {
  readonly store: ApprovalStoreOptions["store"];
  readonly journal: Pick<ApprovalStoreOptions["journal"], "seal">;
}

const maxPerBatch = 256;

/** Deletes the ended approvals whose records are all before `firstKept`. Durable when it resolves. */
export async function pruneApprovals(
  { store, journal }: PruneSource,
  tenant: string,
  firstKept: number,
): Promise<void> {
  const seal: Seal = (text) => journal.seal(tenant, text);
  let operations: BatchOperation[] = [];
  const write = async (): Promise<void> => {
    await store.batch(operations, durably);
    operations = [];
  };
  for await (const [key, text] of store.iterator(approvalRange(tenant))) {
    const approval = readEntry(text, tenant, lastPart(key), seal);
    if (typeof approval === "string" || !isFinal(approval.state)) continue;
    if (Math.max(approval.held_seq, approval.consumed_seq ?? 0) < firstKept) operations.push({ type: "del", key });
    if (operations.length === maxPerBatch) await write();
  }
  if (operations.length > 0) await write();
}
