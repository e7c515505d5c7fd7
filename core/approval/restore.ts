import { type Approval, type ExpiryReason, isFinal, type RecordedApprovalState } from "../action/approval.ts";
import type { BatchOperation } from "../action/commit-hook.ts";
import { durably } from "../evidence/record/key-space.ts";
import { lastPart } from "../store/key-range.ts";
import { type ApprovalLimits, ApprovalStore, type ApprovalStoreOptions, boundFingerprint } from "./approval-store.ts";
import { approvalKey, liveKey, liveRange, readEntry, type Seal } from "./entry.ts";
import { ApprovalExpiry, expiryReasonOf } from "./expiry.ts";

/**
 * Restores what was pending or approved when the gateway stopped. An approval survives only where it is bound to an
 * identity and a session that survive a start, its time is not over, and the chain confirms its entry. Every other one is
 * expired on record; one that the chain records as used stays used.
 */
export async function restoreApprovals(
  approvals: ApprovalStore,
  expiry: ApprovalExpiry,
  tenants: readonly string[],
  warn: (event: string, fields: object) => void,
): Promise<void> {
  for (const tenant of tenants) {
    try {
      await settleTenant(approvals, expiry, tenant, async (approval, recorded, latestMs) => {
        return findExpiryReason(approvals, approval, recorded, latestMs) ?? makeLive(approvals, approval);
      });
    } catch (cause) {
      // No approval of a tenant survives where they cannot be read; other tenants are not affected.
      for (const { approval } of approvals.live.of(tenant)) approvals.live.remove(tenant, approval.id);
      warn("approval_restore_failed", { tenant, cause: cause instanceof Error ? cause.message : String(cause) });
    }
  }
}

const noNewApprovals: ApprovalLimits = { reviewMs: 0, useMs: 0, keySharePercent: 0, maxLive: 0, maxHeldBytes: 0 };

/**
 * Expires, on record, all that is pending or approved in a store restored from a backup, which may lack later uses and
 * denials. An approval that its chain records as used stays used. Resolves with the number expired; rejects where one
 * cannot be.
 */
export async function expireRestored(
  options: Pick<ApprovalStoreOptions, "store" | "journal" | "clock">,
  tenants: readonly string[],
): Promise<number> {
  let expired = 0;
  const onChange = (): void => {
    expired++;
  };
  const ports = { ...options, limits: noNewApprovals, gatewayTime: options.clock, onChange };
  const approvals = new ApprovalStore(ports);
  const expiry = new ApprovalExpiry(approvals, () => undefined);
  for (const tenant of tenants) await settleTenant(approvals, expiry, tenant, async () => "restored");
  return expired;
}

/** Decides about an approval that the chain does not record as ended: why it expires, or undefined where it survives. */
type Judge = (
  approval: Approval,
  recorded: RecordedApprovalState | undefined,
  latestMs: number,
) => Promise<ExpiryReason | undefined>;

/** Settles what was pending or approved in the store of a tenant: by its end in the chain, else as `judge` decides. */
async function settleTenant(
  approvals: ApprovalStore,
  expiry: ApprovalExpiry,
  tenant: string,
  judge: Judge,
): Promise<void> {
  const entries = await readEntries(approvals, tenant);
  if (entries.length === 0) return;
  const chain = await approvals.options.journal.readApprovals(tenant, firstSeqOf(entries));
  for (const entry of entries) {
    const recorded = chain.byId.get(entry.id);
    const { found } = entry;
    if (recorded !== undefined && isFinal(recorded.state)) await adoptState(approvals, tenant, entry, recorded.state);
    else if (typeof found === "string") await expireInvalid(approvals, tenant, entry, found);
    else {
      const reason = await judge(found, recorded, chain.latestMs);
      if (reason !== undefined) await expiry.record({ ...found, state: "expired", reason });
    }
  }
}

interface StoredEntry {
  readonly id: string;
  readonly text: string;
  /** The approval, or why the entry is invalid. */
  readonly found: Approval | ExpiryReason;
}

async function readEntries({ options }: ApprovalStore, tenant: string): Promise<readonly StoredEntry[]> {
  const keys = await options.store.keys(liveRange(tenant)).all();
  const ids = keys.map((key) => lastPart(key));
  const texts = await options.store.getMany(ids.map((id) => approvalKey(tenant, id)));
  const seal: Seal = (text) => options.journal.seal(tenant, text);
  return ids.map((id, at) => {
    const text = texts[at] ?? "";
    return { id, text, found: readEntry(text, tenant, id, seal) };
  });
}

/** The first record that can name any of them, by the claims of their entries: a false claim finds nothing. */
function firstSeqOf(entries: readonly StoredEntry[]): number {
  const claims = entries.map(({ text }) => Number(/"held_seq":([1-9]\d{0,15})[,}]/.exec(text)?.[1] ?? Number.NaN));
  return Math.min(...claims.filter(Number.isSafeInteger));
}

function findExpiryReason(
  { options }: ApprovalStore,
  approval: Approval,
  recorded: RecordedApprovalState | undefined,
  latestMs: number,
): ExpiryReason | undefined {
  const { state, session, expires_at: expires } = approval;
  const now = options.clock();
  if (session.transport !== "http") return "connection_closed";
  if (recorded?.state !== state || recorded.fingerprint !== boundFingerprint(approval))
    return "contradicted_by_evidence";
  // A record is later than the clock: the time that has passed since is unknown.
  if (now < latestMs) return "clock_set_back";
  if (Date.parse(expires) > now) return undefined;
  return expiryReasonOf(approval);
}

/** Makes an approval live, or returns why not: a damaged action could not be reviewed. */
async function makeLive(approvals: ApprovalStore, approval: Approval): Promise<ExpiryReason | undefined> {
  const { clock, journal, gatewayTime } = approvals.options;
  let held: string | undefined;
  try {
    held = await journal.held(approval.tenant, approval.held_seq);
  } catch {
    return "contradicted_by_evidence";
  }
  const deadlineMs = gatewayTime() + Date.parse(approval.expires_at) - clock();
  approvals.live.put({ approval, deadlineMs, heldBytes: Buffer.byteLength(held ?? "") });
  return undefined;
}

/** Writes the end that the chain records, and the entry lacks, into the entry. */
async function adoptState(
  approvals: ApprovalStore,
  tenant: string,
  entry: StoredEntry,
  state: Approval["state"],
): Promise<void> {
  const { found } = entry;
  const operations =
    typeof found === "string"
      ? overwrite(tenant, entry, { state })
      : [...approvals.put({ ...found, state }), approvals.options.journal.release(tenant, found.held_seq)];
  await approvals.options.store.batch([...operations], durably);
}

/** Expires, on record, an entry that this chain did not seal: it cannot be reviewed or used. */
async function expireInvalid(
  approvals: ApprovalStore,
  tenant: string,
  entry: StoredEntry,
  reason: ExpiryReason,
): Promise<void> {
  const detail = { event: "expired", id: entry.id, session: "", fingerprint: "", reason };
  await approvals.options.journal.record(tenant, detail, overwrite(tenant, entry, { state: "expired", reason }));
}

/** Keeps the entry, with its end added where it can be parsed. */
function overwrite(tenant: string, { id, text }: StoredEntry, end: Partial<Approval>): readonly BatchOperation[] {
  return [
    { type: "put", key: approvalKey(tenant, id), value: addEnd(text, end) },
    { type: "del", key: liveKey(tenant, id) },
  ];
}

function addEnd(text: string, end: Partial<Approval>): string {
  try {
    return JSON.stringify({ ...(JSON.parse(text) as object), ...end });
  } catch {
    return JSON.stringify(end);
  }
}
