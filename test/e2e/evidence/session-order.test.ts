import { createHash } from "node:crypto";
import { expect } from "chai";
import { canonicalJson } from "../../../core/action/canonical-json.ts";
import type { Json } from "../../../core/action/json.ts";
import { readBundle } from "../../../core/evidence/bundle/bundle-line.ts";
import type { ActionRecord } from "../../../core/evidence/record/record.ts";
import { Agent } from "../../support/agent.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { keys, openWorld, type World } from "../wire/world.ts";

/** What each action of the session asks for: to run at once, or to wait for a reviewer. */
const asked = ["run", "wait", "run", "run"] as const;

/** Three sessions at once, so that their records lie between each other's in the chain. */
describe("the action records of a session", () => {
  const labels = ["first", "second", "third"];
  let world: World;
  let reader: EvidenceReader;

  before(async () => {
    world = await openWorld();
    reader = new EvidenceReader(world.gateway.adminUrl, keys.operator);
    await Promise.all(labels.map((label) => act(label)));
  });
  after(() => world.stop());

  async function act(label: string): Promise<void> {
    const agent = new Agent(world.gateway.url, keys.operator, label);
    for (const [turn, what] of asked.entries()) {
      await agent.call("echo", { turn, label, ...(what === "wait" ? { please_review: `${turn}` } : {}) });
    }
    await agent.hangUp();
  }

  async function sessionOf(label: string): Promise<string> {
    return (await reader.sessions()).find((session) => session.label === label)?.id ?? "none";
  }

  /** The texts of the bundle's records that belong to the session it is about. */
  async function exported(session: string): Promise<readonly string[]> {
    const response = await fetch(`${world.gateway.adminUrl}/admin/v1/evidence/sessions/${session}/export`, {
      headers: { "x-api-key": keys.operator },
    });
    expect(response.status).to.equal(200);
    const { entries } = readBundle(Buffer.from(await response.arrayBuffer()));
    const lines = entries.map(({ record }) => canonicalJson(record as unknown as Json));
    return lines.filter((line) => line.includes(`"session":{"id":"${session}"`));
  }

  for (const label of labels) {
    it(`stand in the export in the order in which they happened, numbered without a gap: ${label} [R2.3-5]`, async () => {
      const session = await sessionOf(label);
      const lines = await exported(session);
      const records = lines.map((line) => JSON.parse(line) as ActionRecord);
      const ran = [
        ["decision", "allow", "dispatched"],
        ["outcome", "allow", "success"],
      ];
      const waits = [["decision", "review", "not_dispatched"]];
      expect(records.map(({ kind, evaluation, effect }) => [kind, evaluation?.decision, effect])).to.deep.equal(
        asked.flatMap((what) => (what === "run" ? ran : waits)),
      );
      expect(records.map((each) => each.session.index)).to.deep.equal([...records.keys()]);
      const hashes = lines.map((line) => createHash("sha256").update(line).digest("hex"));
      expect(records.slice(1).map((each) => each.session.prev_hash)).to.deep.equal(hashes.slice(0, -1));
      expect(records.map(({ seq }) => seq)).to.deep.equal(records.map(({ seq }) => seq).sort((a, b) => a - b));
      expect(await reader.records(session)).to.deep.equal(records);
    });
  }

  it("lie between those of other sessions in the chain, so that the order is the session's own [R2.3-5]", async () => {
    const seqs = (await reader.records(await sessionOf("first"))).map(({ seq }) => seq);
    expect((seqs.at(-1) ?? 0) - (seqs[0] ?? 0)).to.be.greaterThan(seqs.length - 1);
  });
});
