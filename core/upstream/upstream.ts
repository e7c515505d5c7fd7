import { GatewayError } from "../action/error.ts";
import type { Clock, Random } from "../action/id.ts";
import type { McpEra } from "../action/json-rpc.ts";
import type { UpstreamConfig } from "../config/gateway-config.ts";
import { Backoff } from "./backoff.ts";
import type { ConnectionListener, EventSink, UpstreamHealth } from "./connection.ts";
import { DuplexTransport, type Transport } from "./duplex-transport.ts";
import type { ReplyBounds } from "./flight.ts";
import { type Introduction, OtherEraError, shakeHands } from "./handshake.ts";
import { HttpClient } from "./http-client.ts";
import { HttpTransport } from "./http-transport.ts";
import { RpcConnection } from "./rpc-connection.ts";
import { SsePipe } from "./sse-pipe.ts";
import { StdioPipe } from "./stdio-pipe.ts";
import { ToolReader } from "./tool-reader.ts";

/** What a process may take to answer a request it may not know. */
const maxProbeMs = 2_000;

interface UpstreamOptions {
  readonly bounds: ReplyBounds;
  readonly clock: Clock;
  readonly random: Random;
  readonly onEvent: EventSink;
}

interface OpenOptions extends Introduction {
  /** The era to try first where the upstream may speak both. */
  readonly prefers: McpEra;
  readonly listener: ConnectionListener;
  /** Whether a session that the upstream lost is replaced without anybody noticing. */
  readonly renewable: boolean;
}

/** One configured upstream: opens connections to it, as many as allowed and no faster than failed attempts permit. */
export class Upstream {
  readonly config: UpstreamConfig;
  readonly tools: ToolReader;
  readonly #options: UpstreamOptions;
  readonly #backoff: Backoff;
  readonly #http: HttpClient | undefined;
  readonly #starting: Set<RpcConnection> = new Set();
  readonly #open: Set<RpcConnection> = new Set();
  #opening = 0;
  #failing = false;
  #reason: string | undefined;
  #closed = false;

  constructor(config: UpstreamConfig, options: UpstreamOptions) {
    this.config = config;
    this.#options = options;
    this.tools = new ToolReader(config);
    this.#backoff = new Backoff(options.clock, options.random);
    this.#http = config.transport === "stdio" ? undefined : new HttpClient(config);
  }

  /** Whether the last attempt to open a connection failed. */
  get failing(): boolean {
    return this.#failing;
  }

  /** Milliseconds until the next attempt to open a connection is allowed. */
  get restMs(): number {
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
   * Opens a connection and shakes hands. Rejects with UPSTREAM_BUSY at `maxConnections`, with UPSTREAM_UNAVAILABLE
   * while an upstream that failed is left alone, and with whatever fault the attempt met.
   */
  async open(options: OpenOptions): Promise<RpcConnection> {
    this.#admit();
    this.#opening++;
    try {
      await this.#backoff.pass();
      if (this.#closed) throw new GatewayError("STOPPING");
      const connection = await this.#connect(options);
      this.#onOpened(connection);
      return connection;
    } catch (error) {
      throw this.#onRefused(GatewayError.from(error));
    } finally {
      this.#opening--;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#starting, ...this.#open].map((connection) => connection.close()));
    await this.#http?.close();
  }

  #admit(): void {
    const { name, maxConnections } = this.config;
    if (this.#closed) throw new GatewayError("STOPPING");
    if (this.#open.size + this.#opening >= maxConnections) {
      throw new GatewayError("UPSTREAM_BUSY", `\`${name}\`: expected at most ${maxConnections} connections`);
    }
  }

  async #connect(options: OpenOptions): Promise<RpcConnection> {
    const end = this.#options.clock() + this.config.startTimeoutMs;
    const eras = this.#eras(options.prefers);
    let connection: RpcConnection | undefined;
    let fault: unknown;
    for (const [index, era] of eras.entries()) {
      // Whoever closed it would not know of a connection that is made from now on.
      if (this.#closed) throw new GatewayError("STOPPING");
      if (connection === undefined || connection.ended) connection = this.#start(options);
      const left = Math.max(1, end - this.#options.clock());
      const probing = this.config.transport === "stdio" && index < eras.length - 1;
      const timeoutMs = probing ? Math.min(maxProbeMs, left / 2) : left;
      try {
        await shakeHands(connection, era, options, { timeoutMs, maxTimeoutMs: timeoutMs });
        return connection;
      } catch (error) {
        fault = error;
        // A process may also end or say nothing when it is asked what it does not know.
        if (!(error instanceof OtherEraError) && !probing) break;
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
      ...(options.renewable ? { renew } : {}),
    });
    this.#starting.add(connection);
    connection.onEnded = () => this.#starting.delete(connection);
    return connection;
  }

  #transport(): Transport {
    const { bounds, clock, onEvent } = this.#options;
    const { config } = this;
    if (config.transport === "stdio") {
      const log = (line: string): void => onEvent({ kind: "log", upstream: config.name, line });
      return new DuplexTransport(new StdioPipe(config, bounds, clock, log), bounds, clock);
    }
    const client = this.#http as HttpClient;
    if (config.transport === "sse") return new DuplexTransport(new SsePipe(client, bounds), bounds, clock);
    return new HttpTransport({ client, bounds, clock, paramHeaders: (tool) => this.tools.paramHeaders(tool) });
  }

  #onOpened(connection: RpcConnection): void {
    const { name } = this.config;
    const { era, revision } = connection.server;
    this.#backoff.opened();
    this.#failing = false;
    this.#reason = undefined;
    this.#starting.delete(connection);
    this.#open.add(connection);
    connection.onEnded = (error) => {
      this.#open.delete(connection);
      if (error !== undefined) this.#reason = error.message;
      this.#options.onEvent({ kind: "closed", upstream: name, reason: error?.message ?? "closed by the gateway" });
    };
    this.#options.onEvent({ kind: "connected", upstream: name, era, revision });
  }

  /** A refusal for want of time or room is not another failure of the upstream. */
  #onRefused(error: GatewayError): GatewayError {
    if (this.#closed || this.#backoff.remainingMs > 0) return error;
    const { name } = this.config;
    this.#failing = true;
    this.#reason = error.message;
    this.#options.onEvent({ kind: "refused", upstream: name, reason: error.message });
    const delayMs = this.#backoff.failed();
    this.#options.onEvent({ kind: "restarting", upstream: name, delayMs, failures: this.#backoff.failures });
    return error;
  }
}
