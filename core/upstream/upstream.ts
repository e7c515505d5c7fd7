import { GatewayError } from "../action/error.ts";
import type { Clock, Random } from "../action/id.ts";
import type { McpEra } from "../action/json-rpc.ts";
import {
  isInScope,
  type PlaceHolder,
  PlaceShare,
  type SharePercents,
  type ShareScope,
  shareError,
} from "../action/place-share.ts";
import type { UpstreamConfig } from "../config/gateway-config.ts";
import { Backoff } from "./backoff.ts";
import type { ConnectionListener, UpstreamEventSink, UpstreamHealth } from "./connection.ts";
import { DuplexTransport } from "./duplex-transport.ts";
import { type Introduction, OtherEraError, shakeHands } from "./handshake.ts";
import { HttpClient } from "./http-client.ts";
import { HttpTransport } from "./http-transport.ts";
import { RpcConnection } from "./rpc-connection.ts";
import { SsePipe } from "./sse-pipe.ts";
import { StdioPipe } from "./stdio-pipe.ts";
import { ToolReader } from "./tool-reader.ts";
import type { McpTransport, ReplyBounds } from "./transport.ts";

/** The time a process has to answer a request that may be unknown to it. */
const maxProbeMs = 2_000;
/** A connection in use is free again after its call, and can be given up a second later. */
const busyRetryS = 1;

interface UpstreamOptions {
  readonly bounds: ReplyBounds;
  readonly shares: SharePercents;
  readonly clock: Clock;
  readonly random: Random;
  readonly onEvent: UpstreamEventSink;
}

interface OpenOptions extends Introduction {
  /** The era to try first where the upstream may speak both. */
  readonly prefers: McpEra;
  readonly listener: ConnectionListener;
  /** True if a session that the upstream lost is replaced by a new handshake. */
  readonly isRenewable: boolean;
  readonly lease: ConnectionLease | null;
}

/** The holder of a connection that can be given up for another one. Null: a connection that all share. */
interface ConnectionLease {
  readonly holder: PlaceHolder | null;
  /** Closes the connection; it is opened again when it is next needed. */
  readonly giveUp: () => Promise<void>;
}

/**
 * One configured upstream: opens connections to it, up to the configured number in all and the shares of each key and
 * tenant, with pauses after failures.
 */
export class Upstream {
  readonly config: UpstreamConfig;
  readonly tools: ToolReader;
  readonly #options: UpstreamOptions;
  readonly #backoff: Backoff;
  readonly #http: HttpClient | undefined;
  readonly #starting: Set<RpcConnection> = new Set();
  readonly #open: Map<RpcConnection, ConnectionLease | null> = new Map();
  readonly #places: PlaceShare;
  #isFailing = false;
  #reason: string | undefined;
  #isClosed = false;

  constructor(config: UpstreamConfig, options: UpstreamOptions) {
    this.config = config;
    this.#options = options;
    this.tools = new ToolReader(config);
    this.#backoff = new Backoff(options.clock, options.random);
    this.#places = new PlaceShare(config.maxConnections, options.shares);
    this.#http = config.transport === "stdio" ? undefined : new HttpClient(config);
  }

  /** True if the last attempt to open a connection failed. */
  get isFailing(): boolean {
    return this.#isFailing;
  }

  /** Milliseconds until the next attempt to open a connection is allowed. */
  get retryAfterMs(): number {
    return this.#backoff.remainingMs;
  }

  health(): UpstreamHealth {
    const { name, transport } = this.config;
    const connections = this.#open.size;
    const { failures } = this.#backoff;
    if (connections > 0) return { name, transport, state: "up", connections, failures };
    if (this.#reason === undefined) return { name, transport, state: "idle", connections, failures };
    return { name, transport, state: "down", connections, failures, reason: this.#reason };
  }

  /**
   * Opens a connection and performs the handshake. Where the share of its key or tenant, or all of `maxConnections`, is in
   * use, the connection there that was used least recently is closed first, if nothing uses it. Rejects with UPSTREAM_BUSY
   * where there is none, with UPSTREAM_UNAVAILABLE during the pause after a failure, and with the fault of the attempt.
   */
  async open(options: OpenOptions): Promise<RpcConnection> {
    const holder = options.lease?.holder ?? null;
    await this.#takePlace(holder);
    try {
      await this.#backoff.wait();
      if (this.#isClosed) throw new GatewayError("STOPPING");
      const connection = await this.#connect(options);
      this.#onOpened(connection, options.lease);
      return connection;
    } catch (error) {
      this.#places.release(holder);
      throw this.#onRefused(GatewayError.from(error));
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#starting, ...this.#open.keys()].map((connection) => connection.close()));
    await this.#http?.close();
  }

  async #takePlace(holder: PlaceHolder | null): Promise<void> {
    for (;;) {
      if (this.#isClosed) throw new GatewayError("STOPPING");
      const scope = this.#places.usedUp(holder);
      if (scope === undefined) return this.#places.take(holder);
      const lease = this.#takeSpare(scope, holder);
      if (lease === undefined) {
        const used = { scope, limit: this.#places.limits[scope], retryS: busyRetryS };
        throw shareError("UPSTREAM_BUSY", `connections to \`${this.config.name}\``, used);
      }
      await lease.giveUp();
    }
  }

  /** Forgets the connection that nothing uses and that was used least recently, and returns its lease. */
  #takeSpare(scope: ShareScope, holder: PlaceHolder | null): ConnectionLease | undefined {
    let leastUsed: RpcConnection | undefined;
    for (const [connection, lease] of this.#open) {
      if (lease === null || !isInScope(scope, holder, lease.holder) || !connection.isSpare) continue;
      if (leastUsed === undefined || connection.lastUsedMs < leastUsed.lastUsedMs) leastUsed = connection;
    }
    const lease = leastUsed === undefined ? undefined : this.#open.get(leastUsed);
    if (leastUsed === undefined || lease === undefined || lease === null) return undefined;
    this.#forget(leastUsed);
    return lease;
  }

  /** Frees the place of a connection, once. */
  #forget(connection: RpcConnection): void {
    const lease = this.#open.get(connection);
    if (this.#open.delete(connection)) this.#places.release(lease?.holder ?? null);
  }

  async #connect(options: OpenOptions): Promise<RpcConnection> {
    const end = this.#options.clock() + this.config.startTimeoutMs;
    const eras = this.#eras(options.prefers);
    let connection: RpcConnection | undefined;
    let fault: unknown;
    for (const [index, era] of eras.entries()) {
      // `close` cannot end a connection that is opened after it ran.
      if (this.#isClosed) throw new GatewayError("STOPPING");
      if (connection === undefined || connection.isEnded) connection = this.#start(options);
      const left = Math.max(1, end - this.#options.clock());
      const isProbing = this.config.transport === "stdio" && index < eras.length - 1;
      const timeoutMs = isProbing ? Math.min(maxProbeMs, left / 2) : left;
      try {
        await shakeHands(connection, era, options, { timeoutMs, maxTimeoutMs: timeoutMs });
        return connection;
      } catch (error) {
        fault = error;
        // A process may also exit or stay silent when a request is unknown to it.
        if (!(error instanceof OtherEraError) && !isProbing) break;
      }
    }
    await connection?.close();
    throw fault;
  }

  #eras(prefers: McpEra): readonly McpEra[] {
    const { protocol, transport } = this.config;
    if (transport === "sse") return ["legacy"];
    if (protocol !== "auto") return [protocol];
    return prefers === "modern" ? ["modern", "legacy"] : ["legacy", "modern"];
  }

  #start(options: OpenOptions): RpcConnection {
    const { name, timeoutMs, maxTimeoutMs, startTimeoutMs } = this.config;
    const limits = { timeoutMs: startTimeoutMs, maxTimeoutMs: startTimeoutMs };
    const renew = async (connection: RpcConnection): Promise<void> => {
      await shakeHands(connection, "legacy", options, limits);
    };
    const connection = new RpcConnection({
      upstream: name,
      transport: this.#transport(),
      clock: this.#options.clock,
      limits: { timeoutMs, maxTimeoutMs },
      clientInfo: options.clientInfo,
      capabilities: options.capabilities,
      listener: options.listener,
      ...(options.isRenewable ? { renew } : {}),
    });
    this.#starting.add(connection);
    connection.onEnded = () => this.#starting.delete(connection);
    return connection;
  }

  #transport(): McpTransport {
    const { bounds, clock, onEvent } = this.#options;
    const { config } = this;
    if (config.transport === "stdio") {
      const log = (line: string): void => onEvent({ kind: "upstream_output_logged", upstream: config.name, line });
      return new DuplexTransport(new StdioPipe(config, bounds, clock, log), bounds, clock);
    }
    const client = this.#http as HttpClient;
    if (config.transport === "sse") return new DuplexTransport(new SsePipe(client, bounds), bounds, clock);
    return new HttpTransport({ client, bounds, clock, paramHeaders: (tool) => this.tools.paramHeaders(tool) });
  }

  #onOpened(connection: RpcConnection, lease: ConnectionLease | null): void {
    const { name } = this.config;
    const { era, revision } = connection.server;
    this.#backoff.opened();
    this.#isFailing = false;
    this.#reason = undefined;
    this.#starting.delete(connection);
    this.#open.set(connection, lease);
    connection.onEnded = (error) => {
      this.#forget(connection);
      if (error !== undefined) this.#reason = error.message;
      this.#options.onEvent({
        kind: "upstream_closed",
        upstream: name,
        reason: error?.message ?? "closed by the gateway",
      });
    };
    this.#options.onEvent({ kind: "upstream_connected", upstream: name, era, revision });
  }

  /** Records a failed attempt. A refusal during a pause or at the limit is not another failure of the upstream. */
  #onRefused(error: GatewayError): GatewayError {
    if (this.#isClosed || this.#backoff.remainingMs > 0) return error;
    const { name } = this.config;
    this.#isFailing = true;
    this.#reason = error.message;
    this.#options.onEvent({ kind: "upstream_failed", upstream: name, reason: error.message });
    const delayMs = this.#backoff.failed();
    this.#options.onEvent({
      kind: "upstream_retry_scheduled",
      upstream: name,
      delayMs,
      failures: this.#backoff.failures,
    });
    return error;
  }
}
