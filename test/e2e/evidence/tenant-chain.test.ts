import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import canonicalize from "canonicalize";
import { expect } from "chai";
import type { ActionRecord } from "../../../core/evidence/record/record.ts";
import { Agent } from "../../support/agent.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { allowEverything } from "../../support/pack.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { send } from "../../support/wire.ts";

const keys = {
  acme: "test-key-of-acme-0123456789abcdefghijklmnop",
  umbrella: "test-key-of-umbrella-0123456789abcdefghijk",
} as const;
type Tenant = keyof typeof keys;
const tenants = Object.keys(keys) as Tenant[];

const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex");
const bytesOf = (record: ActionRecord): string => canonicalize(record) as string;

/** All of it is read over the admin port. */
describe("the evidence of two tenants", () => {
  let folder: string;
  let upstream: Recorder;
  let gateway: RunningGateway;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "gateway-chains-"));
    upstream = await startRecorder();
    await start();
    for (const tenant of tenants) await act(tenant, 2);
  });

  after(async () => {
    await gateway.stop();
    await upstream.stop();
    await rm(folder, { recursive: true });
  });

  async function start(): Promise<void> {
    const entry = (tenant: Tenant): string =>
      `{ id: agent, tenant: ${tenant}, role: operator, key_hash: "sha256:${hashOf(keys[tenant])}" }`;
    const config = `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys: [${entry("acme")}, ${entry("umbrella").replace("id: agent", "id: other")}]
upstreams: [{ name: remote, transport: http, url: "${upstream.url}", protocol: legacy, connection: shared }]
policy: { packs: [{ path: packs/open }] }
`;
    gateway = await startGateway({ folder, config, files: allowEverything("packs/open") });
  }

  async function act(tenant: Tenant, turns: number): Promise<void> {
    const agent = new Agent(gateway.url, keys[tenant], `work-of-${tenant}`);
    for (let turn = 0; turn < turns; turn++) expect((await agent.call("echo", { turn })).status).to.equal(200);
    await agent.hangUp();
  }

  const readerOf = (tenant: Tenant): EvidenceReader => new EvidenceReader(gateway.adminUrl, keys[tenant]);

  it("lists to each its own sessions, and not on the port of agents [R1.2-8, R2.1-3, R4.2-6]", async () => {
    for (const tenant of tenants) {
      const sessions = await readerOf(tenant).sessions();
      expect(sessions.map(({ label, records }) => [label, records])).to.deep.equal([[`work-of-${tenant}`, 4]]);
      const request = { target: "/admin/v1/evidence/sessions", headers: [["x-api-key", keys[tenant]]] } as const;
      expect((await send(gateway.url, request)).status).to.equal(404);
    }
  });

  it("shows neither the other's records [R2.1-3]", async () => {
    const [session] = await readerOf("umbrella").sessions();
    const refusal = await readerOf("acme")
      .records(session?.id ?? "")
      .then(
        () => "answered",
        (error: Error) => error.message,
      );
    expect(refusal).to.match(/got 404/);
    expect(await readerOf("umbrella").records(session?.id ?? "")).to.have.length(4);
  });

  it("has the tenant, and its principal, in each record [R2.1-8, R2.3-2]", async () => {
    for (const tenant of tenants) {
      const made = canonicalize(["principal-v1", tenant, `sha256:${hashOf(keys[tenant])}`]) as string;
      const records = await readerOf(tenant).recordsOf();
      expect(records.map((record) => [record.tenant, record.principal.id])).to.deep.equal(
        records.map(() => [tenant, `principal-v1-${hashOf(made)}`]),
      );
      expect(records).to.have.length(4);
    }
  });

  it("is only added to, and each record holds the hash of the one before, over a restart [R2.1-8, R2.3-1]", async () => {
    const before = await readerOf("acme").recordsOf();
    await gateway.stop();
    await start();
    await act("acme", 2);
    const records = await readerOf("acme").recordsOf();
    expect(records.slice(0, before.length).map(bytesOf)).to.deep.equal(before.map(bytesOf));
    expect(records).to.have.length(2 * before.length);
    expect(new Set(records.map(({ principal }) => principal.id)).size).to.equal(1);
    const linked = records.filter((record, index) => records[index - 1]?.seq === record.seq - 1);
    for (const record of linked) {
      expect(record.prev_hash).to.equal(hashOf(bytesOf(records[records.indexOf(record) - 1] as ActionRecord)));
    }
    expect(linked).to.have.length.of.at.least(before.length);
    expect(await readerOf("acme").verify()).to.include({ ok: true, tenant: "acme" });
  });
});
