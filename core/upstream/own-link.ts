import { GatewayError } from "../action/error.ts";
import type { Clock, Random } from "../action/id.ts";
import { Backoff } from "./backoff.ts";
import { Catalog } from "./catalog.ts";
import { announceLists, watchChanges, withoutSubscription } from "./change-watch.ts";
import type { GroupScope, ServerDescription, UpstreamConnection, UpstreamEventSink } from "./connection.ts";
import { viewFor } from "./connection-view.ts";
import type { Link } from "./group.ts";
import { Opening } from "./opening.ts";
import type { RpcConnection } from "./rpc-connection.ts";
import type { Upstream } from "./upstream.ts";

export interface LinkPorts {
  readonly clock: Clock;
  readonly random: Random;
  readonly onEvent: UpstreamEventSink;
}

/**
 * A group's own connection to one upstream, introduced as the group's client. Opened when needed, closed when idle, and
 * reopened with growing pauses where the upstream keeps ending it.
 */
export class OwnLink implements Link {
  readonly upstream: string;
  readonly catalog: Catalog;
  readonly #upstream: Upstream;
  readonly #scope: GroupScope;
  readonly #ports: LinkPorts;
  readonly #backoff: Backoff;
  #open: RpcConnection | undefined;
  #view: UpstreamConnection | undefined;
  readonly #opening: Opening<UpstreamConnection>;
  /** Calls off the opening that waits for the upstream to be up again. */
  #forgetRetry: (() => void) | undefined;
  #idleTimer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(upstream: Upstream, scope: GroupScope, ports: LinkPorts) {
    this.upstream = upstream.config.name;
    this.#upstream = upstream;
    this.#scope = scope;
    this.#ports = ports;
    this.#backoff = new Backoff(ports.clock, ports.random);
    const { clock, onEvent } = ports;
    const { startTimeoutMs } = upstream.config;
    this.#opening = new Opening({ upstream: this.upstream, startTimeoutMs, clock, open: () => this.#connect() });
    const connect = () => this.connection();
    this.catalog = new Catalog({ upstream: this.upstream, tools: upstream.tools, clock, onEvent, connect });
  }

  get isFailing(): boolean {
    return this.#view === undefined && this.#upstream.isFailing;
  }

  get server(): ServerDescription | undefined {
    return this.#upstream.server;
  }

  mayList(exposedName: string): boolean {
    return this.#upstream.tools.mayList(exposedName);
  }

  hasListed(exposedName: string): boolean {
    return this.#upstream.tools.hasListed(exposedName);
  }

  connection(): UpstreamConnection | Promise<UpstreamConnection> {
    if (this.#view !== undefined) {
      this.#open?.reserve();
      return this.#view;
    }
    return this.#opening.wait();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#idleTimer);
    this.#forgetRetry?.();
    await this.#opening.settled();
    await this.#view?.close();
  }

  async #connect(): Promise<UpstreamConnection> {
    try {
      return await this.#establish();
    } catch (cause) {
      if (GatewayError.from(cause).code !== "UPSTREAM_BUSY") this.#retryOnceUp();
      throw cause;
    }
  }

  /** Opens the connection when the upstream is up again, so that its client is sent the lists that it missed. */
  #retryOnceUp(): void {
    if (this.#isClosed) return;
    this.#forgetRetry?.();
    this.#forgetRetry = this.#upstream.onceUp(() => {
      this.#opening.run().catch(() => undefined); // the upstream reports the fault as an event
    });
  }

  async #establish(): Promise<UpstreamConnection> {
    await this.#backoff.wait();
    const { clientInfo, capabilities, era, listener } = this.#scope;
    const connection = await this.#upstream.open({
      clientInfo,
      capabilities,
      prefers: era,
      isRenewable: false,
      lease: { holder: this.#scope.holder, isSpare: ({ isSpare }) => isSpare, giveUp: () => this.#giveUp() },
      listener: {
        onNotification: (upstream, notification) => {
          this.catalog.onNotification(notification.method);
          listener.onNotification(upstream, notification);
        },
        onRequest: (upstream, request, signal) => listener.onRequest(upstream, request, signal),
        onClose: (upstream, reason) => this.#onLost(upstream, reason),
      },
    });
    if (this.#isClosed) {
      await connection.close();
      throw new GatewayError("STOPPING");
    }
    return this.#use(connection);
  }

  #use(connection: RpcConnection): UpstreamConnection {
    const { era, listener } = this.#scope;
    this.#backoff.opened();
    this.#open = connection;
    const view = viewFor(era, connection, (notification) =>
      listener.onNotification(this.upstream, withoutSubscription(notification)),
    );
    this.#view = view;
    this.#armIdle(this.#upstream.config.idleMs);
    watchChanges(connection, (notification) => {
      this.catalog.onNotification(notification.method);
      // A client of the stateless revision has a subscription of its own.
      if (era === "legacy" && notification.method !== "notifications/subscriptions/acknowledged") {
        listener.onNotification(this.upstream, withoutSubscription(notification));
      }
    });
    if (this.#opening.claimMissed()) {
      this.catalog.invalidate();
      announceLists(connection.server.capabilities, (change) => listener.onNotification(this.upstream, change));
    }
    return view;
  }

  #onLost(upstream: string, reason: string): void {
    this.#forget();
    const delayMs = this.#backoff.failed();
    this.#ports.onEvent({ kind: "upstream_retry_scheduled", upstream, delayMs, failures: this.#backoff.failures });
    this.#scope.listener.onClose(upstream, reason);
  }

  #forget(): void {
    clearTimeout(this.#idleTimer);
    this.#open = undefined;
    this.#view = undefined;
    this.catalog.invalidate();
  }

  #armIdle(delayMs: number): void {
    this.#idleTimer = setTimeout(() => this.#onIdleTimer(), delayMs);
    this.#idleTimer.unref();
  }

  #onIdleTimer(): void {
    const [connection, { idleMs }] = [this.#open, this.#upstream.config];
    if (connection === undefined) return;
    const leftMs = idleMs - connection.idleMs;
    if (leftMs > 0) {
      this.#armIdle(leftMs);
      return;
    }
    void this.#giveUp();
  }

  /** Closes the open connection. The next use opens another one. */
  async #giveUp(): Promise<void> {
    const view = this.#view;
    this.#forget();
    await view?.close();
  }
}
