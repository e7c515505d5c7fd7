import { randomBytes } from "node:crypto";
import { GatewayError } from "../action/error.ts";
import type { Clock, Random } from "../action/id.ts";
import type { JsonRpcNotification, McpEra } from "../action/json-rpc.ts";
import type { SharePercents } from "../action/place-share.ts";
import type { JsonBounds } from "../action/strict-json.ts";
import type { UpstreamConfig } from "../config/gateway-config.ts";
import type { EgressGuard } from "../egress/egress-guard.ts";
import type { ConnectionListener, Contradiction, GroupScope, UpstreamEventSink, UpstreamHealth } from "./connection.ts";
import { type Link, type NotificationHandler, UpstreamGroup } from "./group.ts";
import { type HiddenTool, HiddenTools } from "./hidden-tools.ts";
import { type LinkPorts, OwnLink } from "./own-link.ts";
import { SharedConnection, SharedLink } from "./shared-connection.ts";
import { Upstream } from "./upstream.ts";

interface FleetOptions {
  readonly configs: readonly UpstreamConfig[];
  readonly replyBounds: JsonBounds;
  /** Maximum length of one message. */
  readonly replyBytes: number;
  /** The shares of the connections to each upstream. */
  readonly shares: SharePercents;
  /** Monotonic: it measures durations alone. */
  readonly clock: Clock;
  readonly random?: Random;
  /** The gateway's introduction on shared connections. */
  readonly gatewayInfo: { readonly name: string; readonly version: string };
  readonly onEvent?: UpstreamEventSink;
  readonly egress: EgressGuard;
}

/** An upstream, its tools that policy hid from the tenant's agents, and those whose annotations the operator overrules. */
export interface UpstreamView extends UpstreamHealth {
  readonly hidden: readonly HiddenTool[];
  readonly contradictions: readonly Contradiction[];
}

/** All configured upstreams. Owns every process and socket it opened. */
export class UpstreamFleet {
  /** The tools that policy hid from agents, as the lists that were served record them. */
  readonly hiddenTools: HiddenTools = new HiddenTools();
  /** The common connections, for requests without a session: one group an era, never closed by its users. */
  readonly shared: Readonly<Record<McpEra, UpstreamGroup>>;
  readonly #upstreams: readonly Upstream[];
  readonly #ports: LinkPorts;
  readonly #gatewayInfo: { readonly name: string; readonly version: string };
  readonly #shared: Map<string, SharedConnection> = new Map();
  /** The clients behind the open groups. */
  readonly #listeners: Set<ConnectionListener> = new Set();

  /** Throws CONFIG_INVALID for an address or header that no upstream can have, TypeError for a name used twice. */
  constructor(options: FleetOptions) {
    const { clock, shares, egress, random = randomBytes, onEvent = () => undefined } = options;
    const bounds = { bytes: options.replyBytes, json: options.replyBounds };
    this.#ports = { clock, random, onEvent };
    this.#gatewayInfo = options.gatewayInfo;
    this.#upstreams = options.configs.map((config) => new Upstream(config, { ...this.#ports, bounds, shares, egress }));
    const names = new Set(options.configs.map(({ name }) => name));
    if (names.size < options.configs.length) throw new TypeError("UpstreamFleet: two upstreams have the same name");
    this.shared = { legacy: this.join("legacy"), modern: this.join("modern") };
  }

  /** Connections for one client: its own where the upstream is configured so, else a share of the common one. */
  group(scope: Omit<GroupScope, "clientInfo">): UpstreamGroup {
    const handlers: Set<NotificationHandler> = new Set();
    const clientInfo = this.#gatewayInfo;
    const extended: GroupScope = { ...scope, clientInfo, listener: withHandlers(scope.listener, handlers) };
    const links = this.#upstreams.map((upstream) =>
      upstream.config.connection === "session"
        ? new OwnLink(upstream, extended, this.#ports)
        : new SharedLink(this.#sharedConnection(upstream, scope.era), extended),
    );
    return this.#openGroup(links, handlers, extended.listener);
  }

  /** The common connections for one listener, with subscriptions of its own; closing it leaves them to the others. */
  join(era: McpEra): UpstreamGroup {
    const handlers: Set<NotificationHandler> = new Set();
    const scope: GroupScope = {
      holder: null,
      era,
      clientInfo: this.#gatewayInfo,
      capabilities: {},
      listener: withHandlers(clientless, handlers),
    };
    const links = this.#upstreams.map((upstream) => new SharedLink(this.#sharedConnection(upstream, era), scope));
    return this.#openGroup(links, handlers, scope.listener);
  }

  /** Announces to every client that the tools of an upstream changed, as after the review of a definition. */
  announceTools(upstream: string): void {
    const change: JsonRpcNotification = { jsonrpc: "2.0", method: "notifications/tools/list_changed" };
    for (const listener of this.#listeners) listener.onNotification(upstream, change);
  }

  /**
   * Starts every upstream, without waiting: finds its era and reads its tools before a client needs them. One that fails, now
   * or later, is tried again until it is up.
   */
  start(): void {
    for (const upstream of this.#upstreams) {
      const shared = this.#sharedConnection(upstream, "modern");
      upstream.onFailed = (delayMs) => shared.restart(delayMs);
      upstream.awaitFirst(shared.start());
    }
  }

  health(): readonly UpstreamHealth[] {
    return this.#upstreams.map((upstream) => upstream.health());
  }

  /** The upstreams as operators of a tenant see them. */
  overview(tenant: string): readonly UpstreamView[] {
    return this.#upstreams.map((upstream) => ({
      ...upstream.health(),
      hidden: this.hiddenTools.of(tenant, upstream.config.name),
      contradictions: upstream.tools.contradictions,
    }));
  }

  /** Ends all connections. Resolves when every process is gone. */
  async close(): Promise<void> {
    // At once: a shared connection that is being opened waits for its upstream, which aborts the attempt.
    await Promise.all([...this.#shared.values(), ...this.#upstreams].map((part) => part.close()));
  }

  #openGroup(links: readonly Link[], handlers: Set<NotificationHandler>, listener: ConnectionListener): UpstreamGroup {
    this.#listeners.add(listener);
    return new UpstreamGroup(links, handlers, this.#ports.onEvent, () => this.#listeners.delete(listener));
  }

  /**
   * One process serves both eras, because its memory is one; the stateless era is tried first. Over HTTP each era has a
   * connection of its own.
   */
  #sharedConnection(upstream: Upstream, era: McpEra): SharedConnection {
    const stdio = upstream.config.transport === "stdio";
    const key = JSON.stringify([upstream.config.name, stdio ? "any" : era]);
    const known = this.#shared.get(key);
    if (known !== undefined) return known;
    const shared = new SharedConnection(upstream, stdio ? "modern" : era, this.#gatewayInfo, this.#ports);
    this.#shared.set(key, shared);
    return shared;
  }
}

/** Requests without a session have no client to notify or to ask. */
const clientless: ConnectionListener = {
  onNotification: () => undefined,
  onRequest: async () => {
    throw new GatewayError("METHOD_UNKNOWN", "this connection has no client behind it");
  },
  onClose: () => undefined,
};

function withHandlers(listener: ConnectionListener, handlers: ReadonlySet<NotificationHandler>): ConnectionListener {
  return {
    onNotification: (upstream: string, notification: JsonRpcNotification) => {
      listener.onNotification(upstream, notification);
      for (const handler of handlers) handler(notification, upstream);
    },
    onRequest: (upstream, request, signal) => listener.onRequest(upstream, request, signal),
    onClose: (upstream, reason) => listener.onClose(upstream, reason),
  };
}
