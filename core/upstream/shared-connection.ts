import { GatewayError } from "../kernel/error.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { JsonRpcNotification } from "../kernel/json-rpc.ts";
import type { McpEra } from "../kernel/mcp.ts";
import { Backoff } from "./backoff.ts";
import { Catalog } from "./catalog.ts";
import { watchChanges, withoutSubscription } from "./change-watch.ts";
import type { ConnectionListener } from "./connection.ts";
import type { LinkPorts } from "./own-link.ts";
import type { RpcConnection } from "./rpc-connection.ts";
import type { Upstream } from "./upstream.ts";

/** One group's part in a shared connection. */
export interface Member {
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
