import { type Approval, type ApprovalState, isFinal } from "../action/approval.ts";
import type { BatchOperation } from "../action/commit-hook.ts";
import { lastPart } from "../store/key-range.ts";
import { type ApprovalBook, type BookParts, durably } from "./book.ts";
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

/** Entries read for one page: a page may hold fewer than asked for, and say where to go on. */
const maxRead = 5_000;

/** A tenant's approvals that wait or can be used, in the order in which they were asked for. */
export function listLive(
  book: ApprovalBook,
  tenant: string,
  state: ApprovalState,
  page: ApprovalPageRequest,
): ApprovalPage {
  const { limit, cursor = "" } = page;
  const rest = book.live
    .of(tenant)
    .map(({ approval }) => approval)
    .filter((approval) => approval.state === state && approval.id > cursor);
  return { items: rest.slice(0, limit), next: rest.length > limit ? (rest[limit - 1] as Approval).id : null };
}

/** A tenant's approvals that are over, the latest asked for first; of one state where that is given. */
export async function listPast(
  book: ApprovalBook,
  tenant: string,
  state: ApprovalState | undefined,
  { limit, cursor }: ApprovalPageRequest,
): Promise<ApprovalPage> {
  const { gte, lt } = approvalRange(tenant);
  const range = { gte, lt: cursor === undefined ? lt : approvalKey(tenant, cursor), reverse: true };
  const items: Approval[] = [];
  let read = 0;
  for await (const [key, text] of book.parts.store.iterator(range)) {
    const id = lastPart(key);
    const approval = book.read(tenant, id, text);
    if (approval !== undefined && (state === undefined ? isFinal(approval.state) : approval.state === state)) {
      items.push(approval);
    }
    if (items.length === limit || ++read === maxRead) return { items, next: id };
  }
  return { items, next: null };
}

/** The break-glass uses of a tenant that nobody has accounted for; there are never many. */
export async function listBreakGlass(book: ApprovalBook, tenant: string): Promise<readonly Approval[]> {
  const keys = await book.parts.store.keys(breakGlassRange(tenant)).all();
  return Promise.all(keys.map((key) => book.find(tenant, lastPart(key))));
}

/** The latest approval of the same tool that was used: what a reviewer may compare with. */
export async function findLastUsed(book: ApprovalBook, { tenant, action }: Approval): Promise<Approval | undefined> {
  let read = 0;
  for await (const [key, text] of book.parts.store.iterator({ ...approvalRange(tenant), reverse: true })) {
    const used = book.read(tenant, lastPart(key), text);
    const isSame = used?.action.tool === action.tool && used.action.target === action.target;
    if (isSame && used.state === "consumed" && used.consumed_seq !== undefined) return used;
    if (++read === maxRead) return undefined;
  }
  return undefined;
}

/** The store, and who vouches for what lies in it. */
interface Shelved {
  readonly store: BookParts["store"];
  readonly journal: Pick<BookParts["journal"], "seal">;
}

const atOnce = 256;

/** Deletes the approvals that are over and whose records are all before `firstKept`. Resolves when that is durable. */
export async function forgetApprovals({ store, journal }: Shelved, tenant: string, firstKept: number): Promise<void> {
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
    if (operations.length === atOnce) await write();
  }
  if (operations.length > 0) await write();
}
