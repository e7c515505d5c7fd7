import { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { JsonRpcNotification, JsonRpcResponse, McpEra } from "../action/json-rpc.ts";
import { Backoff } from "./backoff.ts";
import { Catalog } from "./catalog.ts";
import { watchChanges, withoutSubscription } from "./change-watch.ts";
import type {
  ConnectionListener,
  Exchange,
  GroupScope,
  Link,
  OutgoingRequest,
  ServerDescription,
  UpstreamConnection,
} from "./connection.ts";
import { ConnectionView } from "./connection-view.ts";
import type { LinkPorts } from "./own-link.ts";
import type { RpcConnection } from "./rpc-connection.ts";
import type { Upstream } from "./upstream.ts";

/** One group's part in a shared connection. */
interface Member {
  /** Resources this group has subscribed to. */
  readonly uris: Set<string>;
  readonly onNotification: (notification: JsonRpcNotification) => void;
  readonly onClose: (reason: string) => void;
}

/**
 * One connection for all groups, introduced as the gateway itself and without client capabilities.
 * What the upstream says unasked may be about any of them: only changes of lists go to all, updates of a resource to
 * those who subscribed to it, and everything else to nobody. A process that ended is started again.
 */
export class SharedConnection {
  readonly upstream: Upstream;
  readonly catalog: Catalog;
  readonly members: Set<Member> = new Set();
  readonly #era: McpEra;
  readonly #clientInfo: JsonObject;
  readonly #ports: LinkPorts;
  readonly #backoff: Backoff;
  #open: RpcConnection | undefined;
  #opening: Promise<RpcConnection> | undefined;
  #restartTimer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(upstream: Upstream, era: McpEra, clientInfo: JsonObject, ports: LinkPorts) {
    this.upstream = upstream;
    this.#era = era;
    this.#clientInfo = clientInfo;
    this.#ports = ports;
    this.#backoff = new Backoff(ports.clock, ports.random);
    const { clock, onEvent } = ports;
    const connect = () => this.connection();
    this.catalog = new Catalog({ upstream: upstream.config.name, tools: upstream.tools, clock, onEvent, connect });
  }

  get failing(): boolean {
    return this.#open === undefined && this.upstream.failing;
  }

  connection(): RpcConnection | Promise<RpcConnection> {
    if (this.#open !== undefined) return this.#open;
    this.#opening ??= this.#connect().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#restartTimer);
    await this.#opening?.catch(() => undefined); // its fault was told to whoever asked for it
    await this.#open?.close();
  }

  async #connect(): Promise<RpcConnection> {
    await this.#backoff.pass();
    const listener: ConnectionListener = {
      onNotification: (_, notification) => this.#spread(notification),
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
      renewable: true,
      listener,
    });
    if (this.#closed) {
      await connection.close();
      throw new GatewayError("STOPPING");
    }
    this.#backoff.opened();
    this.#open = connection;
    watchChanges(connection, (notification) => this.#spread(withoutSubscription(notification)));
    return connection;
  }

  #spread(notification: JsonRpcNotification): void {
    const { method, params } = notification;
    this.catalog.note(method);
    const listChange = method.endsWith("/list_changed");
    const uri = method === "notifications/resources/updated" ? params?.uri : undefined;
    for (const member of this.members) {
      if (listChange || (typeof uri === "string" && member.uris.has(uri))) member.onNotification(notification);
    }
  }

  #onLost(reason: string): void {
    this.#open = undefined;
    this.catalog.invalidate();
    const delayMs = this.#backoff.failed();
    const upstream = this.upstream.config.name;
    this.#ports.onEvent({ kind: "restarting", upstream, delayMs, failures: this.#backoff.failures });
    for (const member of [...this.members]) member.onClose(reason);
    if (this.upstream.config.transport === "stdio") this.#restart(delayMs);
  }

  #restart(delayMs: number): void {
    if (this.#closed) return;
    clearTimeout(this.#restartTimer);
    this.#restartTimer = setTimeout(async () => {
      try {
        await this.connection();
      } catch {
        this.#restart(Math.max(delayMs, this.upstream.restMs)); // the fault is in the event the upstream reported
      }
    }, delayMs);
    this.#restartTimer.unref();
  }
}

/** A group's share of a connection that others use too. */
export class SharedLink implements Link {
  readonly upstream: string;
  readonly #shared: SharedConnection;
  readonly #scope: GroupScope;
  readonly #member: Member;
  #seen: { readonly inner: RpcConnection; readonly view: ConnectionView } | undefined;

  constructor(shared: SharedConnection, scope: GroupScope) {
    this.upstream = shared.upstream.config.name;
    this.#shared = shared;
    this.#scope = scope;
    this.#member = {
      uris: new Set(),
      onNotification: (notification) => scope.listener.onNotification(this.upstream, notification),
      onClose: (reason) => {
        this.#member.uris.clear();
        scope.listener.onClose(this.upstream, reason);
      },
    };
    shared.members.add(this.#member);
  }

  get catalog(): Catalog {
    return this.#shared.catalog;
  }

  get failing(): boolean {
    return this.#shared.failing;
  }

  connection(): UpstreamConnection | Promise<UpstreamConnection> {
    const inner = this.#shared.connection();
    return inner instanceof Promise ? inner.then((opened) => this.#viewOf(opened)) : this.#viewOf(inner);
  }

  /** Leaves the connection, which stays open for the others. */
  async close(): Promise<void> {
    await this.#seen?.view.close();
    this.#shared.members.delete(this.#member);
  }

  #viewOf(inner: RpcConnection): UpstreamConnection {
    if (this.#seen?.inner === inner) return this.#seen.view;
    const lease = new Lease(inner, this.#member, this.#shared.members);
    const view = new ConnectionView(lease, this.#scope.era, (notification) =>
      this.#member.onNotification(withoutSubscription(notification)),
    );
    this.#seen = { inner, view };
    return view;
  }
}

/** A shared connection in one member's hands: its subscriptions are its own, and it cannot close it. */
class Lease implements UpstreamConnection {
  readonly upstream: string;
  readonly #inner: RpcConnection;
  readonly #member: Member;
  readonly #members: ReadonlySet<Member>;

  constructor(inner: RpcConnection, member: Member, members: ReadonlySet<Member>) {
    this.upstream = inner.upstream;
    this.#inner = inner;
    this.#member = member;
    this.#members = members;
  }

  get server(): ServerDescription {
    return this.#inner.server;
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
    if (this.#inner.ended) return;
    for (const uri of leaving.filter((one) => !this.#isWanted(one))) {
      // Nobody waits for this answer; an upstream that does not give it keeps telling what nobody hears.
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
    const held = typeof uri === "string" && this.#member.uris.delete(uri);
    if (held && this.#isWanted(uri)) return { jsonrpc: "2.0", id: 0, result: {} };
    return this.#inner.request(request, exchange);
  }

  #isWanted(uri: string): boolean {
    return [...this.#members].some(({ uris }) => uris.has(uri));
  }
}
