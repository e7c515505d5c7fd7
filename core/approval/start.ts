import { type Approval, type ExpiryReason, isFinal, type ToldApproval } from "../kernel/approval.ts";
import { type ApprovalBook, boundFingerprint } from "./book.ts";
import { putEntry, readEntry } from "./entry.ts";
import type { Expiry } from "./expiry.ts";
import { approvalKey, liveRange } from "./key-space.ts";

/**
 * Brings back what was pending or approved when the gateway stopped. An approval goes on only where it is bound to an
 * identity and a session that outlive a start, its time is not over, and the chain says of it what its entry says.
 * Everything else ends here, on record; what the chain says is used stays used.
 */
export async function bringBack(
  book: ApprovalBook,
  expiry: Expiry,
  tenants: readonly string[],
  warn: (message: string, fields: object) => void,
): Promise<void> {
  for (const tenant of tenants) {
    try {
      await bringBackTenant(book, expiry, tenant);
    } catch (cause) {
      // Nothing of a tenant whose approvals cannot be read goes on; others are not concerned.
      for (const { approval } of book.live.of(tenant)) book.live.remove(tenant, approval.id);
      warn("approvals were not brought back", {
        tenant,
        cause: cause instanceof Error ? cause.message : String(cause),
      });
    }
  }
}

async function bringBackTenant(book: ApprovalBook, expiry: Expiry, tenant: string): Promise<void> {
  const { journal } = book.parts;
  const stored = await readStored(book, tenant);
  if (stored.length === 0) return;
  const bound = stored.flatMap(({ approval }) => (approval === undefined ? [] : [approval.held_seq]));
  const told = bound.length === 0 ? new Map<string, ToldApproval>() : await journal.told(tenant, Math.min(...bound));
  const latest = Date.parse((await journal.latestTime(tenant)) ?? "");
  for (const { id, approval } of stored) {
    if (approval === undefined) {
      await endUnbound(book, tenant, id);
      continue;
    }
    const teller = told.get(id);
    if (teller !== undefined && isFinal(teller.state)) await adopt(book, approval, teller.state);
    else {
      const reason = whyOver(book, approval, teller, latest);
      if (reason === undefined) await goOn(book, approval);
      else await expiry.finish({ ...approval, state: "expired", reason });
    }
  }
}

interface Stored {
  readonly id: string;
  readonly approval: Approval | undefined;
}

async function readStored({ parts }: ApprovalBook, tenant: string): Promise<readonly Stored[]> {
  const keys = await parts.store.keys(liveRange(tenant)).all();
  const ids = keys.map((key) => key.slice(key.lastIndexOf("/") + 1));
  const texts = await parts.store.getMany(ids.map((id) => approvalKey(tenant, id)));
  return ids.map((id, at) => ({ id, approval: readEntry(texts[at] ?? "", tenant, id) }));
}

function whyOver(
  { parts }: ApprovalBook,
  approval: Approval,
  told: ToldApproval | undefined,
  latestMs: number,
): ExpiryReason | undefined {
  const { state, session, requested_at: requested, expires_at: expires } = approval;
  const now = parts.clock();
  if (session.transport !== "http") return "connection_closed";
  if (told?.state !== state || told.fingerprint !== boundFingerprint(approval)) return "contradicted_by_evidence";
  // The clock ran ahead of the last record when that was written: how much time passed since, nobody can say.
  if (now < latestMs || now < Date.parse(requested)) return "clock_set_back";
  if (Date.parse(expires) > now) return undefined;
  return state === "approved" ? "not_used_in_time" : "not_reviewed_in_time";
}

async function goOn(book: ApprovalBook, approval: Approval): Promise<void> {
  const { clock, journal, monotonicMs } = book.parts;
  const held = await journal.held(approval.tenant, approval.held_seq);
  const deadlineMs = monotonicMs() + Date.parse(approval.expires_at) - clock();
  book.live.put({ approval, deadlineMs, heldBytes: Buffer.byteLength(held ?? "") });
}

/** The chain knows of an end that the entry does not: the entry follows. */
async function adopt(book: ApprovalBook, approval: Approval, state: Approval["state"]): Promise<void> {
  const { journal, store } = book.parts;
  const release = journal.release(approval.tenant, approval.held_seq);
  await store.batch([...putEntry({ ...approval, state }), release], { sync: true } as object);
}

/** An entry that names no identity in full cannot be shown or used; it leaves the live ones, and that is on record. */
async function endUnbound({ parts }: ApprovalBook, tenant: string, id: string): Promise<void> {
  const { journal, store } = parts;
  const text = (await store.get(approvalKey(tenant, id))) ?? "{}";
  const [live] = putEntry({ tenant, id, state: "expired" } as Approval).filter(({ type }) => type === "del");
  const entry = { type: "put", key: approvalKey(tenant, id), value: expiredText(text) } as const;
  const detail = { event: "expired", id, session: "", fingerprint: "", reason: "identity_not_bound" };
  await journal.record(tenant, detail, live === undefined ? [entry] : [entry, live]);
}

/** The entry as it was, marked as expired as far as it can be read. */
function expiredText(text: string): string {
  const end = { state: "expired", reason: "identity_not_bound" } satisfies Partial<Approval>;
  try {
    return JSON.stringify({ ...(JSON.parse(text) as object), ...end });
  } catch {
    return JSON.stringify(end);
  }
}
