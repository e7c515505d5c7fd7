import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { until } from "../../support/webhook-receiver.ts";
import { runGateway } from "../../unit/cli/run.ts";
import { clientConfig, clientEnv, clientFiles, useClients } from "./every-client.ts";
import { type LocalServer, openWitnessPort, serve, type WitnessPort } from "./network.ts";

/** Begins of the paths that the clients of the gateway ask for. */
const paths: Readonly<Record<string, string>> = {
  "an upstream over Streamable HTTP": "/streamable",
  "an upstream over HTTP+SSE": "/sse",
  "a model provider": "/v1/chat/completions",
  "the signing keys of the issuer": "/.well-known/",
  "a webhook": "/hook",
  "a witness": "/notes/",
  "traces for a collector": "/otlp/v1/traces",
  "metrics for a collector": "/otlp/v1/metrics",
  "the metrics that doctor reads": "/metrics",
};

describe("a redirect to a private listener", () => {
  let folder: string;
  let witness: WitnessPort;
  let redirecting: LocalServer;
  let gateway: RunningGateway;
  const asked: string[] = [];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "gateway-redirect-"));
    witness = await openWitnessPort();
    const statuses = [301, 302, 303, 307, 308];
    redirecting = await serve((request, response) => {
      asked.push(request.url ?? "");
      const status = statuses[asked.length % statuses.length] ?? 302;
      response.writeHead(status, { location: `http://127.0.0.1:${witness.port}/` }).end();
    });
    const config = clientConfig(() => redirecting.url);
    gateway = await startGateway({ folder, config, files: clientFiles, env: clientEnv });
  });

  after(async () => {
    await gateway?.stop();
    await Promise.all([redirecting?.close(), witness?.close()]);
    await rm(folder, { recursive: true });
  });

  /** Lets doctor look for the metrics of the gateway that holds the data folder where there is another server. */
  async function runDoctor(): Promise<void> {
    const text = await readFile(join(folder, "gateway.yaml"), "utf8");
    const path = join(folder, "doctor.yaml");
    await writeFile(path, text.replace("metrics_port: 0", `metrics_port: ${redirecting.port}`));
    await runGateway(["doctor", "--config", path, "--admin", gateway.adminUrl], clientEnv);
  }

  it("is not followed by any client of the gateway [S38]", async () => {
    await useClients(gateway, redirecting.url);
    await runDoctor();
    for (const [client, path] of Object.entries(paths)) {
      await until(() => asked.some((url) => url.startsWith(path)), `a request of ${client}`);
    }
    expect(witness.connections).to.equal(0);
    await fetch(redirecting.url).catch(() => undefined);
    expect(witness.connections, "a client that follows").to.be.above(0);
  });
});
