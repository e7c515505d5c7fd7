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
import { EgressError, type EgressGuard } from "../egress/egress-guard.ts";
import { Backoff } from "./backoff.ts";
import type { ConnectionListener, ServerDescription, UpstreamEventSink, UpstreamHealth } from "./connection.ts";
import { DuplexTransport } from "./duplex-transport.ts";
import { type Introduction, negotiate, OtherEraError, shakeHands } from "./handshake.ts";
import { HttpClient } from "./http-client.ts";
import { HttpTransport } from "./http-transport.ts";
import { RpcConnection } from "./rpc-connection.ts";
import { SsePipe } from "./sse-pipe.ts";
import { StdioPipe } from "./stdio-pipe.ts";
import { ToolReader } from "./tool-reader.ts";
import type { McpTransport, ReplyBounds } from "./transport.ts";

/** The silence of a process after which it is asked in the other era too. */
const maxSilenceMs = 2_000;
/** A connection in use is free again after its call, and can be given up a second later. */
const busyRetryS = 1;

interface UpstreamOptions {
  readonly bounds: ReplyBounds;
  readonly shares: SharePercents;
  readonly clock: Clock;
  readonly random: Random;
  readonly onEvent: UpstreamEventSink;
  readonly egress: EgressGuard;
}

interface OpenOptions extends Introduction {
  /** The era to try first where the upstream may speak both. */
  readonly prefers: McpEra;
  readonly listener: ConnectionListener;
  /** True if a session that the upstream lost is replaced by a new handshake. */
  readonly isRenewable: boolean;
  readonly lease: ConnectionLease;
}

/** A connection that can be given up for another one while nothing uses it. */
interface ConnectionLease {
  /** Null: the gateway itself. */
  readonly holder: PlaceHolder | null;
  /** Returns whether nothing uses the connection. */
  readonly isSpare: (connection: RpcConnection) => boolean;
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
  readonly #open: Map<RpcConnection, ConnectionLease> = new Map();
  readonly #places: PlaceShare;
  readonly #onceUp: Set<() => void> = new Set();
  /** The era to speak where each one is preferred, once a handshake showed it. */
  readonly #eraByPreferred: Map<McpEra, McpEra> = new Map();
  /** The start that finds the era; further ones wait for its end. */
  #detection: Promise<RpcConnection> | undefined;
  /** The gateway's own start of it, while that is under way. */
  #firstStart: Promise<void> | undefined;
  /** Called after each failed attempt, with the milliseconds until the next one is allowed. */
  onFailed: ((delayMs: number) => void) | undefined;
  #server: ServerDescription | undefined;
  #isFailing = false;
  #fault: GatewayError | undefined;
  #isClosed = false;

  constructor(config: UpstreamConfig, options: UpstreamOptions) {
    this.config = config;
    this.#options = options;
    this.tools = new ToolReader(config);
    this.#backoff = new Backoff(options.clock, options.random);
    this.#places = new PlaceShare(config.maxConnections, options.shares);
    this.#http = config.transport === "stdio" ? undefined : new HttpClient(config, options.egress);
  }

  /** True if the last attempt to open a connection failed. */
  get isFailing(): boolean {
    return this.#isFailing;
  }

  /** Milliseconds until the next attempt to open a connection is allowed. */
  get retryAfterMs(): number {
    return this.#backoff.remainingMs;
  }

  /** The upstream's description of itself in its last handshake; undefined before the first one. */
  get server(): ServerDescription | undefined {
    return this.#server;
  }

  health(): UpstreamHealth {
    const { name, transport } = this.config;
    const state = this.#state;
    const reason = state === "down" && this.#fault !== undefined ? { reason: reasonOf(this.#fault) } : {};
    return { name, transport, state, connections: this.#open.size, failures: this.#backoff.failures, ...reason };
  }

  get #state(): UpstreamHealth["state"] {
    if (this.#open.size > 0) return "up";
    if (this.#starting.size > 0 && !this.#isFailing) return "starting";
    return this.#fault === undefined ? "idle" : "down";
  }

  /** Lets sessions that find no free place wait for the end of the gateway's own start, which gives its place up. */
  awaitFirst(start: Promise<void>): void {
    this.#firstStart = start.finally(() => {
      this.#firstStart = undefined;
    });
  }

  /** Calls `back` once, after the next connection is open. Returns the function that calls it off. */
  onceUp(back: () => void): () => void {
    this.#onceUp.add(back);
    return () => this.#onceUp.delete(back);
  }

  /**
   * Opens a connection and performs the handshake. Where the share of its key or tenant, or all of `maxConnections`, is in
   * use, the connection there that was used least recently is closed first, if nothing uses it. Rejects with UPSTREAM_BUSY
   * where there is none, with UPSTREAM_UNAVAILABLE during the pause after a failure, and with the fault of the attempt.
   */
  async open(options: OpenOptions): Promise<RpcConnection> {
    const { holder } = options.lease;
    await this.#detection;
    await this.#takePlace(holder);
    try {
      await this.#pause();
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
      if (lease === undefined && holder !== null && this.#firstStart !== undefined) {
        await this.#firstStart;
        continue;
      }
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
      if (!isInScope(scope, holder, lease.holder) || !lease.isSpare(connection)) continue;
      if (leastUsed === undefined || connection.lastUsedMs < leastUsed.lastUsedMs) leastUsed = connection;
    }
    const lease = leastUsed === undefined ? undefined : this.#open.get(leastUsed);
    if (leastUsed === undefined || lease === undefined) return undefined;
    this.#forget(leastUsed);
    return lease;
  }

  /** Frees the place of a connection, once. */
  #forget(connection: RpcConnection): void {
    const lease = this.#open.get(connection);
    if (lease !== undefined && this.#open.delete(connection)) this.#places.release(lease.holder);
  }

  /** Waits out a short pause after a failure. A longer one is refused with that failure and the time that is left. */
  async #pause(): Promise<void> {
    const fault = this.#fault;
    await this.#backoff.wait().catch((cause: unknown) => {
      if (fault === undefined) throw cause;
      const retryS = Math.ceil(this.retryAfterMs / 1_000);
      const why = fault.detail === undefined ? "" : `${fault.detail}; `;
      const data = { ...fault.data, retry_after_s: retryS };
      throw new GatewayError(fault.code, `${why}the next attempt is in ${retryS} s`, { data });
    });
  }

  /** Connects in the known era. Where it is unknown, finds it, while other attempts wait. */
  async #connect(options: OpenOptions): Promise<RpcConnection> {
    const eras = this.#eras(options.prefers);
    if (eras.length === 1) return this.#connectIn(eras, options);
    const detection = this.#connectIn(eras, options);
    this.#detection = detection;
    try {
      return await detection;
    } finally {
      this.#detection = undefined;
    }
  }

  async #connectIn(eras: readonly McpEra[], options: OpenOptions): Promise<RpcConnection> {
    const { startTimeoutMs, transport, name } = this.config;
    const end = this.#options.clock() + startTimeoutMs;
    const leftMs = (): number => end - this.#options.clock();
    this.#options.onEvent({ kind: "upstream_starting", upstream: name });
    for (let left = eras; ; left = left.slice(1)) {
      // `close` cannot end a connection that is opened after it ran.
      if (this.#isClosed) throw new GatewayError("STOPPING");
      const connection = this.#start(options);
      const silenceMs = transport === "stdio" ? Math.min(maxSilenceMs, startTimeoutMs / 2) : null;
      try {
        const { era } = await negotiate(connection, left, options, { leftMs, silenceMs });
        this.#rememberEra(options.prefers, era);
        return connection;
      } catch (error) {
        if (error instanceof OtherEraError) this.#eraByPreferred.clear();
        // A process may exit at a request that it does not know: the next one gets the other request alone.
        const isRestarted = connection.isEnded && left.length > 1;
        await connection.close();
        if (!isRestarted) throw error;
      }
    }
  }

  #eras(prefers: McpEra): readonly McpEra[] {
    const { protocol, transport } = this.config;
    if (transport === "sse") return ["legacy"];
    if (protocol !== "auto") return [protocol];
    const known = this.#eraByPreferred.get(prefers);
    if (known !== undefined) return [known];
    return prefers === "modern" ? ["modern", "legacy"] : ["legacy", "modern"];
  }

  #rememberEra(preferred: McpEra, era: McpEra): void {
    this.#eraByPreferred.set(preferred, era);
    // An upstream that did not speak the preferred era speaks this one only; one that did may speak both.
    if (era !== preferred) this.#eraByPreferred.set(era, era);
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

  #onOpened(connection: RpcConnection, lease: ConnectionLease): void {
    const { name } = this.config;
    const { era, revision } = connection.server;
    this.#backoff.opened();
    this.#isFailing = false;
    this.#fault = undefined;
    this.#server = connection.server;
    this.#starting.delete(connection);
    this.#open.set(connection, lease);
    connection.onEnded = (error) => {
      this.#forget(connection);
      if (error !== undefined) this.#fault = error;
      this.#options.onEvent({
        kind: "upstream_closed",
        upstream: name,
        reason: error?.message ?? "closed by the gateway",
      });
    };
    this.#options.onEvent({ kind: "upstream_connected", upstream: name, era, revision });
    const waiting = [...this.#onceUp];
    this.#onceUp.clear();
    for (const back of waiting) back();
  }

  /** Records a failed attempt. A refusal during a pause or at the limit is not another failure of the upstream. */
  #onRefused(error: GatewayError): GatewayError {
    if (this.#isClosed || this.#backoff.remainingMs > 0) return error;
    const { name } = this.config;
    this.#isFailing = true;
    this.#fault = error;
    this.#options.onEvent({ kind: "upstream_failed", upstream: name, reason: reasonOf(error) });
    const delayMs = this.#backoff.failed();
    this.#options.onEvent({
      kind: "upstream_retry_scheduled",
      upstream: name,
      delayMs,
      failures: this.#backoff.failures,
    });
    this.onFailed?.(delayMs);
    return error;
  }
}

/** Returns the reason of a fault for operators, who may see which address was refused; agents see its code. */
function reasonOf({ message, cause }: GatewayError): string {
  return cause instanceof EgressError ? cause.message : message;
}
