import type { Approvals } from "../../approval/approvals.ts";
import { listLive } from "../../approval/history.ts";
import type { Ledger } from "../../evidence/ledger.ts";
import type { Approval } from "../../kernel/approval.ts";
import type { StandingPolicy } from "../../kernel/policy.ts";
import type { Principal } from "../../kernel/principal.ts";
import type { LiveFeed } from "../../observe/live-feed.ts";
import type { Metrics } from "../../observe/metrics.ts";
import type { ProviderFleet } from "../../provider/fleet.ts";
import type { UpstreamFleet } from "../../upstream/fleet.ts";
import { evidenceStanding } from "../evidence-standing.ts";
import type { Health } from "../health.ts";
import { showProvider } from "../provider-view.ts";
import type { SessionOverview } from "./session-overview.ts";

export interface DashboardParts {
  readonly health: () => Health;
  readonly live: LiveFeed;
  readonly ledger: Ledger;
  readonly approvals: Approvals;
  readonly fleet: UpstreamFleet;
  readonly providers: ProviderFleet;
  readonly sessions: SessionOverview;
  readonly metrics: Metrics;
  readonly policies: () => readonly StandingPolicy[];
}

const mostApprovals = 50;
const mostTrials = 100;

/** What anybody may know who reaches the port, and why it is no more. */
export function publicData({ health }: Pick<DashboardParts, "health">): object {
  const notice =
    "Protected views need an API key. This page neither asks for one nor keeps one: let a reverse proxy that has " +
    "authenticated you add it as `X-API-Key`.";
  return { service: health(), authentication: { required: true, notice } };
}

/** How the caller's tenant stands now; nothing of arguments and answers. */
export async function tenantData(parts: DashboardParts, { tenant, role }: Principal): Promise<object> {
  const { health, live, ledger, approvals, fleet, providers, policies } = parts;
  return {
    service: health(),
    authentication: { required: true, tenant, role },
    decisions: live.latest(tenant),
    rates: live.standing(tenant),
    sessions: await parts.sessions.read(tenant),
    approvals: listLive(approvals.book, tenant, "pending", { limit: mostApprovals }).items.map(viewApproval),
    would_have: parts.metrics.trials.list(tenant, { limit: mostTrials }).items,
    upstreams: fleet.health(),
    providers: providers.health().map(showProvider),
    evidence: evidenceStanding(ledger, tenant),
    extensions: policies(),
  };
}

function viewApproval({ id, action, evaluation, requested_at, expires_at, required, endorsements }: Approval): object {
  const { tool, target, capability, protocol } = action;
  const { risk, rules } = evaluation;
  const endorsed = endorsements.length;
  return { id, tool, target, capability, protocol, risk, rules, requested_at, expires_at, required, endorsed };
}
