import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { killKey } from "../../../core/kill/kill.ts";
import { openStore } from "../../../core/store/open.ts";
import { Agent, type Answer } from "../../support/agent.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { readCalls, siteConfig, siteFiles, siteKey } from "../../support/site.ts";

describe("a session that was stopped before the gateway was killed", () => {
  let folder: string;
  let log: string;
  let gateway: RunningGateway;
  let id: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "kill-start-"));
    log = join(folder, "local.jsonl");
    await start();
    expect(isBlocked(await call())).to.equal(false);
    id = (await new EvidenceReader(gateway.adminUrl, siteKey).sessions())[0]?.id ?? "";
    expect(await order("kill")).to.equal(200);
    await gateway.kill9();
  });

  after(async () => {
    await gateway.kill9();
    await rm(folder, { recursive: true });
  });

  async function start(): Promise<void> {
    gateway = await startGateway({ alone: true, folder, config: siteConfig({ localLog: log }), files: siteFiles() });
  }

  async function call(): Promise<Answer> {
    const agent = new Agent(gateway.url, siteKey);
    try {
      return await agent.call("list_notes");
    } finally {
      await agent.hangUp();
    }
  }

  async function order(what: "kill" | "release", session = id): Promise<number> {
    const url = `${gateway.adminUrl}/admin/v1/sessions/${session}/${what}`;
    const headers = { "x-api-key": siteKey, "content-type": "application/json" };
    const body = what === "release" ? JSON.stringify({ reason: "seen to" }) : null;
    return (await fetch(url, { method: "POST", headers, body })).status;
  }

  it("is stopped when it starts again [S57]", async () => {
    await start();
    expect(isBlocked(await call())).to.equal(true);
    expect((await readCalls(log)).length).to.equal(1);
    await gateway.kill9();
  });

  it("is stopped even where the store has lost its entry: the chain has it", async () => {
    const store = await openStore({ dir: join(folder, "data"), enabled: true });
    expect(await store.get(killKey("acme", { scope: "session", subject: id }))).to.include(id);
    await store.del(killKey("acme", { scope: "session", subject: id }));
    await store.close();
    await start();
    expect(isBlocked(await call())).to.equal(true);
    expect((await readCalls(log)).length).to.equal(1);
  });

  it("can be released when all its records were pruned", async () => {
    await gateway.kill9();
    const store = await openStore({ dir: join(folder, "data"), enabled: true });
    const kept = await store.get(killKey("acme", { scope: "session", subject: id }));
    const gone = `session-v1-${"0".repeat(64)}`;
    await store.put(killKey("acme", { scope: "session", subject: gone }), kept?.replaceAll(id, gone) ?? "");
    await store.close();
    await start();
    expect(await order("release", gone)).to.equal(200);
    expect(await order("release", gone)).to.equal(404);
  });

  it("goes on once it was released, after the next kill -9 too", async () => {
    expect(await order("release")).to.equal(200);
    expect(isBlocked(await call())).to.equal(false);
    await gateway.kill9();
    await start();
    expect(isBlocked(await call())).to.equal(false);
    expect((await readCalls(log)).length).to.equal(3);
    expect(await new EvidenceReader(gateway.adminUrl, siteKey).verify()).to.include({ ok: true });
  });
});

function isBlocked({ result }: Answer): boolean {
  return result?.isError === true;
}
