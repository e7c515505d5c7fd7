import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import { GatewayError } from "../../action/error.ts";
import type { Principal } from "../../action/principal.ts";
import { addressOf, agentIdentity } from "../../http/access.ts";
import { endWith } from "../../http/listener.ts";
import { retryAfterHeader } from "../../http/refusal.ts";
import { LiveConnection, type LiveParts, maxMessageBytes } from "./connection.ts";

/** The caller of a request to upgrade. */
interface LiveCaller {
  readonly principal: Principal;
  /** Given for a caller who signed in for a while: calls `end` when that is over, and returns what takes this back. */
  readonly onEnd?: ((end: () => void) => () => void) | undefined;
}

/** The way in to `/v1/ws` on one port. */
export interface LiveEntrance {
  /** Throws for a forbidden host or origin, and for ambiguous headers or paths. */
  check(request: IncomingMessage): void;
  /** The caller, by what the request carries; null where it carries nothing. Throws KEY_UNKNOWN. */
  callerOf(request: IncomingMessage): LiveCaller | null;
}

interface LiveEndpointParts extends LiveParts {
  /** False where the endpoint is turned off. */
  readonly isEnabled: boolean;
}

const path = "/v1/ws";
const probeMs = 30_000;
const metricsMs = 1_000;

/** `/v1/ws`: decisions, approvals, risk and metrics of the caller's tenant as they happen, and evaluation on request. */
export class LiveEndpoint {
  readonly #parts: LiveEndpointParts;
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: maxMessageBytes,
  });
  /** With what ends each by itself; undefined where only its key does. */
  readonly #connections = new Map<LiveConnection, LiveCaller["onEnd"]>();
  readonly #timers: readonly NodeJS.Timeout[];
  #stopping = false;

  constructor(parts: LiveEndpointParts) {
    this.#parts = parts;
    this.#timers = [
      setInterval(() => this.#probe(), probeMs).unref(),
      setInterval(() => parts.feed.publishMetrics(), metricsMs).unref(),
    ];
  }

  /** Upgrades the connection of a request, or responds with an error. */
  upgrade(entrance: LiveEntrance, request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on("error", () => socket.destroy());
    try {
      const caller = this.#admit(entrance, request);
      const principal = caller?.principal ?? null;
      this.#server.handleUpgrade(request, socket, head, (opened) => {
        const connection = new LiveConnection(opened, socket, this.#parts, agentIdentity(request), principal);
        this.#connections.set(connection, caller?.onEnd);
        opened.once("close", () => this.#connections.delete(connection));
        const forget = caller?.onEnd?.(() => connection.close("signed_out"));
        if (forget !== undefined) opened.once("close", forget);
      });
    } catch (cause) {
      refuse(socket, this.#parts.failures.refuseBadKey(addressOf(request), GatewayError.from(cause)));
    }
  }

  /** Ends the connections of callers whose key was removed. Who signed in for a while is ended with that. */
  endRevoked(isKnown: (principal: Principal) => boolean): void {
    for (const [connection, onEnd] of this.#connections) {
      if (onEnd === undefined && connection.principal !== null && !isKnown(connection.principal)) {
        connection.close("revoked");
      }
    }
  }

  /** Ends all connections, and accepts no further one. */
  close(): void {
    this.#stopping = true;
    for (const timer of this.#timers) clearInterval(timer);
    for (const connection of this.#connections.keys()) connection.close("stopping");
  }

  #admit(entrance: LiveEntrance, request: IncomingMessage): LiveCaller | null {
    entrance.check(request);
    if (request.url?.split("?")[0] !== path) throw new GatewayError("NOT_FOUND", "no such path to upgrade");
    if (request.headers.upgrade?.toLowerCase() !== "websocket" || request.method !== "GET")
      throw new GatewayError("INVALID_REQUEST", "expected `GET` with `upgrade: websocket`");
    if (this.#stopping) throw new GatewayError("STOPPING");
    if (!this.#parts.isEnabled) throw new GatewayError("GATEWAY_BUSY", `expected no connections to \`${path}\``);
    const caller = entrance.callerOf(request);
    if (caller !== null) this.#parts.places.makeRoom(caller.principal);
    return caller;
  }

  #probe(): void {
    for (const connection of this.#connections.keys()) connection.probe();
  }
}

/** Responds to a request that is not upgraded. */
function refuse(socket: Duplex, error: GatewayError): void {
  const { row, publicMessage, code, data } = error;
  const members = { detail: publicMessage, code, ...(data === undefined ? {} : { data }) };
  endWith(socket, row.status, row.text, members, retryAfterHeader(error));
}
