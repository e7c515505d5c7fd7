import { execFile } from "node:child_process";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { BundleReport } from "../../core/evidence/bundle/verify.ts";
import type { EventRecord } from "../../core/evidence/record/record.ts";
import type { SessionPage } from "../../core/session/session-directory.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { ModelProvider, scripts } from "../fixture/model-provider.ts";
import { HeldSite, overHttp, toldOf } from "../support/held-site.ts";
import { MoodyUpstream } from "../support/moody-upstream.ts";
import { until } from "../support/webhook-receiver.ts";

/** Of Debian's package `faketime`; the linker puts the folder of this machine's architecture in. */
const faketime = "/usr/$LIB/faketime/libfaketime.so.1";
const dayS = 86_400;
const riskyRule = `rules:
  - id: open.risky
    title: Calls add to the risk
    decision: allow
    severity: info
    risk: 0
    session_risk: 60
    taints: [seen]
    match: { phase: input, tool: plain }
    message: risky
`;

/** A real gateway whose wall clock, and nothing else, is set while it runs: years ahead, then back, as by a broken time server. */
describe("a wall clock that is set", () => {
  let folder: string;
  let upstream: MoodyUpstream;
  let provider: ModelProvider;
  let site: HeldSite;
  let jumps = 0;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "clock-jump-"));
    upstream = await MoodyUpstream.start();
    upstream.swap(
      ["echo", "plain"].map((name) => ({ name, description: "Answers.", inputSchema: { type: "object" } })),
    );
    provider = await ModelProvider.start();
    provider.script = scripts.answers({ text: "It is sunny." });
    setWallClock(0);
    site = new HeldSite({
      upstreams: [overHttp("moody", upstream.url)],
      folder: join(folder, "gateway"),
      rules: riskyRule,
      env: {
        LD_PRELOAD: faketime,
        FAKETIME_TIMESTAMP_FILE: join(folder, "clock"),
        FAKETIME_NO_CACHE: "1",
        FAKETIME_DONT_FAKE_MONOTONIC: "1",
        DONT_FAKE_MONOTONIC: "1",
        NO_FAKE_STAT: "1",
        PROVIDER_KEY: "sk-of-nobody",
      },
      more: `
log: { level: info }
evidence: { retention_days: 30 }
providers: [{ name: open, type: openai, base_url: "${provider.baseUrl("openai")}", api_key_env: PROVIDER_KEY, models: [chat-model] }]
model_gateway: { routes: [{ model: chat-model, providers: [{ name: open, model: open-1 }] }] }
usage: { budgets: [{ tenant: acme, tokens_per_day: 20, tokens_per_month: 20 }] }`,
    });
    await site.start();
    await askModel();
    await site.call("plain", { risk: 1 });
  });

  after(async () => {
    await site.kill9().catch(() => undefined);
    upstream.stop();
    provider.stop();
    rmSync(folder, { recursive: true });
  });

  it("ahead by 400 days: frees no budget, drains no risk, ends no approval, and is logged and on record [S91]", async () => {
    expect(await askModel()).to.equal(429);
    const unused = await site.holdAndApprove("echo", { to: "approved before" });
    const pending = await site.hold("echo", { to: "held before" });
    await jump(400 * dayS);
    expect(await askModel()).to.equal(429);
    await expectRiskAndTaint();
    expect((await site.show(unused)).state).to.equal("approved");
    expect(toldOf(await site.call("echo", { to: "held before" })).approval).to.deep.include({ id: pending });
    await site.approve(pending);
    expect((await site.call("echo", { to: "held before" })).result?.isError).to.equal(undefined);
    expect(called()).to.deep.equal(["held before"]);
    await until(async () => (await clockEvents()).length === 1, "the record of the jump");
  });

  it("back again: frees no budget, revives no used approval, and passes the one that is in time, once [S91]", async () => {
    await jump(0);
    expect(await askModel()).to.equal(429);
    expect(provider.calls.length).to.equal(1);
    await expectRiskAndTaint();
    expect(toldOf(await site.call("echo", { to: "held before" })).executed).to.equal(false);
    for (const isLate of [false, true]) {
      const { result } = await site.call("echo", { to: "approved before" });
      expect(result?.isError, String(isLate)).to.equal(isLate ? true : undefined);
    }
    expect(called()).to.deep.equal(["held before", "approved before"]);
    await until(async () => (await clockEvents()).length === 2, "the record of the second jump");
    const [ahead, back] = await clockEvents();
    for (const [detail, days] of [[ahead, 400] as const, [back, -400] as const]) {
      expect(detail).to.include({ event: "jumped", jumps: 1 });
      expect(Math.round(Number(detail?.size_ms) / 1_000 / dayS)).to.equal(days);
    }
  });

  it("goes on record in a form that both verifiers accept [S91]", async () => {
    expect(await site.evidence.verify()).to.include({ ok: true });
    const bundle = join(folder, "bundle.jsonl");
    writeFileSync(bundle, await exported());
    const program = join(repositoryRoot, "sdk", "evidence", "verify.py");
    const said = await new Promise<BundleReport>((resolve) => {
      execFile("python3", [program, bundle], (_error, stdout) => resolve(JSON.parse(stdout) as BundleReport));
    });
    expect(said).to.include({ verdict: "self-attested", first_bad: null });
    const main = join(repositoryRoot, "dist", "core", "cli", "main.js");
    const ours = await new Promise<string>((resolve) => {
      execFile(process.execPath, [main, "evidence", "verify", bundle, "--json"], (_error, stdout) => resolve(stdout));
    });
    expect(JSON.parse(ours)).to.include({ verdict: "self-attested", first_bad: null });
  });

  /** Sets the wall clock of the gateway, so many seconds from the right one. */
  function setWallClock(offsetS: number): void {
    const text = `${offsetS < 0 ? "" : "+"}${offsetS}\n`;
    writeFileSync(join(folder, "clock.new"), text);
    renameSync(join(folder, "clock.new"), join(folder, "clock"));
  }

  /** Resolves when the gateway has logged it. */
  async function jump(offsetS: number): Promise<void> {
    setWallClock(offsetS);
    jumps++;
    await until(async () => logged().length === jumps, "the jump in the log");
    expect(logged().at(-1)).to.match(/"expected":"[^"]+","found":"[^"]+","size_ms":-?\d+/);
  }

  function logged(): readonly string[] {
    return site.gateway
      .stderr()
      .split("\n")
      .filter((line) => line.includes('"clock_jumped"'));
  }

  async function askModel(): Promise<number> {
    const body = JSON.stringify({ model: "chat-model", messages: [{ role: "user", content: "How is the weather?" }] });
    const headers = { "x-api-key": site.key("agent"), "content-type": "application/json" };
    return (await fetch(`${site.gateway.url}/v1/chat/completions`, { method: "POST", headers, body })).status;
  }

  /** A minute of the test drains a point. */
  async function expectRiskAndTaint(): Promise<void> {
    const { items } = (await (await admin("/sessions?sort=risk")).json()) as SessionPage;
    const [item] = items;
    if (item === undefined || item.state === "damaged") throw new Error("expected a session");
    expect(item.risk).to.be.above(40);
    expect(item.taints).to.deep.equal(["seen"]);
  }

  function called(): readonly string[] {
    return upstream.calls.flatMap(({ arguments: given }) => (given as { to?: string }).to ?? []);
  }

  function admin(path: string): Promise<Response> {
    return fetch(`${site.gateway.adminUrl}/admin/v1${path}`, { headers: { "x-api-key": site.key("rita") } });
  }

  /** The latest session as a bundle. */
  async function exported(): Promise<string> {
    const [latest] = await site.evidence.sessions();
    const response = await admin(`/evidence/sessions/${latest?.id}/export`);
    const text = await response.text();
    if (response.status !== 200) throw new Error(`expected 200, got ${response.status}: ${text}`);
    return text;
  }

  async function clockEvents(): Promise<readonly EventRecord["detail"][]> {
    const lines = (await exported()).trimEnd().split("\n").slice(1);
    return lines.flatMap((line) => {
      const { record } = JSON.parse(line) as { record?: EventRecord };
      return record?.kind === "clock" ? [record.detail] : [];
    });
  }
});
