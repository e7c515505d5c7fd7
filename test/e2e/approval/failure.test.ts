import { expect } from "chai";
import type { Answer } from "../../support/agent.ts";
import { HeldSite, overHttp, textOf, toldOf } from "../../support/held-site.ts";
import { type Mood, MoodyUpstream, moods } from "../../support/moody-upstream.ts";

/** What goes wrong, and the code it has; null where the upstream's own words are handed on. */
const failures: readonly (readonly [what: string, mood: Mood, code: string | null])[] = [
  ["refuses", moods.refuses, null],
  ["answers that the tool failed", moods.answersIsError, null],
  ["is down", moods.answers503, "UPSTREAM_UNAVAILABLE"],
  ["resets the connection", moods.resets, "UPSTREAM_UNAVAILABLE"],
  ["does not answer in time", moods.hangs, "UPSTREAM_TIMEOUT"],
  ["dies in the middle of a stream", moods.diesInTheMiddle, "UPSTREAM_UNAVAILABLE"],
  ["dies in the middle of its answer", moods.diesInTheBody, "UPSTREAM_UNAVAILABLE"],
  ["talks nonsense", moods.talksNonsense, "UPSTREAM_INVALID"],
  ["answers another request", moods.answersAnother, "UPSTREAM_INVALID"],
];

/** Where the gate consumed an approval only after an answer, every one of these calls would run twice. */
describe("an approved call whose upstream", () => {
  let upstream: MoodyUpstream;
  let site: HeldSite;

  before(async () => {
    upstream = await MoodyUpstream.start();
    site = new HeldSite({ upstreams: [overHttp("moody", upstream.url, ", timeout_ms: 1000, max_timeout_ms: 1000")] });
    await site.start();
    await site.call("echo", { warm: true });
  });

  after(async () => {
    await site.stop();
    upstream.stop();
  });

  for (const [what, mood, code] of failures) {
    it(`${what} has used up its approval, says so, and is held anew [S47] [R3.1-6]`, async () => {
      upstream.mood = mood;
      const args = { what };
      const id = await site.holdAndApprove("echo", args);
      const before = upstream.calls.length;
      const failed = await site.call("echo", args);
      expect(upstream.calls.slice(before)).to.deep.equal([{ name: "echo", arguments: args }]);
      expectSaid(failed, id, code);
      expect((await site.show(id)).state).to.equal("consumed");
      upstream.mood = moods.answers;
      const again = await site.call("echo", args);
      const { approval, former_approval: former } = toldOf(again);
      expect(former).to.deep.equal({ id, state: "consumed", reason: null });
      expect(approval?.id).not.to.equal(id);
      expect(textOf(again)).to.contain(
        `Approval ${id} was good for one use and is used up. Approval ${approval?.id} is`,
      );
      expect(upstream.calls.length).to.equal(before + 1);
      await site.approve(approval?.id ?? "");
      expect((await site.call("echo", args)).result?.isError).to.equal(undefined);
    });
  }
});

describe("an approved call whose answer policy withholds", () => {
  it("has used up its approval, and says so [S47]", async () => {
    const upstream = await MoodyUpstream.start();
    const site = new HeldSite({ upstreams: [overHttp("moody", upstream.url)], rules: withholdAnswers });
    await site.start();
    try {
      const id = await site.holdAndApprove("echo", { to: "me" });
      const withheld = await site.call("echo", { to: "me" });
      expect(toldOf(withheld)).to.deep.include({ executed: true, approval: { id, state: "consumed" } });
      expect(textOf(withheld)).to.contain(`policy withheld its answer`).and.contain(`Approval ${id} is used up.`);
      expect(toldOf(await site.call("echo", { to: "me" }))).to.deep.include({ executed: false });
      expect(upstream.calls).to.have.length(1);
    } finally {
      await site.stop();
      upstream.stop();
    }
  });
});

const withholdAnswers = `rules:
  - id: open.answer
    title: No answer is returned
    decision: block
    severity: high
    risk: 80
    match: { phase: output, tool: echo }
    message: it stays here
`;

function expectSaid({ result, error }: Answer, id: string, code: string | null): void {
  if (code === null) {
    expect(result?.isError ?? error?.message).to.be.oneOf([true, "refused"]);
    return;
  }
  const data = error?.data as { readonly code?: string; readonly approval?: object } | undefined;
  expect(data).to.deep.include({ code, approval: { id, state: "consumed" } });
  expect(error?.message).to.contain(`approval \`${id}\` is used up, a new one is needed`);
}
