import { type ApprovalState, isFinal } from "../../action/approval.ts";
import { GatewayError } from "../../action/error.ts";
import type { ActivePolicy } from "../../action/policy.ts";
import type { Principal } from "../../action/principal.ts";
import type { Approvals } from "../../approval/approvals.ts";
import { listEnded, listLive } from "../../approval/history.ts";
import { approvalOperations } from "../../approval/operation.ts";
import { evidenceStatus } from "../../evidence/handler.ts";
import type { Ledger } from "../../evidence/ledger.ts";
import { evidenceOperations } from "../../evidence/operation.ts";
import type { EvidenceRecord } from "../../evidence/record/record.ts";
import type { RefusedAttempts } from "../../http/refused-attempt.ts";
import type { LiveFeed } from "../../observe/live-feed.ts";
import { type AdminOperation, checkAccess } from "../../operation/operation.ts";
import { checkPage, type PageQuery } from "../../operation/shape.ts";
import { pluginsOf, policyOperations } from "../../policy/operation.ts";
import { sessionOperations } from "../../session/operation.ts";
import type { SessionDirectory, SessionSort } from "../../session/session-directory.ts";
import type { SessionNames } from "../../session/session-name.ts";
import type { UsageMeter } from "../../usage/meter.ts";
import { readPeriod, usageOperations } from "../../usage/operation.ts";
import type { UsageDimension } from "../../usage/usage-report.ts";

export interface GraphqlSources {
  readonly attempts: RefusedAttempts;
  readonly live: LiveFeed;
  readonly approvals: Approvals;
  readonly ledger: Ledger;
  readonly sessionDirectory: SessionDirectory;
  readonly sessionNames: SessionNames;
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

/** The caller of a query, and the operation it came by. */
export interface GraphqlCaller {
  readonly caller: Principal;
  readonly operation: string;
}

/** Resolvers of the fields of `Query`. Each requires the permission of the operation that returns the same data. */
export function resolversOf(sources: GraphqlSources): object {
  const { attempts, live, approvals, ledger, sessionDirectory, sessionNames, meter, policies } = sources;
  const field = guardedBy(attempts);
  const { listEvidenceSessions, listRecords, getCheckpoint } = evidenceOperations;
  return {
    decisions: field(listRecords, ({ limit }: PageArgs, { tenant }) => {
      const latest = live.latest(tenant).slice(0, checkPage(limit, undefined).limit);
      return latest.map(({ time, data }) => ({ time, ...data }));
    }),
    approvals: field(
      approvalOperations.listApprovals,
      (args: PageArgs & { readonly state: ApprovalState }, { tenant }) => {
        const { store } = approvals;
        const page = pageOf(args);
        return isFinal(args.state)
          ? listEnded(store, tenant, args.state, page)
          : listLive(store, tenant, args.state, page);
      },
    ),
    approval: field(approvalOperations.getApproval, ({ id }: { readonly id: string }, { tenant }) =>
      approvals.store.find(tenant, id),
    ),
    sessions: field(sessionOperations.listSessions, (args: PageArgs & { readonly sort: SessionSort }, { tenant }) => {
      const { limit, cursor } = pageOf(args);
      return sessionDirectory.list(tenant, args.sort, limit, cursor);
    }),
    session: field(sessionOperations.getSession, async ({ id }: { readonly id: string }, { tenant }) =>
      sessionDirectory.show(tenant, await sessionNames.resolve(tenant, id)),
    ),
    evidence: field(getCheckpoint, (_: object, { tenant }) => evidenceStatus(ledger, tenant)),
    evidenceSessions: field(listEvidenceSessions, (args: PageArgs, { tenant }) =>
      ledger.sessions(tenant, pageOf(args)),
    ),
    records: field(listRecords, async (args: PageArgs & { readonly session: string }, { tenant }) => {
      const page = pageOf(args);
      const { items, next } = await ledger.records(tenant, await sessionNames.resolve(tenant, args.session), page);
      return { items: items.map(viewRecord), next };
    }),
    usage: field(usageOperations.getUsage, (args: UsageArgs, { tenant }) =>
      meter.page(tenant, { ...pageOf(args), ...readPeriod(args.from, args.to), by: args.by }),
    ),
    policies: field(policyOperations.listPolicies, () => policies()),
    plugins: field(policyOperations.listPlugins, () => pluginsOf(policies())),
  };
}

type Resolver<Args> = (args: Args, caller: GraphqlCaller) => Promise<unknown>;

/** Returns a function that makes resolvers which check the caller's permission first, and record what they refuse. */
function guardedBy(attempts: RefusedAttempts) {
  return <Args extends object>(
    { access }: AdminOperation,
    resolve: (args: Args, caller: Principal) => unknown,
  ): Resolver<Args> =>
    async (args, { caller, operation }) => {
      try {
        checkAccess(caller, access);
        return await resolve(args, caller);
      } catch (cause) {
        const { id, session }: { readonly id?: unknown; readonly session?: unknown } = args;
        throw await attempts.settle(caller, { route: operation, subject: id ?? session }, GatewayError.from(cause));
      }
    };
}

function viewRecord(record: EvidenceRecord): object {
  const { seq, kind, time, id } = record;
  return { seq, kind, time, id, whole: record };
}

/** A cursor that is null counts as absent. */
function pageOf({ limit, cursor }: PageArgs): PageQuery {
  return checkPage(limit, cursor ?? undefined);
}
