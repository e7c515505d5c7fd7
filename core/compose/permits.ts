import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { Approvals } from "../approval/approvals.ts";
import { approvalNotice } from "../approval/view.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { DefinitionReviews } from "../definition/definition-reviews.ts";
import { DefinitionStore } from "../definition/definition-store.ts";
import { openKeyStores } from "../evidence/key/key-folder.ts";
import type { Ledger } from "../evidence/ledger.ts";
import type { KeyRing } from "../identity/key-ring.ts";
import type { WebhookNotifier } from "../notify/webhook-notifier.ts";
import type { GatewayClock } from "../observe/gateway-clock.ts";
import type { LiveFeed } from "../observe/live-feed.ts";
import type { Log } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Ownership } from "../replica/replica.ts";
import type { Store } from "../store/open.ts";
import { Tickets } from "../ticket/tickets.ts";
import type { UpstreamFleet } from "../upstream/fleet.ts";
import { newId } from "./identity.ts";

interface Opening {
  readonly store: Store;
  readonly ledger: Ledger;
  readonly log: Log;
}

interface Timed {
  readonly clock: GatewayClock;
}

/** The receivers of changes to approvals. */
interface ApprovalListeners {
  readonly notifier: WebhookNotifier;
  readonly metrics: Metrics;
  readonly live: LiveFeed;
}

/** Opens the approvals of all tenants. */
export function openApprovals(
  { approvals, limits }: GatewayConfig,
  { store, ledger, log, clock, notifier, metrics, live }: Opening & Timed & ApprovalListeners,
): Promise<Approvals> {
  return Approvals.open({
    store,
    journal: ledger.approvals,
    limits: { ...approvals, keySharePercent: limits.keySharePercent },
    rule: approvals,
    clock: Date.now,
    gatewayTime: clock.checked,
    tenants: ledger.readyTenants(),
    newId,
    onChange: (approval) => {
      metrics.approval(approval.state);
      const notice = approvalNotice(approval, new Date().toISOString(), approvals.reviewUrl);
      if (notice === undefined) return;
      notifier.publish(notice);
      live.publish(approval.tenant, "approvals", () => ({ ...notice.data }));
    },
    onWarning: (message, fields) => log.warn(fields, message),
  });
}

/** Opens the definitions of the upstreams' tools, and their review. */
export function openDefinitions(
  { upstreams, approvals: { allowSelfReview } }: GatewayConfig,
  { store, ledger, log, fleet, approvals }: Opening & { readonly fleet: UpstreamFleet; readonly approvals: Approvals },
): { readonly definitions: DefinitionStore; readonly definitionReviews: DefinitionReviews } {
  const definitions = new DefinitionStore({
    store,
    log: ledger,
    clock: Date.now,
    upstreams,
    onWithheld: async (tenant, { id, upstream, tool, reasons }) => {
      const findings = reasons.map(({ finding }) => finding);
      log.warn({ tenant, id, upstream, tool, findings }, "definition_withheld");
      await approvals.expiry.endTool(tenant, upstream, tool);
    },
  });
  const onApproved = (upstream: string): void => fleet.announceTools(upstream);
  return { definitions, definitionReviews: new DefinitionReviews({ store: definitions, allowSelfReview, onApproved }) };
}

/** Opens the capability tickets of all tenants. The keys that sign tickets lie apart from those that sign evidence. */
export function openTickets(
  { dataDir, state, tickets }: GatewayConfig,
  {
    store,
    ledger,
    log,
    clock,
    keyRing,
    metrics,
    owned,
  }: Opening &
    Timed &
    Pick<ApprovalListeners, "metrics"> & { readonly keyRing: KeyRing; readonly owned: Ownership | null },
): Promise<Tickets> {
  const folder = state.enabled ? join(dataDir, "keys", "tickets") : null;
  const { keys } = openKeyStores(folder, randomBytes, owned?.shareKey);
  return Tickets.open({
    store,
    ledger,
    keys,
    rule: tickets,
    clock: clock.latest,
    sweepClock: clock.earliest,
    random: randomBytes,
    newId,
    isPrincipal: (tenant, principal) => keyRing.knows(tenant, principal),
    onEvent: (event, times) => metrics.tickets.happened(event, times),
    onWarning: (message, fields) => log.warn(fields, message),
  });
}
