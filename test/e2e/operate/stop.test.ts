import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { Agent } from "../../support/agent.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";
import { dial, encodeRequest, type HeaderList } from "../../support/wire.ts";

describe("a gateway told to stop while a call is in flight", () => {
  let folder: string;
  let upstream: Recorder;
  let gateway: RunningGateway;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "gateway-stop-"));
    upstream = await startRecorder();
    gateway = await start();
  });

  afterEach(async () => {
    await gateway.stop();
    await upstream.stop();
    await rm(folder, { recursive: true });
  });

  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    it(`answers it after ${signal}, takes no connection meanwhile, ends with 0 and leaves its outcome`, async () => {
      const agent = new Agent(gateway.url, siteKey);
      let isAnswered = false;
      const calling = agent.call("echo", { wait_ms: 2_000 }).finally(() => {
        isAnswered = true;
      });
      await untilCalled();
      gateway.process.kill(signal);
      await sleep(300);
      const refused = await dial(gateway.url).then(
        () => "accepted",
        (error: NodeJS.ErrnoException) => error.code,
      );
      const wasAnswered = isAnswered;
      const answer = await calling;
      if (gateway.process.exitCode === null) await once(gateway.process, "exit");
      await agent.hangUp();
      expect(refused).to.equal("ECONNREFUSED");
      expect([answer.status, answer.result?.isError ?? false]).to.deep.equal([200, false]);
      expect(wasAnswered).to.equal(false);
      expect(gateway.process.exitCode).to.equal(0);
      gateway = await start();
      const records = await new EvidenceReader(gateway.adminUrl, siteKey).recordsOf();
      expect(records.map(({ effect }) => effect)).to.deep.equal(["dispatched", "success"]);
    });
  }

  it("ends though the client that wanted it streamed has gone away meanwhile", async () => {
    const socket = await dial(gateway.url);
    const message = {
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "echo", arguments: { wait_ms: 400 } },
    };
    const headers: HeaderList = [
      ["x-api-key", siteKey],
      ["content-type", "application/json"],
      ["accept", "text/event-stream"],
    ];
    socket.write(
      encodeRequest(gateway.url, { method: "POST", target: "/mcp", headers, body: JSON.stringify(message) }),
    );
    await untilCalled();
    socket.destroy();
    const reader = new EvidenceReader(gateway.adminUrl, siteKey);
    while ((await reader.recordsOf()).length < 2) await sleep(20);
    expect(await gateway.stop()).to.equal(0);
  });

  it("cuts it after `limits.drain_ms`, and the next start finds its outcome unknown", async () => {
    await gateway.stop();
    gateway = await start("limits: { drain_ms: 400 }");
    const agent = new Agent(gateway.url, siteKey);
    const calling = agent.call("echo", { wait_ms: 60_000 }).then(
      () => "answered",
      () => "cut",
    );
    await untilCalled();
    expect(await gateway.stop()).to.equal(0);
    expect(await calling).to.equal("cut");
    await agent.hangUp();
    gateway = await start();
    const records = await new EvidenceReader(gateway.adminUrl, siteKey).recordsOf();
    expect(records.map(({ effect }) => effect)).to.deep.equal(["dispatched", "unknown"]);
  });

  function start(more = ""): Promise<RunningGateway> {
    const config = siteConfig({ remoteUrl: upstream.url, more });
    return startGateway({ folder, config, files: siteFiles(), ownProcess: true });
  }

  async function untilCalled(): Promise<void> {
    while ((await upstream.calls()).length === 0) await sleep(20);
  }
});
