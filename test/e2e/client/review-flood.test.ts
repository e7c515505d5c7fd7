import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { overHttp } from "../../support/held-site.ts";
import { clientKinds, type McpClient, type ToolResult } from "../../support/mcp-client.ts";
import { MoodyUpstream } from "../../support/moody-upstream.ts";
import { openWorld, type World } from "./world.ts";

const rules = `rules:
  - id: test.all
    title: Everything is allowed
    decision: allow
    severity: info
    risk: 0
    match: { phase: [list, input, output] }
    message: allowed
  - id: test.sum
    title: Sums are reviewed
    decision: review
    severity: medium
    risk: 50
    match: { phase: input, tool: get-sum }
    message: sums are reviewed
`;

describe("reviews that a session asks for", () => {
  let upstream: MoodyUpstream;
  let world: World;

  before(async () => {
    upstream = await MoodyUpstream.start();
    upstream.publish(["get-sum", "echo"].map((name) => ({ name, inputSchema: { type: "object" } })));
  });

  after(() => upstream?.stop());

  /** Calls of one client. */
  interface Asking {
    /** Sessions that other agents have had of this gateway. */
    readonly earlier: number;
    readonly client: McpClient;
    /** Asks for that many sums, none like another, none like another client's, and says what came of each. */
    ask(count: number, first?: number): Promise<readonly string[]>;
  }

  /** One gateway, and a session of each client in turn. */
  function withEach(sessions: string, title: string, work: (asking: Asking) => Promise<void>): void {
    describe(title, () => {
      before(async () => {
        world = await openWorld({ upstreams: [overHttp("moody", upstream.url)], rules, more: `sessions: ${sessions}` });
      });

      after(() => world?.stop());

      for (const [earlier, kind] of clientKinds.entries()) {
        it(`with the client ${kind}`, async () => {
          const label = kind === "v1 sse" ? undefined : kind.replace(" ", "-");
          const client = await world.connect(kind, {}, label, world.newAgentKey());
          const ask = async (count: number, first = 0): Promise<readonly string[]> => {
            const said: string[] = [];
            for (let a = first; a < first + count; a++)
              said.push(answerOf(await client.callTool("get-sum", { a, b: earlier })));
            return said;
          };
          await work({ earlier, client, ask });
        });
      }
    });
  }

  withEach(
    "{ review_flood: { reviews: 3 } }",
    "stop it where they are too many: with the one that is too many, and for good [R3.2-11, S57]",
    async ({ earlier, client, ask }) => {
      expect(await ask(5)).to.deep.equal(["Held", "Held", "Held", "Blocked", "Blocked"]);
      const refused = await client.callTool("echo", { message: "allowed until then" });
      expect(refused.content[0]?.text).to.match(/is stopped until an operator or admin .* \(rule session\.killed\)/);
      expect(upstream.calls).to.deep.equal([]);
      const sessions = await new EvidenceReader(world.gateway.adminUrl, world.key).sessions();
      expect(sessions).to.have.length(earlier + 1);
      for (const { review, block } of sessions) expect([review, block]).to.deep.equal([3, 3]);
      expect(await world.evidence.verify()).to.include({ ok: true });
      expect(await kills()).to.include(`gateway_kills_total{scope="session",reason="review_flood"} ${earlier + 1}`);
    },
  );

  withEach("{ review_flood: { reviews: 1 } }", "count once where they are for the same call", async ({ ask }) => {
    for (let time = 0; time < 4; time++) expect(await ask(1)).to.deep.equal(["Held"]);
    expect(await ask(1, 9)).to.deep.equal(["Blocked"]);
  });

  withEach("{}", "stop it at the sixth within five minutes, where nothing is configured", async ({ ask }) => {
    expect(await ask(6)).to.deep.equal([...Array<string>(5).fill("Held"), "Blocked"]);
  });

  withEach(
    "{ review_flood: { reviews: 1, window_seconds: 1 } }",
    "count for as long as the window says",
    async ({ ask }) => {
      expect(await ask(1)).to.deep.equal(["Held"]);
      await sleep(1_100);
      expect(await ask(2, 1)).to.deep.equal(["Held", "Blocked"]);
    },
  );

  withEach("{ review_flood: { reviews: 0 } }", "stop nobody where that is off", async ({ client, ask }) => {
    expect(await ask(12)).to.deep.equal(Array<string>(12).fill("Held"));
    const { isError } = await client.callTool("echo", { message: "goes on" });
    expect(isError ?? false).to.equal(false);
    expect(await kills()).to.include('{scope="session",reason="review_flood"} 0');
  });

  async function kills(): Promise<string> {
    const text = await (await fetch(`${world.gateway.metricsUrl}/metrics`)).text();
    return text
      .split("\n")
      .filter((line) => line.startsWith("gateway_kills_total"))
      .join("\n");
  }
});

/** The first word of a refusal; what an upstream said is none. */
function answerOf({ isError, content }: ToolResult): string {
  return isError === true ? (content[0]?.text?.split(" ")[0] ?? "") : "answered";
}
