import { expect } from "chai";
import { eventually, ReplicaSite, SteadyCalls, say } from "../../support/replica-site.ts";
import { roundsOf } from "../../support/rounds.ts";
import { siteKey } from "../../support/site.ts";

const everywhere = [0, 1, 2];

describe("a kill that one of three replicas acknowledged", () => {
  let site: ReplicaSite;

  before(async () => {
    site = await ReplicaSite.start(3_000);
  });

  after(() => site.stop());

  async function order(at: number, path: string, body: object): Promise<void> {
    const response = await fetch(`${site.group.member(at).adminUrl}/admin/v1/${path}`, {
      method: "POST",
      headers: { "x-api-key": siteKey, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    expect(response.status, await response.text()).to.equal(200);
  }

  /** Resolves once the upstream was told that it need not go on with any of these calls. */
  async function cancelled(marks: readonly string[]): Promise<void> {
    const requests = (await site.upstream.requests()).map(({ body }) => body).filter((body) => body !== "");
    const messages = requests.map((body) => JSON.parse(body));
    const called = messages.filter(({ params }) => marks.includes(params?.arguments?.mark)).map(({ id }) => id);
    expect(called).to.have.length(marks.length);
    await eventually("the upstream to be told", async () => {
      const bodies = (await site.upstream.requests()).map(({ body }) => body);
      const told = bodies.filter((body) => body.includes("notifications/cancelled")).map((body) => JSON.parse(body));
      const ids = told.map(({ params }) => params.requestId);
      return called.every((id) => ids.includes(id));
    });
  }

  for (let round = 1; round <= roundsOf(1, 100); round++) {
    it(`ends what is in flight through all of them, and nothing is dispatched after it (${round}) [S57, S86]`, async () => {
      const at = round % 3;
      const marks = everywhere.flatMap((index) => [1, 2, 3].map((turn) => `in-flight-${round}-${index}-${turn}`));
      const inFlight = marks.map((mark, turn) => site.call(site.url(Math.floor(turn / 3)), mark, { wait_ms: 60_000 }));
      await eventually("the calls to be dispatched", async () => {
        const reached = new Set(await site.reached());
        return marks.every((mark) => reached.has(mark));
      });
      const racing = everywhere.map((index) => new SteadyCalls(site, site.url(index), `racing-${round}-${index}`, 3));
      await Promise.all(racing.map((calls) => calls.answered(3)));

      await order(at, "kills", { scope: "tenant" });
      const acknowledgedMs = performance.now();
      const late = everywhere.flatMap((index) =>
        [1, 2, 3].map((turn) => site.call(site.url(index), `late-${round}-${index}-${turn}`)),
      );
      const ended = await Promise.all(inFlight);
      const lastMs = Math.max(...ended.map(({ endedMs }) => endedMs));
      const role = site.group.owner() === at ? "the owner" : "another replica";
      say(
        `acknowledged by ${role}: the last of ${ended.length} calls ended ${Math.round(lastMs - acknowledgedMs)} ms later`,
      );
      for (const { mark, end } of ended) expect(end, mark).to.equal("SESSION_KILLED");
      await cancelled(marks);
      const raced = (await Promise.all(racing.map((calls) => calls.end()))).flat();
      const refused = [...(await Promise.all(late)), ...raced.filter(({ sentMs }) => sentMs >= acknowledgedMs)];
      const reached = new Set(await site.reached());
      for (const { mark, end } of refused) {
        expect(end, mark).to.include("is stopped until");
        expect(reached.has(mark), mark).to.equal(false);
      }

      await order((at + 1) % 3, "kills/release", { scope: "tenant", reason: "seen to" });
      const after = (
        await Promise.all(everywhere.map((index) => site.serves(site.url(index), `after-${round}-${index}`)))
      ).flat();
      const records = await site.expectSettled([...ended, ...raced, ...refused, ...after], at);
      for (const mark of marks) {
        const own = records.filter(({ session }) => session.label === mark);
        expect(own.map(({ effect }) => effect)).to.deep.equal(["dispatched", "unknown"]);
      }
      await site.expectOneChain();
      await site.expectVerified(marks[0] ?? "", at);
    });
  }
});
