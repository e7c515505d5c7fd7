import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { recordRange } from "../../../core/evidence/record/key-space.ts";
import { openStore } from "../../../core/store/open.ts";
import { filesWith } from "../../support/disk-search.ts";
import { until } from "../../support/event-stream.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";
import { SseAgent } from "../../support/sse-agent.ts";

const otherKey = `test-${randomBytes(32).toString("base64url")}`;
const otherHash = createHash("sha256").update(otherKey).digest("hex");
describe("a connection of HTTP+SSE", () => {
  let folder: string;
  let upstream: Recorder;
  let gateway: RunningGateway;
  let one: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "gateway-connection-"));
    upstream = await startRecorder();
    one = siteConfig({ remoteUrl: upstream.url });
    const both = one.replace(
      "keys: [",
      `keys: [{ id: other, tenant: acme, role: viewer, key_hash: "sha256:${otherHash}" }, `,
    );
    gateway = await startGateway({ folder, config: both, files: siteFiles(), ownProcess: true });
  });

  afterEach(async () => {
    await gateway.stop();
    await upstream.stop();
    await rm(folder, { recursive: true });
  });

  it("ends when the gateway stops, which waits for no idle one", async () => {
    const agents = [await SseAgent.open(gateway.url, siteKey), await SseAgent.connect(gateway.url, otherKey)];
    expect(await gateway.stop()).to.equal(0);
    for (const agent of agents) await agent.stream.awaitEnd();
  });

  it("is answered what it has asked before the gateway stops, and takes nothing more", async () => {
    const agent = await SseAgent.open(gateway.url, siteKey);
    const answer = agent.echo({ wait_ms: 1_500 });
    await until(async () => (await upstream.calls()).length === 1);
    gateway.process.kill("SIGTERM");
    expect((await answer).result?.content?.[0]?.text).to.include("wait_ms");
    await agent.stream.awaitEnd();
    if (gateway.process.exitCode === null) await once(gateway.process, "exit");
    expect(gateway.process.exitCode).to.equal(0);
  });

  it("ends with its key, whatever is in flight, and leaves those of other keys", async () => {
    const [mine, theirs] = [await SseAgent.open(gateway.url, siteKey), await SseAgent.open(gateway.url, otherKey)];
    await theirs.post({
      jsonrpc: "2.0",
      id: 9,
      method: "tools/call",
      params: { name: "echo", arguments: { wait_ms: 5_000 } },
    });
    await until(async () => (await upstream.calls()).length === 1);
    await writeFile(join(folder, "gateway.yaml"), one);
    await theirs.stream.awaitEnd();
    expect(theirs.stream.messages().some(({ id }) => id === 9)).to.equal(false);
    await until(async () => (await upstream.requests()).some(({ body }) => body.includes("notifications/cancelled")));
    expect((await theirs.post({ jsonrpc: "2.0", id: 10, method: "ping" })).status).to.equal(401);
    expect((await mine.echo()).error).to.equal(undefined);
    mine.hangUp();
  });

  it("leaves in evidence that its session was opened and closed, once each, nothing where there was none, and its id nowhere", async () => {
    const hungUp = await SseAgent.open(gateway.url, siteKey);
    const silent = await SseAgent.connect(gateway.url, siteKey);
    await hungUp.echo();
    await hungUp.post({
      jsonrpc: "2.0",
      id: 9,
      method: "tools/call",
      params: { name: "echo", arguments: { wait_ms: 2_000 } },
    });
    await until(async () => (await upstream.calls()).length === 2);
    hungUp.hangUp();
    silent.hangUp();
    const left = await SseAgent.open(gateway.url, siteKey);
    await sleep(200);
    const known = await new EvidenceReader(gateway.adminUrl, siteKey).sessions();
    expect(await gateway.stop()).to.equal(0);
    await left.stream.awaitEnd();
    const events = await sessionEvents();
    for (const { path } of [hungUp, silent, left]) {
      expect(await filesWith(folder, path.slice("/mcp/session/".length))).to.deep.equal([]);
    }
    expect(events.map(({ event }) => event)).to.have.members(["opened", "opened", "closed", "closed"]);
    const first = events.filter(({ session }) => session === known[0]?.id);
    expect(first.map(({ event, outcomes }) => [event, outcomes])).to.deep.equal([
      ["opened", 0],
      ["closed", 2],
    ]);
  });

  interface SessionEvent {
    readonly event: string;
    readonly session: string;
    /** Outcomes that were recorded before it. */
    readonly outcomes: number;
  }

  /** What the chain of the stopped gateway says of sessions. */
  async function sessionEvents(): Promise<readonly SessionEvent[]> {
    const store = await openStore({ dir: join(folder, "data"), enabled: true });
    const texts = await store.values(recordRange("acme")).all();
    await store.close();
    const events: SessionEvent[] = [];
    let outcomes = 0;
    for (const text of texts) {
      const { kind, detail } = JSON.parse(String(text));
      if (kind === "outcome") outcomes++;
      if (kind === "session") events.push({ event: detail.client.event, session: detail.session, outcomes });
    }
    return events;
  }
});
