import { randomBytes } from "node:crypto";
import type { GatewayConfig, StoreConfig } from "../config/gateway-config.ts";
import { endWith } from "../http/listener.ts";
import type { Log } from "../observe/log.ts";
import { Replica } from "../replica/replica.ts";
import { elapsedMs } from "./identity.ts";

const noOwner = "no replica owns the store, or it cannot be reached; try again";

/** Opens one of several replicas: its ports, before anybody owns the store. Throws STATE_UNUSABLE or PORT_UNAVAILABLE. */
export function openReplica(
  { dataDir, listen, limits }: GatewayConfig,
  store: StoreConfig,
  log: Log,
): Promise<Replica> {
  const { host, adminHost, gatewayPort, adminPort, metricsPort } = listen;
  return Replica.open({
    ...store,
    dataDir,
    channel: { host: adminHost, port: store.replicaPort },
    ports: {
      gateway: { host, port: gatewayPort },
      admin: { host: adminHost, port: adminPort },
      metrics: { host: adminHost, port: metricsPort },
    },
    maxConnections: limits.maxConnections,
    refuse: (socket) => endWith(socket, 503, "Service Unavailable", { detail: noOwner }, { "retry-after": "1" }),
    log,
    random: randomBytes,
    elapsedMs,
  });
}
