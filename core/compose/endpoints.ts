import type { FactStatement } from "../action/action-fact.ts";
import { type DirectProtocol, directProtocols } from "../action/envelope.ts";
import type { GatewayError } from "../action/error.ts";
import { GlobTable } from "../action/glob.ts";
import type { Participant } from "../action/participant.ts";
import type { Tracer } from "../action/trace.ts";
import type { Approvals } from "../approval/approvals.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { DefinitionStore } from "../definition/definition-store.ts";
import type { Ledger } from "../evidence/ledger.ts";
import type { CallStatements } from "../fact/call-fact.ts";
import { FactReader } from "../fact/fact-reader.ts";
import { parsersWith } from "../fact/shipped-parser.ts";
import { DirectCapabilities } from "../gateway/hook/direct-capability.ts";
import { directDialects } from "../gateway/hook/direct-dialect.ts";
import { HookEndpoint } from "../gateway/hook/endpoint.ts";
import { agentForms } from "../gateway/hook/hook-agent.ts";
import { McpEndpoint } from "../gateway/mcp/endpoint.ts";
import { Hold } from "../gateway/mcp/hold.ts";
import type { DropReason } from "../gateway/mcp/notification.ts";
import type { SessionTable } from "../gateway/mcp/session-table.ts";
import { SseEndpoint, type SseParts } from "../gateway/mcp/sse.ts";
import { ModelEndpoint } from "../gateway/model/endpoint.ts";
import { ReviewWaits } from "../gateway/review-wait.ts";
import type { Challenge } from "../http/access.ts";
import type { FairShare } from "../http/fair-share.ts";
import { ConcurrencyLimit } from "../http/rate.ts";
import type { TaskBinding } from "../manifest/task-binding.ts";
import { limitWarnings } from "../observe/limited-warning.ts";
import type { LiveFeed } from "../observe/live-feed.ts";
import type { Log } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { RecentActions } from "../observe/recent-action.ts";
import type { PolicyChain } from "../policy/chain.ts";
import type { ProviderFleet } from "../provider/fleet.ts";
import { toolCallsOf } from "../provider/wire/tool-call.ts";
import { ActionFactory, UntrustedSources } from "../road/action-factory.ts";
import type { InFlight } from "../road/in-flight.ts";
import type { Road } from "../road/run.ts";
import type { Tickets } from "../ticket/tickets.ts";
import type { UpstreamFleet } from "../upstream/fleet.ts";
import type { UsageMeter } from "../usage/meter.ts";
import { Tokenizer } from "../usage/tokenizer.ts";
import { bodyLimits, identity, modelBodyLimits, newId } from "./identity.ts";

/** The parts that the endpoints are made of. */
interface EndpointSources {
  readonly ledger: Ledger;
  readonly approvals: Approvals;
  readonly metrics: Metrics;
  readonly chain: PolicyChain;
  readonly fleet: UpstreamFleet;
  readonly definitions: DefinitionStore;
  readonly providers: ProviderFleet;
  readonly sessions: SessionTable;
  readonly tickets: Tickets;
  readonly inFlight: InFlight;
  readonly taskBinding: TaskBinding;
  readonly meter: UsageMeter;
  readonly fairShare: FairShare;
  readonly live: LiveFeed;
  readonly challenge: Challenge;
  readonly tracer: Tracer;
  readonly recent: RecentActions;
  readonly participants: readonly Participant[];
}

export interface Endpoints {
  readonly endpoint: McpEndpoint;
  readonly sse: SseEndpoint;
  readonly model: ModelEndpoint;
  readonly hook: HookEndpoint;
  /** The road of them all. */
  readonly road: Road;
}

/** An upstream can cause each of them a thousand times a second; each is logged once a minute. */
const droppedText: Readonly<Record<DropReason, string>> = {
  policy: "notification_blocked",
  late: "notification_expired",
  full: "notification_queue_full",
};

type Shared = Pick<SseParts, "road" | "tickets" | "inFlight" | "tasks" | "body" | "fairShare" | "onFault">;

/** The limit of bytes that one streamed answer may hold beside its texts: tool calls wait whole. */
const maxHeldBytes = 1_048_576;

/** Makes the endpoints of the gateway port, and the one road behind them. */
export function openEndpoints(config: GatewayConfig, log: Log, open: EndpointSources): Endpoints {
  const { ledger, metrics, chain, inFlight, live, recent, fairShare, taskBinding: tasks } = open;
  const tickets = open.tickets.verifier;
  const calls = callStatementsOf(config);
  const road: Road = {
    facts: new FactReader({
      statements: statementsOf(config),
      parsers: parsersWith(config.effects),
      dialectOf: directDialects(config.hooks.dialects),
      calls,
    }),
    participants: open.participants,
    policies: chain,
    log: ledger.actions,
    subscribers: [metrics, metrics.shadowLog, recent, live],
    newId,
  };
  const shared = {
    road,
    tickets,
    inFlight,
    tasks,
    body: bodyLimits(config),
    fairShare,
    onFault: (requestId: string, error: GatewayError): void =>
      log.info({ request_id: requestId, code: error.code, detail: error.loggedDetail }, "request_refused"),
  };
  const waits = new ReviewWaits({ book: open.approvals.store, onCount: (count) => metrics.heldCalls(count) });
  const mcp = mcpParts(config, log, open, shared, waits);
  const { toolPassthrough, providerTools, maxConcurrent, holdbackBytes } = config.modelGateway;
  const model = new ModelEndpoint({
    ...shared,
    body: modelBodyLimits(config),
    actions: new ActionFactory("model", Date.now, newId, { untrusted: new UntrustedSources([]), tasks }),
    fleet: open.providers,
    meter: open.meter,
    onHintDropped: (hint: string): void => log.info({ api: "gemini", members: [hint] }, "request_hints_dropped"),
    tokenizer: () => Tokenizer.load(),
    concurrency: new ConcurrencyLimit(maxConcurrent),
    toolPassthrough: { passes: toolPassthrough, providerTools },
    holdback: holdbackBytes,
    maxHeldBytes: maxHeldBytes + holdbackBytes,
    holdsCalls: calls !== undefined,
    metrics,
    tracer: open.tracer,
  });
  const hook = new HookEndpoint({
    ...shared,
    actions: directFactories(tasks),
    capabilities: new DirectCapabilities(config.hooks.capabilities),
    maxWaitMs: config.hooks.maxWaitMs,
    waits,
  });
  return { endpoint: new McpEndpoint(mcp), sse: new SseEndpoint(mcp), model, hook, road };
}

/** The statements about the tools of each upstream that has any, and about those that coding agents have by themselves. */
function statementsOf({ upstreams }: GatewayConfig): ReadonlyMap<string, GlobTable<FactStatement>> {
  const own = Object.entries(agentForms).map(([agent, { facts }]) => ({ name: agent, facts }));
  const stated = upstreams.filter(({ facts }) => Object.keys(facts).length > 0);
  return new Map([...own, ...stated].map(({ name, facts }) => [name, new GlobTable(facts)]));
}

/** The statements about the tools that models ask for; undefined where there are none. What is stated of a name itself comes first. */
function callStatementsOf({ modelGateway: { tools } }: GatewayConfig): CallStatements | undefined {
  const offered = tools.agents.map((agent) => agentForms[agent].offered);
  const facts = Object.assign({}, ...offered.map((each) => each.facts), tools.facts) as typeof tools.facts;
  const capabilities = Object.assign(
    {},
    ...offered.map((each) => each.capabilities),
    tools.capabilities,
  ) as typeof tools.capabilities;
  if (Object.keys(facts).length + Object.keys(capabilities).length === 0) return undefined;
  return {
    facts: new GlobTable(facts),
    capabilities: new GlobTable(capabilities),
    read: ({ tool, output }) => toolCallsOf(tool, output),
  };
}

/** The makers of actions that agents ask about, by protocol. No operator marks what they return as text of strangers. */
function directFactories(tasks: TaskBinding): Readonly<Record<DirectProtocol, ActionFactory>> {
  const sources = { untrusted: new UntrustedSources([]), tasks };
  return Object.fromEntries(
    directProtocols.map((protocol) => [protocol, new ActionFactory(protocol, Date.now, newId, sources)]),
  ) as Readonly<Record<DirectProtocol, ActionFactory>>;
}

function mcpParts(
  config: GatewayConfig,
  log: Log,
  open: EndpointSources,
  shared: Shared,
  waits: ReviewWaits,
): SseParts {
  const { ledger, approvals, metrics, fleet, sessions, definitions } = open;
  const tell = limitWarnings((message, fields) => log.info(fields, message));
  const recordSession: SseParts["recordSession"] = (principal, scope, client) =>
    ledger.recordEvent(principal.tenant, "session", { principal: principal.id, session: scope.id, client });
  return {
    ...shared,
    identity,
    fleet,
    definitions,
    sessions,
    actions: new ActionFactory("mcp", Date.now, newId, {
      untrusted: new UntrustedSources(config.upstreams),
      tasks: shared.tasks,
    }),
    hold: new Hold({ ...config.approvals, book: approvals.store, newId, waits }),
    newId,
    onDropped: ({ reason, upstream, action }) => {
      metrics.notificationDropped(reason);
      tell(droppedText[reason], { upstream, action_id: action });
    },
    challenge: open.challenge,
    metaPassthrough: config.mcpGateway.metaPassthrough,
    metrics,
    tracer: open.tracer,
    recordSession,
    onScopeEnded: async (scope, principal) => {
      // What was approved for a live connection dies with it, whether or not its end can be recorded.
      await approvals.expiry.endSession(principal.tenant, scope.id);
      await recordSession(principal, scope, { event: "closed" });
    },
  };
}
