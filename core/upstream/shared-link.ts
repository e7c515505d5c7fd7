import type { JsonRpcResponse } from "../kernel/json-rpc.ts";
import type { Catalog } from "./catalog.ts";
import { withoutSubscription } from "./change-watch.ts";
import type { Exchange, OutgoingRequest, ServerDescription, UpstreamConnection } from "./connection.ts";
import { ConnectionView } from "./connection-view.ts";
import type { Link } from "./link.ts";
import type { RpcConnection } from "./rpc-connection.ts";
import type { GroupScope } from "./scope.ts";
import type { Member, SharedConnection } from "./shared-connection.ts";

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
