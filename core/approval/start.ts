import { type Approval, type ExpiryReason, isFinal, type RecordedApprovalState } from "../action/approval.ts";
import type { BatchOperation } from "../action/commit-hook.ts";
import { lastPart } from "../store/key-range.ts";
import { ApprovalBook, type ApprovalLimits, type BookParts, boundFingerprint, durably } from "./book.ts";
import { approvalKey, liveKey, liveRange, readEntry, type Seal } from "./entry.ts";
import { Expiry, endingOf } from "./expiry.ts";

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
      await settleTenant(book, expiry, tenant, async (approval, told, latestMs) => {
        return whyOver(book, approval, told, latestMs) ?? goOn(book, approval);
      });
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

/** Why an approval does not go on; undefined once it does. */
type Judge = (
  approval: Approval,
  told: RecordedApprovalState | undefined,
  latestMs: number,
) => Promise<ExpiryReason | undefined>;

/** Settles what was pending or approved in a tenant's store, each as the chain says it ended, or as `judge` says. */
async function settleTenant(book: ApprovalBook, expiry: Expiry, tenant: string, judge: Judge): Promise<void> {
  const stored = await readStored(book, tenant);
  if (stored.length === 0) return;
  const told = await book.parts.journal.readApprovals(tenant, firstNamed(stored));
  for (const entry of stored) {
    const teller = told.byId.get(entry.id);
    const { found } = entry;
    if (teller !== undefined && isFinal(teller.state)) await adopt(book, tenant, entry, teller.state);
    else if (typeof found === "string") await endUnread(book, tenant, entry, found);
    else {
      const reason = await judge(found, teller, told.latestMs);
      if (reason !== undefined) await expiry.finish({ ...found, state: "expired", reason });
    }
  }
}

interface Stored {
  readonly id: string;
  readonly text: string;
  /** Or why it is none. */
  readonly found: Approval | ExpiryReason;
}

async function readStored({ parts }: ApprovalBook, tenant: string): Promise<readonly Stored[]> {
  const keys = await parts.store.keys(liveRange(tenant)).all();
  const ids = keys.map((key) => lastPart(key));
  const texts = await parts.store.getMany(ids.map((id) => approvalKey(tenant, id)));
  const seal: Seal = (text) => parts.journal.seal(tenant, text);
  return ids.map((id, at) => {
    const text = texts[at] ?? "";
    return { id, text, found: readEntry(text, tenant, id, seal) };
  });
}

/** The first record that can tell of any of them, as far as their entries say: a wrong one finds nothing for it. */
function firstNamed(stored: readonly Stored[]): number {
  const claims = stored.map(({ text }) => Number(/"held_seq":([1-9]\d{0,15})[,}]/.exec(text)?.[1] ?? Number.NaN));
  return Math.min(...claims.filter(Number.isSafeInteger));
}

function whyOver(
  { parts }: ApprovalBook,
  approval: Approval,
  told: RecordedApprovalState | undefined,
  latestMs: number,
): ExpiryReason | undefined {
  const { state, session, expires_at: expires } = approval;
  const now = parts.clock();
  if (session.transport !== "http") return "connection_closed";
  if (told?.state !== state || told.fingerprint !== boundFingerprint(approval)) return "contradicted_by_evidence";
  // The clock ran ahead of now when a record was written: how much time passed since, nobody can say.
  if (now < latestMs) return "clock_set_back";
  if (Date.parse(expires) > now) return undefined;
  return endingOf(approval);
}

/** Puts an approval among the live ones, or says why not: one whose action is damaged can be shown to nobody. */
async function goOn(book: ApprovalBook, approval: Approval): Promise<ExpiryReason | undefined> {
  const { clock, journal, monotonicMs } = book.parts;
  let held: string | undefined;
  try {
    held = await journal.held(approval.tenant, approval.held_seq);
  } catch {
    return "contradicted_by_evidence";
  }
  const deadlineMs = monotonicMs() + Date.parse(approval.expires_at) - clock();
  book.live.put({ approval, deadlineMs, heldBytes: Buffer.byteLength(held ?? "") });
  return undefined;
}

/** The chain knows of an end that the entry does not: the entry follows. */
async function adopt(book: ApprovalBook, tenant: string, entry: Stored, state: Approval["state"]): Promise<void> {
  const { found } = entry;
  const operations =
    typeof found === "string"
      ? overwrite(tenant, entry, { state })
      : [...book.put({ ...found, state }), book.parts.journal.release(tenant, found.held_seq)];
  await book.parts.store.batch([...operations], durably);
}

/** An entry that this chain did not seal cannot be shown or used; it leaves the live ones, and that is on record. */
async function endUnread(book: ApprovalBook, tenant: string, entry: Stored, reason: ExpiryReason): Promise<void> {
  const detail = { event: "expired", id: entry.id, session: "", fingerprint: "", reason };
  await book.parts.journal.record(tenant, detail, overwrite(tenant, entry, { state: "expired", reason }));
}

/** The entry as it was, marked with its end as far as it can be read. */
function overwrite(tenant: string, { id, text }: Stored, end: Partial<Approval>): readonly BatchOperation[] {
  return [
    { type: "put", key: approvalKey(tenant, id), value: endedText(text, end) },
    { type: "del", key: liveKey(tenant, id) },
  ];
}

function endedText(text: string, end: Partial<Approval>): string {
  try {
    return JSON.stringify({ ...(JSON.parse(text) as object), ...end });
  } catch {
    return JSON.stringify(end);
  }
}

const nothingNew: ApprovalLimits = { reviewMs: 0, useMs: 0, maxLive: 0, maxHeldBytes: 0 };

/**
 * Ends, on record, all that is pending or approved in a store as it was some time ago: what was used or denied since, it
 * does not know. What its chain says is used stays used. Resolves with how many ended; rejects where one cannot be.
 */
export async function endRestored(
  parts: Pick<BookParts, "store" | "journal" | "clock">,
  tenants: readonly string[],
): Promise<number> {
  let ended = 0;
  const onChange = (): void => {
    ended++;
  };
  const book = new ApprovalBook({ ...parts, limits: nothingNew, monotonicMs: parts.clock, onChange });
  const expiry = new Expiry(book, () => undefined);
  for (const tenant of tenants) await settleTenant(book, expiry, tenant, async () => "restored");
  return ended;
}
