import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { parseCheckpoint } from "../../../core/evidence/tree/checkpoint.ts";
import { Agent } from "../../support/agent.ts";
import { runCommand } from "../../support/command-host.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";
import { until } from "../../support/webhook-receiver.ts";

const agents = 8;

describe("a backup of a gateway that serves", () => {
  let root: string;
  let upstream: Recorder;
  let gateway: RunningGateway;
  let file: string;
  /** Of the caller's chain, when the backup was asked for. */
  let recordsBefore: number;

  before(async () => {
    root = await mkdtemp(join(tmpdir(), "backup-load-"));
    upstream = await startRecorder();
    await mkdir(join(root, "first"));
    gateway = await start("first");
    const load = new Load(gateway.url);
    try {
      await load.growBy(20);
      recordsBefore = await records();
      const env = { GATEWAY_API_KEY: siteKey, GATEWAY_ADMIN_URL: gateway.adminUrl };
      const { stdout } = await runCommand(["backup", "create"], env);
      file = join(root, "first", "backups", stdout.trim());
      await load.growBy(1);
    } finally {
      await load.stop();
    }
    await gateway.kill9();
  });

  after(async () => {
    await gateway.stop();
    await upstream.stop();
    await rm(root, { recursive: true });
  });

  function start(name: string): Promise<RunningGateway> {
    const config = siteConfig({ remoteUrl: upstream.url, role: "admin", more: "resilience: { enabled: true }" });
    return startGateway({ config, files: siteFiles(), folder: join(root, name) });
  }

  async function records(): Promise<number> {
    const response = await fetch(`${gateway.adminUrl}/admin/v1/evidence/checkpoint`, {
      headers: { "x-api-key": siteKey },
    });
    return parseCheckpoint(((await response.json()) as { readonly note: string }).note)?.size ?? -1;
  }

  it("restored elsewhere, verifies and holds what was acknowledged before it; the gateway there answers [R2.8-2, R4.2-7]", async () => {
    const data = join(root, "second", "data");
    await cp(join(root, "first", "data", "keys"), join(data, "keys"), { recursive: true });
    const { code, stderr } = await runCommand(["restore", file, "--data", data, "--by", "ops"]);
    expect([code, stderr]).to.deep.equal([0, ""]);
    const verified = await runCommand(["evidence", "verify", "--data", data, "--json"]);
    const { chains } = JSON.parse(verified.stdout) as { chains: { verdict: string; records: number }[] };
    expect([verified.code, chains.map(({ verdict }) => verdict)]).to.deep.equal([10, ["self-attested"]]);
    expect(chains[0]?.records).to.be.above(recordsBefore);

    gateway = await start("second");
    const arrived = (await upstream.calls()).length;
    const agent = new Agent(gateway.url, siteKey);
    const { result } = await agent.call("echo", { from: "the second" });
    await agent.hangUp();
    expect(result?.content?.[0]?.text).to.include("the second");
    expect((await upstream.calls()).length - arrived).to.equal(1);
    expect((await new EvidenceReader(gateway.adminUrl, siteKey).verify()).ok).to.equal(true);
  });
});

/** Agents that call one after another, each waiting for its answer, until they are stopped. */
class Load {
  #served = 0;
  #isOver = false;
  readonly #agents: readonly Promise<void>[];

  constructor(url: string) {
    this.#agents = Array.from({ length: agents }, () => this.#call(new Agent(url, siteKey)));
  }

  async growBy(calls: number): Promise<void> {
    const from = this.#served;
    await until(() => this.#served >= from + calls, `${calls} more calls`);
  }

  /** Rejects where a call was not answered. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#agents);
  }

  async #call(agent: Agent): Promise<void> {
    while (!this.#isOver) {
      const { result } = await agent.call("echo", { turn: this.#served });
      if (result === undefined) throw new Error("expected every call to be answered");
      this.#served++;
    }
    await agent.hangUp();
  }
}
