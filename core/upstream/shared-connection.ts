import { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { JsonRpcNotification, JsonRpcResponse, McpEra } from "../action/json-rpc.ts";
import { Backoff } from "./backoff.ts";
import { Catalog } from "./catalog.ts";
import { announceLists, watchChanges, withoutSubscription } from "./change-watch.ts";
import type {
  ConnectionListener,
  Exchange,
  GroupScope,
  OutgoingRequest,
  ServerDescription,
  UpstreamConnection,
} from "./connection.ts";
import { viewFor } from "./connection-view.ts";
import type { Link } from "./group.ts";
import { Opening } from "./opening.ts";
import type { LinkPorts } from "./own-link.ts";
import type { RpcConnection } from "./rpc-connection.ts";
import type { Upstream } from "./upstream.ts";

/** The pauses between attempts to start an upstream that nobody waits for. */
const minRestartMs = 1_000;
const maxRestartMs = 60_000;

/** One group's share of a shared connection. */
interface Member {
  /** Resources this group has subscribed to. */
  readonly uris: Set<string>;
  readonly onNotification: (notification: JsonRpcNotification) => void;
  readonly onClose: (reason: string) => void;
}

/**
 * One connection for all groups, introduced as the gateway itself and without client capabilities.
 * Unsolicited notifications may concern any of the groups: list changes go to all, resource updates to their
 * subscribers, and everything else is dropped. A process that ended is started again.
 */
export class SharedConnection {
  readonly upstream: Upstream;
  readonly catalog: Catalog;
  readonly members: Set<Member> = new Set();
  /** True once a client needs the connection: then it stays open. */
  isUsed = false;
  readonly #era: McpEra;
  readonly #clientInfo: JsonObject;
  readonly #ports: LinkPorts;
  readonly #backoff: Backoff;
  #open: RpcConnection | undefined;
  readonly #opening: Opening<RpcConnection>;
  #restartTimer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(upstream: Upstream, era: McpEra, clientInfo: JsonObject, ports: LinkPorts) {
    this.upstream = upstream;
    this.#era = era;
    this.#clientInfo = clientInfo;
    this.#ports = ports;
    this.#backoff = new Backoff(ports.clock, ports.random);
    const { clock, onEvent } = ports;
    const { name, startTimeoutMs } = upstream.config;
    this.#opening = new Opening({ upstream: name, startTimeoutMs, clock, open: () => this.#connect() });
    const connect = () => this.connection();
    this.catalog = new Catalog({ upstream: name, tools: upstream.tools, clock, onEvent, connect });
  }

  get isFailing(): boolean {
    return this.#open === undefined && this.upstream.isFailing;
  }

  connection(): RpcConnection | Promise<RpcConnection> {
    return this.#open ?? this.#opening.wait();
  }

  /**
   * Opens the connection and reads the tools. Where it cannot be opened, tries again, with growing pauses, until it is. Then
   * closes it, unless a client uses it or all sessions will: it must not take the place of a session's own.
   */
  async start(pausedMs = 0): Promise<void> {
    try {
      await (this.#open ?? this.#opening.run());
    } catch {
      // The upstream reported the fault as an event.
      const pauseMs = Math.min(Math.max(2 * pausedMs, minRestartMs), maxRestartMs);
      this.restart(Math.max(pauseMs, this.upstream.retryAfterMs));
      return;
    }
    await this.catalog.tools.read();
    if (this.#isSpare) await this.#giveUp();
  }

  /** Starts it after a pause. */
  restart(delayMs: number): void {
    if (this.#isClosed) return;
    clearTimeout(this.#restartTimer);
    this.#restartTimer = setTimeout(() => void this.start(delayMs), delayMs);
    this.#restartTimer.unref();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#restartTimer);
    await this.#opening.settled();
    await this.#open?.close();
  }

  get #isSpare(): boolean {
    return this.upstream.config.connection === "session" && !this.isUsed;
  }

  /** Closes the open connection. The next use opens another one. */
  async #giveUp(): Promise<void> {
    const open = this.#open;
    this.#open = undefined;
    await open?.close();
  }

  async #connect(): Promise<RpcConnection> {
    await this.#backoff.wait();
    const listener: ConnectionListener = {
      onNotification: (_, notification) => this.#deliver(notification),
      onRequest: async (_, { method }) => {
        throw new GatewayError(
          "METHOD_UNKNOWN",
          `\`${method.slice(0, 128)}\`: this connection has no client behind it`,
        );
      },
      onClose: (_, reason) => this.#onLost(reason),
    };
    const connection = await this.upstream.open({
      clientInfo: this.#clientInfo,
      capabilities: {},
      prefers: this.#era,
      isRenewable: true,
      lease: { holder: null, isSpare: () => this.#isSpare, giveUp: () => this.#giveUp() },
      listener,
    });
    if (this.#isClosed) {
      await connection.close();
      throw new GatewayError("STOPPING");
    }
    this.#backoff.opened();
    this.#open = connection;
    watchChanges(connection, (notification) => this.#deliver(withoutSubscription(notification)));
    if (this.#opening.claimMissed()) {
      this.catalog.invalidate();
      announceLists(connection.server.capabilities, (change) => this.#deliver(change));
    }
    return connection;
  }

  #deliver(notification: JsonRpcNotification): void {
    const { method, params } = notification;
    this.catalog.onNotification(method);
    const isListChange = method.endsWith("/list_changed");
    const uri = method === "notifications/resources/updated" ? params?.uri : undefined;
    for (const member of this.members) {
      if (isListChange || (typeof uri === "string" && member.uris.has(uri))) member.onNotification(notification);
    }
  }

  #onLost(reason: string): void {
    this.#open = undefined;
    this.catalog.invalidate();
    const delayMs = this.#backoff.failed();
    const upstream = this.upstream.config.name;
    this.#ports.onEvent({ kind: "upstream_retry_scheduled", upstream, delayMs, failures: this.#backoff.failures });
    for (const member of [...this.members]) member.onClose(reason);
    if (this.upstream.config.transport === "stdio") this.restart(delayMs);
  }
}

/** A group's share of a connection that others use too. */
export class SharedLink implements Link {
  readonly upstream: string;
  readonly #shared: SharedConnection;
  readonly #scope: GroupScope;
  readonly #member: Member;
  /** The view of the open connection; undefined while there is none. */
  #view: UpstreamConnection | undefined;

  constructor(shared: SharedConnection, scope: GroupScope) {
    this.upstream = shared.upstream.config.name;
    this.#shared = shared;
    this.#scope = scope;
    this.#member = {
      uris: new Set(),
      onNotification: (notification) => scope.listener.onNotification(this.upstream, notification),
      onClose: (reason) => {
        this.#member.uris.clear();
        this.#view = undefined;
        scope.listener.onClose(this.upstream, reason);
      },
    };
    shared.members.add(this.#member);
  }

  get isFailing(): boolean {
    return this.#shared.isFailing;
  }

  get catalog(): Catalog {
    this.#shared.isUsed = true;
    return this.#shared.catalog;
  }

  get server(): ServerDescription | undefined {
    return this.#shared.upstream.server;
  }

  mayList(exposedName: string): boolean {
    return this.#shared.upstream.tools.mayList(exposedName);
  }

  hasListed(exposedName: string): boolean {
    return this.#shared.upstream.tools.hasListed(exposedName);
  }

  connection(): UpstreamConnection | Promise<UpstreamConnection> {
    if (this.#view !== undefined) return this.#view;
    this.#shared.isUsed = true;
    const open = this.#shared.connection();
    return open instanceof Promise ? open.then((opened) => this.#viewOf(opened)) : this.#viewOf(open);
  }

  /** Leaves the connection, which stays open for the others. */
  async close(): Promise<void> {
    await this.#view?.close();
    this.#shared.members.delete(this.#member);
  }

  #viewOf(open: RpcConnection): UpstreamConnection {
    if (this.#view !== undefined) return this.#view;
    const lease = new Lease(open, this.#member, this.#shared.members);
    const view = viewFor(this.#scope.era, lease, (notification) =>
      this.#member.onNotification(withoutSubscription(notification)),
    );
    if (!open.isEnded) this.#view = view;
    return view;
  }
}

/** A shared connection as one member uses it: with subscriptions of its own, and without closing it for the others. */
class Lease implements UpstreamConnection {
  readonly upstream: string;
  readonly server: ServerDescription;
  readonly #inner: RpcConnection;
  readonly #member: Member;
  readonly #members: ReadonlySet<Member>;

  constructor(inner: RpcConnection, member: Member, members: ReadonlySet<Member>) {
    this.upstream = inner.upstream;
    this.server = inner.server;
    this.#inner = inner;
    this.#member = member;
    this.#members = members;
  }

  request(request: OutgoingRequest, exchange?: Exchange): Promise<JsonRpcResponse> {
    if (request.method === "resources/subscribe") return this.#subscribe(request, exchange);
    if (request.method === "resources/unsubscribe") return this.#unsubscribe(request, exchange);
    return this.#inner.request(request, exchange);
  }

  notify(notification: OutgoingRequest): Promise<void> {
    return this.#inner.notify(notification);
  }

  async close(): Promise<void> {
    const leaving = [...this.#member.uris];
    this.#member.uris.clear();
    if (this.#inner.isEnded) return;
    for (const uri of leaving.filter((one) => !this.#isWanted(one))) {
      // Not awaited: where it fails, the upstream keeps sending updates that are dropped.
      this.#inner.request({ method: "resources/unsubscribe", params: { uri } }).catch(() => undefined);
    }
  }

  async #subscribe(request: OutgoingRequest, exchange: Exchange | undefined): Promise<JsonRpcResponse> {
    const response = await this.#inner.request(request, exchange);
    const uri = request.params?.uri;
    if ("result" in response && typeof uri === "string") this.#member.uris.add(uri);
    return response;
  }

  /** Another member's subscription must outlive this one's. */
  async #unsubscribe(request: OutgoingRequest, exchange: Exchange | undefined): Promise<JsonRpcResponse> {
    const uri = request.params?.uri;
    const wasSubscribed = typeof uri === "string" && this.#member.uris.delete(uri);
    if (wasSubscribed && this.#isWanted(uri)) return { jsonrpc: "2.0", id: 0, result: {} };
    return this.#inner.request(request, exchange);
  }

  #isWanted(uri: string): boolean {
    return [...this.#members].some(({ uris }) => uris.has(uri));
  }
}
