import { createServer } from "node:net";
import { type Examine, type Finding, fail, ok, type Patient } from "./finding.ts";
import { portOwner } from "./port-owner.ts";

/** Whether the three ports can be opened, by opening them for a moment; and who has them where not. */
export const examinePorts: Examine = async (patient) => {
  const { listen } = patient.config;
  const places = [
    { key: "gateway_port", host: listen.host, port: listen.gatewayPort },
    { key: "admin_port", host: listen.adminHost, port: listen.adminPort },
    { key: "metrics_port", host: listen.adminHost, port: listen.metricsPort },
  ];
  const found: Finding[] = [];
  for (const place of places) if (place.port !== 0) found.push(await examinePort(place, patient));
  return found.length === 0 ? [ok("any free ports")] : found;
};

interface Place {
  readonly key: string;
  readonly host: string;
  readonly port: number;
}

async function examinePort({ key, host, port }: Place, { holder }: Patient): Promise<Finding> {
  const code = await tryListening(host, port);
  if (code === undefined) return ok(`${port} is free`);
  if (code === "EADDRINUSE") {
    const owner = await portOwner(port);
    if (owner !== undefined && owner.pid === holder?.pid)
      return ok(`${port} is open: the gateway runs, pid ${owner.pid}`);
    const who = owner === undefined ? "another process" : `\`${owner.name}\`, pid ${owner.pid}`;
    return fail(`${port} is taken by ${who}`, `stop it, or choose another \`listen.${key}\``);
  }
  if (code === "EACCES") return fail(`this user may not open ${port}`, `choose a \`listen.${key}\` above 1023`);
  const hostKey = key === "gateway_port" ? "host" : "admin_host";
  return fail(`\`${host}\` cannot be listened on: ${code}`, `set \`listen.${hostKey}\` to an address of this machine`);
}

/** The system's word against it. */
function tryListening(host: string, port: number): Promise<string | undefined> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code ?? "unknown"));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}
