import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { Agent } from "../../support/agent.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";

const agents = 16;
const flips = 18;
/** More than the time in which changes count as one. */
const flipMs = 280;
const rulesFile = "packs/open/rules/all.yaml";

describe("a pack that changes under load", () => {
  const files = siteFiles();
  const one = files[rulesFile] as string;
  const other = one.replace("message: allowed", "message: allowed too");
  const broken = one.replace("decision: allow", "acton: allow");
  let folder: string;
  let gateway: RunningGateway;
  let digests: readonly [string, string];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "gateway-reload-"));
    const config = siteConfig({ localLog: join(folder, "local.jsonl") });
    gateway = await startGateway({ folder, config, files });
    const first = await digestInForce();
    await replaceRules(other);
    digests = [first, await digestOtherThan(first)];
  });

  after(async () => {
    await gateway.stop();
    await rm(folder, { recursive: true });
  });

  it("is in force whole, old or new, in each decision; a broken one never; and no call is lost [S33]", async () => {
    const stop = new AbortController();
    const calling = Promise.all(Array.from({ length: agents }, (_, index) => callUntil(stop.signal, `load-${index}`)));
    for (let flip = 0; flip < flips; flip++) {
      await replaceRules([one, broken, other][flip % 3] as string);
      await sleep(flipMs);
    }
    stop.abort();
    const answered = (await calling).reduce((sum, count) => sum + count, 0);
    const reader = new EvidenceReader(gateway.adminUrl, siteKey);
    const records = await reader.recordsOf((label) => label?.startsWith("load-") ?? false);
    const named = records.map(({ evaluation }) => evaluation?.policies.filter(isPack).map(({ digest }) => digest));
    expect(new Set(named.map((each) => each?.join(" ")))).to.deep.equal(new Set(digests));
    expect(records.map(({ effect }) => effect).toSorted()).to.deep.equal([
      ...Array<string>(answered).fill("dispatched"),
      ...Array<string>(answered).fill("success"),
    ]);
    expect(await reader.verify()).to.include({ ok: true });
    const said = gateway.stderr();
    expect(said).to.include("reload_refused");
  });

  it("leaves the last good one in force while it is broken [S33]", async () => {
    await replaceRules(one);
    expect(await digestOtherThan(digests[1])).to.equal(digests[0]);
    await replaceRules(broken);
    await sleep(2 * flipMs);
    expect(await digestInForce()).to.equal(digests[0]);
  });

  /** In one step, as a deployment would: no reader meets half a file. */
  async function replaceRules(text: string): Promise<void> {
    await writeFile(join(folder, "next.yaml"), text);
    await rename(join(folder, "next.yaml"), join(folder, rulesFile));
  }

  async function callUntil(stop: AbortSignal, label: string): Promise<number> {
    const agent = new Agent(gateway.url, siteKey, label);
    let count = 0;
    for (; !stop.aborted; count++) {
      const { status, result } = await agent.call("list_notes");
      expect([status, result?.isError ?? false]).to.deep.equal([200, false]);
    }
    await agent.hangUp();
    return count;
  }

  async function digestInForce(): Promise<string> {
    const response = await fetch(`${gateway.adminUrl}/admin/v1/policies`, { headers: { "x-api-key": siteKey } });
    const { items } = (await response.json()) as { items: readonly { kind: string; digest: string }[] };
    return items.find(isPack)?.digest ?? "";
  }

  async function digestOtherThan(old: string): Promise<string> {
    for (const end = performance.now() + 60_000; performance.now() < end; await sleep(20)) {
      const digest = await digestInForce();
      if (digest !== old) return digest;
    }
    throw new Error("expected the pack to be reloaded within 5 s");
  }
});

function isPack({ kind }: { readonly kind: string }): boolean {
  return kind === "pack";
}
