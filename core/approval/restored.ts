import { ApprovalBook, type ApprovalLimits, type BookParts } from "./book.ts";
import { Expiry } from "./expiry.ts";
import { settleTenant } from "./start.ts";

const nothingNew: ApprovalLimits = { reviewMs: 0, useMs: 0, mostLive: 0, mostHeldBytes: 0 };

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
