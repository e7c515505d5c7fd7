import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import { GatewayError } from "../../action/error.ts";
import type { Principal } from "../../action/principal.ts";
import { addressOf, agentIdentity } from "../../http/access.ts";
import { endWith } from "../../http/listener.ts";
import { retryAfterHeader } from "../../http/refusal.ts";
import { LiveConnection, type LiveParts, maxMessageBytes } from "./connection.ts";

interface LiveEndpointParts extends LiveParts {
  /** Throws for a forbidden host or origin, and for ambiguous headers or paths. */
  readonly guard: (request: IncomingMessage) => void;
  /** The holder of the request's key; null where it has none. Throws KEY_UNKNOWN. */
  readonly callerOf: (request: IncomingMessage) => Principal | null;
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
  readonly #connections = new Set<LiveConnection>();
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
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on("error", () => socket.destroy());
    try {
      const principal = this.#admit(request);
      this.#server.handleUpgrade(request, socket, head, (opened) => {
        const connection = new LiveConnection(opened, socket, this.#parts, agentIdentity(request), principal);
        this.#connections.add(connection);
        opened.once("close", () => this.#connections.delete(connection));
      });
    } catch (cause) {
      refuse(socket, this.#parts.failures.refuseBadKey(addressOf(request), GatewayError.from(cause)));
    }
  }

  /** Ends the connections of callers whose key was removed. */
  endRevoked(isKnown: (principal: Principal) => boolean): void {
    for (const connection of this.#connections) {
      if (connection.principal !== null && !isKnown(connection.principal)) connection.close("revoked");
    }
  }

  /** Ends all connections, and accepts no further one. */
  close(): void {
    this.#stopping = true;
    for (const timer of this.#timers) clearInterval(timer);
    for (const connection of this.#connections) connection.close("stopping");
  }

  #admit(request: IncomingMessage): Principal | null {
    this.#parts.guard(request);
    if (request.url?.split("?")[0] !== path) throw new GatewayError("NOT_FOUND", "no such path to upgrade");
    if (request.headers.upgrade?.toLowerCase() !== "websocket" || request.method !== "GET")
      throw new GatewayError("INVALID_REQUEST", "expected `GET` with `upgrade: websocket`");
    if (this.#stopping) throw new GatewayError("STOPPING");
    if (!this.#parts.isEnabled) throw new GatewayError("GATEWAY_BUSY", `expected no connections to \`${path}\``);
    const principal = this.#parts.callerOf(request);
    if (principal !== null) this.#parts.places.makeRoom(principal);
    return principal;
  }

  #probe(): void {
    for (const connection of this.#connections) connection.probe();
  }
}

/** Responds to a request that is not upgraded. */
function refuse(socket: Duplex, error: GatewayError): void {
  const { row, publicMessage, code, data } = error;
  const members = { detail: publicMessage, code, ...(data === undefined ? {} : { data }) };
  endWith(socket, row.status, row.text, members, retryAfterHeader(error));
}
