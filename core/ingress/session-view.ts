import type { Context } from "koa";
import type { Disclosure } from "../evidence/disclosure.ts";
import type { Ledger } from "../evidence/ledger.ts";
import type { EvidenceRecord } from "../evidence/record.ts";
import { isAction } from "../evidence/record-text.ts";
import { GatewayError } from "../kernel/error.ts";
import type { Principal } from "../kernel/principal.ts";
import { can } from "../kernel/role.ts";
import type { AskedBy } from "./api/asked.ts";

/** A record with what is kept of the arguments or the answer it commits to. */
type DisclosedRecord = EvidenceRecord & { readonly disclosed: Disclosure };

/** A page ends early, with the record whose values go beyond this many characters. */
const mostDisclosed = 16_777_216;

/**
 * Answers the records of one session; with `?disclose=true`, each with its private fields as far as they are kept.
 * Throws ROLE_FORBIDDEN where the caller may not read those.
 */
export async function showSession(
  ledger: Ledger,
  ctx: Context,
  caller: Principal,
  asked: AskedBy<"admin.session">,
): Promise<void> {
  const {
    id: session,
    query: { disclose, ...page },
  } = asked;
  if (disclose && !can(caller.role, "evidence.disclose")) {
    throw new GatewayError("ROLE_FORBIDDEN", `\`${caller.role}\` lacks \`evidence.disclose\``);
  }
  const { items, next } = await ledger.records(caller.tenant, session, page);
  if (!disclose) {
    ctx.body = { items, next };
    return;
  }
  // Before anything is read: what was looked at is known even if the answer never arrives.
  await ledger.recordEvent(caller.tenant, "admin", { action: "evidence.disclose", principal: caller.id, session });
  const disclosed = await discloseSome(ledger, items);
  const cut = items[disclosed.length];
  ctx.body = { items: disclosed, next: cut === undefined ? next : String(indexOf(cut)) };
}

async function discloseSome(ledger: Ledger, records: readonly EvidenceRecord[]): Promise<readonly DisclosedRecord[]> {
  const items: DisclosedRecord[] = [];
  let size = 0;
  for (const record of records) {
    if (size > mostDisclosed) break;
    const disclosed = isAction(record) ? await ledger.disclosure(record) : {};
    size += JSON.stringify(disclosed).length;
    items.push({ ...record, disclosed });
  }
  return items;
}

function indexOf(record: EvidenceRecord): number {
  if ("session" in record) return record.session.index;
  throw new TypeError("showSession: expected the records of a session");
}
