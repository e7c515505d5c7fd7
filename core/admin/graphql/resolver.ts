import { type ApprovalState, isFinal } from "../../action/approval.ts";
import { GatewayError } from "../../action/error.ts";
import type { ActivePolicy } from "../../action/policy.ts";
import type { Principal } from "../../action/principal.ts";
import type { Permission } from "../../action/role.ts";
import type { Approvals } from "../../approval/approvals.ts";
import { listLive, listPast } from "../../approval/history.ts";
import type { Ledger } from "../../evidence/ledger.ts";
import { evidenceStanding } from "../../evidence/operation.ts";
import type { EvidenceRecord } from "../../evidence/record/record.ts";
import { checkRole } from "../../http/access.ts";
import type { RefusedAttempts } from "../../http/refused-attempt.ts";
import type { LiveFeed } from "../../observe/live-feed.ts";
import type { RouteId } from "../../operation/operation.ts";
import { checkPage, type Page } from "../../operation/shape.ts";
import { pluginsOf } from "../../policy/operation.ts";
import type { SessionDirectory, SessionSort } from "../../session/session-directory.ts";
import type { UsageMeter } from "../../usage/meter.ts";
import { checkUsageDays } from "../../usage/operation.ts";
import type { UsageDimension } from "../../usage/usage-report.ts";

export interface GraphqlParts {
  readonly attempts: RefusedAttempts;
  readonly live: LiveFeed;
  readonly approvals: Approvals;
  readonly ledger: Ledger;
  readonly sessionDirectory: SessionDirectory;
  readonly meter: UsageMeter;
  readonly policies: () => readonly ActivePolicy[];
}

interface PageArgs {
  readonly limit: number;
  readonly cursor?: string | null;
}

interface UsageArgs extends PageArgs {
  readonly from: string;
  readonly to: string;
  readonly by: readonly UsageDimension[];
}

/** Who asks, and where. */
export interface Asker {
  readonly caller: Principal;
  readonly route: RouteId;
}

/** What answers each field of `Query`, and what a caller's role has to carry for it. */
export function resolversOf(parts: GraphqlParts): object {
  const { attempts, live, approvals, ledger, sessionDirectory, meter, policies } = parts;
  const guarded = guard(attempts);
  return {
    decisions: guarded("evidence.read", ({ limit }: PageArgs, { tenant }) => {
      const latest = live.latest(tenant).slice(0, checkPage(limit, undefined).limit);
      return latest.map(({ time, data }) => ({ time, ...data }));
    }),
    approvals: guarded("approval.read", (args: PageArgs & { readonly state: ApprovalState }, { tenant }) => {
      const { book } = approvals;
      const page = pageOf(args);
      return isFinal(args.state) ? listPast(book, tenant, args.state, page) : listLive(book, tenant, args.state, page);
    }),
    approval: guarded("approval.read", ({ id }: { readonly id: string }, { tenant }) =>
      approvals.book.find(tenant, id),
    ),
    sessions: guarded("session.read", (args: PageArgs & { readonly sort: SessionSort }, { tenant }) => {
      const { limit, cursor } = pageOf(args);
      return sessionDirectory.list(tenant, args.sort, limit, cursor);
    }),
    session: guarded("session.read", ({ id }: { readonly id: string }, { tenant }) =>
      sessionDirectory.show(tenant, id),
    ),
    evidence: guarded("evidence.read", (_: object, { tenant }) => evidenceStanding(ledger, tenant)),
    evidenceSessions: guarded("evidence.read", (args: PageArgs, { tenant }) => ledger.sessions(tenant, pageOf(args))),
    records: guarded("evidence.read", async (args: PageArgs & { readonly session: string }, { tenant }) => {
      const { items, next } = await ledger.records(tenant, args.session, pageOf(args));
      return { items: items.map(viewRecord), next };
    }),
    usage: guarded("usage.read", (args: UsageArgs, { tenant }) => {
      const { from, to, by } = args;
      return meter.page(tenant, { ...pageOf(args), ...checkUsageDays(from, to), by });
    }),
    policies: guarded("policy.read", () => policies()),
    plugins: guarded("policy.read", () => pluginsOf(policies())),
  };
}

type Resolver<Args, Answer> = (args: Args, asker: Asker) => Promise<Answer>;

/** Makes resolvers that look at the caller's role first. What one refuses is an attempt, which its argument names. */
function guard(attempts: RefusedAttempts) {
  return <Args extends object, Answer>(
    permission: Permission,
    answer: (args: Args, caller: Principal) => Answer | Promise<Answer>,
  ): Resolver<Args, Answer> =>
    async (args, { caller, route }) => {
      try {
        checkRole(caller, permission);
        return await answer(args, caller);
      } catch (cause) {
        const { id, session }: { readonly id?: unknown; readonly session?: unknown } = args;
        throw await attempts.settle(caller, { route, subject: id ?? session }, GatewayError.from(cause));
      }
    };
}

function viewRecord(record: EvidenceRecord): object {
  const { seq, kind, time, id } = record;
  return { seq, kind, time, id, whole: record };
}

/** A variable that is null is as good as none. */
function pageOf({ limit, cursor }: PageArgs): Page {
  return checkPage(limit, cursor ?? undefined);
}
