import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type RunningGateway, startGateway } from "../support/gateway.ts";
import { allowEverything } from "../support/pack.ts";
import { awaitReady } from "../support/ready-line.ts";

/** The fixture server and a gateway before it that lets everything through. */
export interface Rig {
  /** The fixture's own endpoint, and the same server seen through the gateway. */
  readonly directUrl: string;
  readonly governedUrl: string;
  stop(): Promise<void>;
}

const fixture = fileURLToPath(new URL("../fixture/conformance-server.js", import.meta.url));

/** Starts both; throws, and leaves neither behind, when one does not start. */
export async function startRig(): Promise<Rig> {
  const child = spawn(process.execPath, [fixture], { stdio: ["ignore", "pipe", "pipe"], detached: true });
  const server = await awaitReady(child, { ready: true }, 60_000);
  const directUrl = `http://127.0.0.1:${server.port("port")}/mcp`;
  let gateway: RunningGateway;
  try {
    gateway = await startGateway({ config: configFor(directUrl), files: allowEverything("packs/open") });
  } catch (error) {
    await server.stop("SIGKILL", 5_000);
    throw error;
  }
  return {
    directUrl,
    governedUrl: `${gateway.url}/mcp`,
    stop: async () => {
      await gateway.stop(); // first: its sessions with the fixture end in order
      await server.stop("SIGTERM", 5_000);
    },
  };
}

function configFor(upstreamUrl: string): string {
  return `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
mcp_gateway: { require_auth: false, anonymous_tenant: conformance }
upstreams:
  - { name: fixture, transport: http, url: "${upstreamUrl}", trust_annotations: true }
policy:
  packs: [{ path: packs/open }]
`;
}
