import { expect } from "chai";
import { Agent, type Answer } from "../../support/agent.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { HeldSite, heldId, overHttp, type Person, reviewEverything, textOf } from "../../support/held-site.ts";
import { allowEverything } from "../../support/pack.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { ReplicaGroup } from "../../support/replica-group.ts";
import { eventually } from "../../support/replica-site.ts";
import { roundsOf } from "../../support/rounds.ts";
import { exportVerified } from "../../support/verified-bundle.ts";

const retries = 200;

describe("a call that is held, on three replicas", () => {
  let upstream: Recorder;
  let people: HeldSite;
  let group: ReplicaGroup;

  before(async () => {
    upstream = await startRecorder();
    people = new HeldSite({ upstreams: [overHttp("recorder", upstream.url)] });
    group = await ReplicaGroup.create({
      config: people.config(),
      files: { ...allowEverything("packs/open"), "packs/open/rules/review.yaml": reviewEverything },
      leaseMs: 3_000,
    });
    await Promise.all([0, 1, 2].map((index) => group.start(index)));
  });

  after(async () => {
    await group.stop();
    await upstream.stop();
  });

  /** Calls on a new connection. Rejects where no answer comes. */
  async function call(index: number, tool: string, args: { readonly mark: string }): Promise<Answer> {
    const agent = new Agent(group.member(index).url, people.key("agent"), args.mark);
    try {
      return await agent.call(tool, args);
    } finally {
      await agent.hangUp();
    }
  }

  async function order(index: number, person: Person, path: string, body: object = {}): Promise<number> {
    const response = await fetch(`${group.member(index).adminUrl}/admin/v1/${path}`, {
      method: "POST",
      headers: { "x-api-key": people.key(person), "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    await response.text();
    return response.status;
  }

  async function reached(mark: string): Promise<number> {
    return (await upstream.calls()).filter(({ body }) => body.includes(`"${mark}"`)).length;
  }

  /** Approves at a replica what was held at another, and retries it at all at once: it is executed once. */
  async function expectOnce(mark: string, at: number): Promise<void> {
    const held = heldId(await call(at, "echo", { mark }));
    expect(await reached(mark)).to.equal(0);
    expect(await order((at + 1) % 3, "rita", `approvals/${held}/approve`)).to.equal(200);
    expect(await reached(mark)).to.equal(0);
    const answers = await Promise.all(Array.from({ length: retries }, (_, turn) => call(turn % 3, "echo", { mark })));
    expect([executed(answers), await reached(mark)], mark).to.deep.equal([1, 1]);
  }

  for (let round = 1; round <= roundsOf(1, 200); round++) {
    it(`is executed once where it is approved at another and retried ${retries} times at all (${round}) [S86]`, async () => {
      await expectOnce(`held-${round}`, round % 3);
    });
  }

  it("leaves one chain, which both verifiers find sound", async () => {
    const { adminUrl } = group.member(1);
    const reader = new EvidenceReader(adminUrl, people.key("rita"));
    expect(await reader.verify()).to.include({ ok: true });
    const { id } = (await reader.sessions()).find(({ label }) => label === "held-1") ?? { id: "" };
    const records = await exportVerified(adminUrl, people.key("rita"), id);
    const dispatched = records.filter((record) => "effect" in record && record.effect === "dispatched");
    expect(dispatched).to.have.length(1);
  });

  it("is executed once where the owner is killed between the approval and the retries [S86]", async () => {
    const mark = "held-and-killed";
    const killed = group.owner();
    const held = heldId(await call(killed, "echo", { mark }));
    expect(await order((killed + 1) % 3, "rita", `approvals/${held}/approve`)).to.equal(200);
    await group.member(killed).kill9();
    const others = [(killed + 1) % 3, (killed + 2) % 3];
    // As a replica that finds no owner in time says.
    const retry = async (index: number): Promise<Answer> => {
      const answer = await call(index, "echo", { mark });
      return answer.status === 503 ? retry(index) : answer;
    };
    const answers = await Promise.all(Array.from({ length: retries }, (_, turn) => retry(others[turn % 2] as number)));
    expect([executed(answers), await reached(mark)]).to.deep.equal([1, 1]);
    await group.start(killed);
  });

  it("is not dispatched at any of them after a kill was acknowledged at one, until it is released [S86]", async () => {
    const mark = "stopped";
    const held = heldId(await call(2, "echo", { mark }));
    expect(await order(1, "rita", `approvals/${held}/approve`)).to.equal(200);
    expect(await order(0, "rita", "kills", { scope: "tenant" })).to.equal(200);
    const answers = await Promise.all(Array.from({ length: 12 }, (_, turn) => call(turn % 3, "echo", { mark })));
    for (const answer of answers) expect(textOf(answer)).to.include("is stopped until");
    expect(await reached(mark)).to.equal(0);

    // The next owner knows of it, too.
    const killed = group.owner();
    await group.member(killed).kill9();
    for (const index of [0, 1, 2].filter((each) => each !== killed)) {
      expect(textOf(await call(index, "echo", { mark }))).to.include("is stopped until");
    }
    expect(await reached(mark)).to.equal(0);
    await group.start(killed);
    expect(await order(killed, "rita", "kills/release", { scope: "tenant", reason: "seen to" })).to.equal(200);
    await eventually("a call that is held again or executed", async () => {
      const answer = await call(killed, "echo", { mark: "released" });
      return !textOf(answer).includes("is stopped until");
    });
  });
});

function executed(answers: readonly Answer[]): number {
  return answers.filter(({ result }) => result !== undefined && result.isError !== true).length;
}
