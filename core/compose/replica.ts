import { randomBytes } from "node:crypto";
import type { GatewayConfig, StoreConfig } from "../config/gateway-config.ts";
import type { Log } from "../observe/log.ts";
import { Replica } from "../replica/replica.ts";
import { elapsedMs } from "./identity.ts";

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
    log,
    random: randomBytes,
    elapsedMs,
  });
}
