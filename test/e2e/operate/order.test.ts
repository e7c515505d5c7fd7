import { expect } from "chai";
import { Agent } from "../../support/agent.ts";
import { startGateway } from "../../support/gateway.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { siteConfig, siteKey } from "../../support/site.ts";

const decisions = ["allow", "review", "block"] as const;
type Decisions = readonly (typeof decisions)[number][];

/** Every order of three rules that are about the same call. */
const orders: readonly Decisions[] = decisions.flatMap((first) =>
  decisions
    .filter((each) => each !== first)
    .map((second) => [first, second, ...decisions.filter((each) => each !== first && each !== second)]),
);

describe("rules that disagree about one call", () => {
  let upstream: Recorder;

  before(async () => {
    upstream = await startRecorder();
  });

  after(() => upstream.stop());

  for (const order of orders) {
    it(`block it in the order ${order.join(", ")}, in one pack and over three [S32]`, async () => {
      const answers = [await answerUnder([order]), await answerUnder(order.map((decision) => [decision]))];
      for (const text of answers) expect(text).to.match(/^Blocked by policy: this is block \(rule p\d\.block\)/);
      expect(await upstream.calls()).to.deep.equal([]);
    });
  }

  it("let it through where the one that blocks is taken away: it is what made the difference", async () => {
    expect(await answerUnder([["allow"]])).not.to.match(/^(Blocked|Held)/);
    expect(await upstream.calls()).to.have.length(1);
  });

  /** The answer to one call under packs whose rules decide as told, in that order. */
  async function answerUnder(packs: readonly Decisions[]): Promise<string> {
    const files = Object.assign({}, ...packs.map((rules, index) => packFiles(`p${index}`, rules)));
    const paths = packs.map((_, index) => `{ path: packs/p${index} }`).join(", ");
    const config = siteConfig({ remoteUrl: upstream.url }).replace("{ path: packs/open }", paths);
    const gateway = await startGateway({ config, files });
    const agent = new Agent(gateway.url, siteKey);
    try {
      const { result } = await agent.call("echo", { mark: "order" });
      return result?.content?.[0]?.text ?? "";
    } finally {
      await agent.hangUp();
      await gateway.stop();
    }
  }
});

function packFiles(name: string, rules: Decisions): Record<string, string> {
  const list = rules.map(
    (decision) => `
  - id: ${name}.${decision}
    title: Says ${decision}
    decision: ${decision}
    match: { tool: [echo, "${decision}-only"] }
    message: this is ${decision}`,
  );
  return {
    [`packs/${name}/pack.yaml`]: `apiVersion: gateway/v1
kind: PolicyPack
metadata: { name: ${name}, version: 1.0.0, title: T, description: D., authors: [a], license: Apache-2.0 }
compatibility: { envelope: 1 }
namespace: ${name}
sequence: 1
issued_at: 2026-01-01T00:00:00Z
`,
    [`packs/${name}/rules/all.yaml`]: `rules:${list.join("")}\n`,
  };
}
