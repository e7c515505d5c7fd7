import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { ShadowLogEntry } from "../../../core/observe/shadow-log.ts";
import { repositoryRoot } from "../../check/source-tree.ts";
import { CommandHost } from "../../support/command-host.ts";
import { scrape } from "../../support/scrape.ts";
import { type Result, type Step, WatchedSite } from "../../support/watched-site.ts";
import { cases, settings } from "./detector-case.ts";

// What these sessions ask for is not to stop them: that is what other tests are about.
const more = "sessions: { review_flood: { reviews: 0 }, risk: { kill_at: 0 } }";
const detectors = [...new Set(cases.map(({ rule }) => `session-watch.${rule}`))];

async function lastOf(site: WatchedSite, label: string, steps: readonly Step[]): Promise<Result | undefined> {
  const session = site.session(label);
  const results = await session.run(steps);
  await session.end();
  return results.at(-1);
}

describe("each detector of session-watch", () => {
  let site: WatchedSite;
  before(async () => {
    site = await WatchedSite.open({ settings, more });
  });
  after(() => site.stop());

  cases.forEach(({ rule, trips, near }, index) => {
    it(`holds what trips ${rule}, and not what comes near #${index}`, async () => {
      expect(await lastOf(site, `trips-${index}`, trips)).to.deep.equal({ state: "held", reached: false });
      const { evaluation } = (await site.records(`trips-${index}`)).at(-1) ?? {};
      expect(evaluation?.rules).to.include(`session-watch.${rule}`);
      expect(await lastOf(site, `near-${index}`, near)).to.deep.equal({ state: "answered", reached: true });
    });
  });
});

describe("each detector of session-watch in shadow mode", () => {
  let site: WatchedSite;
  let commands: CommandHost;
  before(async () => {
    commands = new CommandHost();
    site = await WatchedSite.open({ settings, more, shadowRules: detectors.join(", ") });
    for (const [index, { trips }] of cases.entries()) {
      const last = await lastOf(site, `trips-${index}`, trips);
      expect(last, `trips-${index}`).to.deep.equal({ state: "answered", reached: true });
    }
  });
  after(async () => {
    await commands.stop();
    await site.stop();
  });

  function ask(target: string, key: string = site.key): Promise<Response> {
    return fetch(`${site.gateway.adminUrl}/admin/v1/${target}`, { headers: { "x-api-key": key } });
  }

  it("lets pass what it would have held, and says so in the evidence of it [S63]", async () => {
    for (const [index, { rule }] of cases.entries()) {
      const records = await site.records(`trips-${index}`);
      const decision = records.filter(({ kind }) => kind === "decision").at(-1);
      expect(decision?.evaluation?.would_have, rule).to.deep.include({
        decision: "review",
        rule: `session-watch.${rule}`,
      });
      expect([decision?.effect, decision?.evaluation?.decision], rule).to.deep.equal(["dispatched", "allow"]);
    }
    const response = await fetch(`${site.gateway.adminUrl}/admin/v1/audit/verify`, {
      method: "POST",
      headers: { "x-api-key": site.key },
    });
    expect(((await response.json()) as { ok: boolean }).ok).to.equal(true);
  });

  it("is told in a bundle that both verifiers take", async () => {
    const [record] = await site.records("trips-0");
    const folder = await mkdtemp(join(tmpdir(), "trial-"));
    try {
      const bundle = join(folder, "bundle.jsonl");
      const admin = ["--admin", site.gateway.adminUrl];
      const args = ["evidence", "export", record?.session.id ?? "", "--file", bundle, ...admin];
      expect((await commands.run(args, { GATEWAY_API_KEY: site.key })).code).to.equal(0);
      expect(await readFile(bundle, "utf8")).to.include('"would_have":[{"decision":"review"');
      const { keys } = (await (await ask("evidence/checkpoint")).json()) as { keys: [{ public_key: string }] };
      const key = ["--key", keys[0].public_key];
      const ours = await commands.run(["evidence", "verify", bundle, ...key]);
      const python = [join(repositoryRoot, "sdk/evidence/verify.py"), bundle, ...key];
      const theirs = spawnSync("python3", python, { encoding: "utf8" });
      expect([ours.code, theirs.status], theirs.stderr).to.deep.equal([10, 10]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("is counted, by kind and decision, and nothing else is", async () => {
    const series = [...(await scrape(site.gateway.metricsUrl))].filter(([name]) =>
      name.startsWith("gateway_shadow_decisions"),
    );
    expect(series.map(([name]) => name)).to.deep.equal([
      'gateway_shadow_decisions_total{kind="pack",decision="review"}',
    ]);
    expect(series[0]?.[1]).to.be.at.least(cases.length);
  });

  it("is listed rule by rule, with the last decision it would have changed, in pages, to its own tenant", async () => {
    const page = (await (await ask("shadow-decisions")).json()) as { items: readonly ShadowLogEntry[]; next: null };
    expect(page.items.map(({ rule }) => rule)).to.deep.equal(detectors.toSorted());
    for (const { count, last_decision: last, last_time: time, policy } of page.items) {
      expect(count).to.be.at.least(1);
      expect(last).to.match(/^[0-9a-f-]{36}$/);
      expect(Date.now() - Date.parse(time)).to.be.within(0, 60_000);
      expect(policy).to.deep.equal({ kind: "pack", name: "session-watch" });
    }
    const paged: string[] = [];
    for (let next: string | null = ""; next !== null; ) {
      const cursor: string = next === "" ? "" : `&cursor=${encodeURIComponent(next)}`;
      const some = (await (await ask(`shadow-decisions?limit=4${cursor}`)).json()) as {
        items: readonly ShadowLogEntry[];
        next: string | null;
      };
      paged.push(...some.items.map(({ rule }) => rule));
      next = some.next;
    }
    expect(paged).to.deep.equal(detectors.toSorted());
    expect(await (await ask("shadow-decisions", site.foreignKey)).json()).to.deep.equal({ items: [], next: null });
    expect((await ask("shadow-decisions?limit=0")).status).to.equal(400);
  });

  it("is printed by `gateway policies shadow`", async () => {
    const args = ["policies", "shadow", "--admin", site.gateway.adminUrl];
    const { code, stdout } = await commands.run([...args, "--json"], { GATEWAY_API_KEY: site.key });
    expect(code).to.equal(0);
    const trials = stdout
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as ShadowLogEntry);
    expect(trials.map(({ rule }) => rule)).to.deep.equal(detectors.toSorted());
    const spoken = await commands.run(args, { GATEWAY_API_KEY: site.key });
    expect(spoken.stdout).to.match(/^session-watch\.data-url +held +1 {2}\d{4}-\S+Z {2}[0-9a-f-]{36}$/m);
  });

  it("is told in the report of its session", async () => {
    const index = cases.findIndex(({ rule }) => rule === "untrusted-egress");
    const [record] = await site.records(`trips-${index}`);
    const path = `evidence/sessions/${record?.session.id}/report?format=`;
    for (const format of ["md", "html"]) {
      const text = (await (await ask(path + format)).text()).replaceAll("\\", "");
      expect(text).to.include("Would have been held for review by rule session-watch.untrusted-egress in shadow mode");
    }
  });
});
