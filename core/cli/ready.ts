import type { GatewayPorts } from "../gateway.ts";

/** The line on standard output that tells a program which ports are open. Its members never change meaning. */
export function readyLine({ gatewayPort, adminPort, metricsPort }: GatewayPorts): string {
  const ready = { event: "ready", gateway_port: gatewayPort, admin_port: adminPort, metrics_port: metricsPort };
  return `${JSON.stringify(ready)}\n`;
}

/** The same for a person at a terminal. */
export function readyText(host: string, { gatewayPort, adminPort, metricsPort }: GatewayPorts): string {
  const at = host.includes(":") ? `http://[${host}]` : `http://${host}`;
  return [
    "gateway: ready; Ctrl-C stops it",
    `  agents     ${at}:${gatewayPort}/mcp`,
    `  operators  ${at}:${adminPort}/admin/v1/`,
    `  metrics    ${at}:${metricsPort}/metrics`,
    "",
  ].join("\n");
}
