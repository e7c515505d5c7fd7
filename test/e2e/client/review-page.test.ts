import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import {
  awaitNotification,
  type ClientKind,
  type ClientSide,
  clientKinds,
  handshakeKinds,
  type McpClient,
  type ToolResult,
} from "../../support/mcp-client.ts";
import { notes, openHoldingWorld, textOf, waiting } from "./holding-world.ts";
import { Reviewer } from "./reviewer.ts";
import type { World } from "./world.ts";

const reviewUrl = 'review_url: "https://review.example/approvals/{id}?from=agent"';
const ownKey = "io.agent-governance-gateway/review/apr_00000000000000000000000000000000";

/** A client whose user answers each page with `answer`, and the pages it was asked to open. */
async function connect(
  world: World,
  kind: ClientKind,
  answer: () => JsonObject | Promise<JsonObject>,
): Promise<{ client: McpClient; pages: readonly JsonObject[] }> {
  const pages: JsonObject[] = [];
  const page = ({ _meta, ...asked }: JsonObject): ReturnType<typeof answer> => {
    pages.push(asked);
    return answer();
  };
  const client = await world.connect(kind, { page });
  await client.listTools();
  return { client, pages };
}

describe("the page where people review, for a client that opens URLs", () => {
  describe("where calls are held for 20 s", () => {
    let world: World;
    let reviewer: Reviewer;

    before(async () => {
      world = await openHoldingWorld(`hold_seconds: 20, ${reviewUrl}`);
      reviewer = new Reviewer(world);
    });

    after(() => world?.stop());

    beforeEach(() => reviewer.clear());

    for (const kind of clientKinds) {
      it(`is shown by ${kind} once, and grants nothing: the call runs when it is approved`, async () => {
        const before = notes(world);
        const { client, pages } = await connect(world, kind, () => ({ action: "accept" }));
        const call = client.callTool("note", { text: kind });
        const { id } = await reviewer.awaitPending();
        await sleep(500);
        const { elicitationId, ...page } = pages[0] ?? {};
        expect(pages.length).to.equal(1);
        expect(page).to.deep.equal({
          mode: "url",
          message: `\`note\` on \`notes\` waits for review (${id}). Open the page where it is reviewed?`,
          url: `https://review.example/approvals/${id}?from=agent`,
        });
        expect(elicitationId === undefined).to.equal(kind === "v2 modern");
        expect([notes(world), (await reviewer.list())[0]?.state]).to.deep.equal([before, "pending"]);
        await reviewer.approve(id);
        expect((await call).isError ?? false).to.equal(false);
        expect([notes(world), pages.length]).to.deep.equal([before + 1, 1]);
        expect(Object.keys(world.calls("notes").at(-1)?.params ?? {})).not.to.include("inputResponses");
        if (kind === "v2 modern") return;
        const complete = await awaitNotification(
          client,
          ({ method }) => method === "notifications/elicitation/complete",
        );
        expect(complete.params).to.deep.equal({ elicitationId });
      });

      for (const action of ["decline", "cancel"]) {
        it(`ends the wait of ${kind} when its user says ${action}, and what was filled in counts for nothing`, async () => {
          const before = notes(world);
          const { client, pages } = await connect(world, kind, () => ({ action, content: { approve: true } }));
          const [, id = ""] = waiting.exec(textOf(await client.callTool("note", { text: action, kind }))) ?? [];
          expect([pages.length, (await reviewer.awaitPending()).id]).to.deep.equal([1, id]);
          await reviewer.approve(id);
          await sleep(200);
          expect(notes(world)).to.equal(before);
        });
      }

      it(`is not asked of ${kind} where it opens none, whatever else it can be asked`, async () => {
        let asked = 0;
        const elicitation: ClientSide["elicitation"] = () => ({ action: "decline", asked: ++asked });
        const client = await world.connect(kind, { elicitation });
        const call = client.callTool("note", { text: `no page, ${kind}` });
        const { id } = await reviewer.awaitPending();
        await sleep(200);
        await reviewer.approve(id);
        expect([(await call).isError ?? false, asked]).to.deep.equal([false, 0]);
      });
    }

    for (const kind of handshakeKinds) {
      it(`is shown by ${kind} once for equal calls, and closed when it is decided before it is answered`, async () => {
        const before = notes(world);
        const { client, pages } = await connect(world, kind, () => new Promise(() => undefined));
        const calls = [1, 2, 3].map(() => client.callTool("note", { text: `equal, ${kind}` }));
        const { id } = await reviewer.awaitPending();
        await sleep(300);
        await reviewer.approve(id);
        const results = await Promise.all(calls);
        expect(results.filter(({ isError }) => isError !== true).length).to.equal(1);
        expect([notes(world), pages.length]).to.deep.equal([before + 1, 1]);
        const complete = await awaitNotification(
          client,
          ({ method }) => method === "notifications/elicitation/complete",
        );
        expect(complete.params).to.deep.equal({ elicitationId: pages[0]?.elicitationId });
      });
    }

    it("says nothing to the upstream, whatever a stateless client answers", async () => {
      const answer = { action: "accept" };
      await callStateless(world, "publish", { [ownKey]: answer, "other/1": answer });
      expect(world.calls("notes").at(-1)?.params?.inputResponses).to.deep.equal({ "other/1": answer });
      await callStateless(world, "publish", { [ownKey]: answer });
      expect(Object.keys(world.calls("notes").at(-1)?.params ?? {})).not.to.include("inputResponses");
    });
  });

  describe("where calls are not held", () => {
    let world: World;
    let reviewer: Reviewer;

    before(async () => {
      world = await openHoldingWorld(reviewUrl);
      reviewer = new Reviewer(world);
    });

    after(() => world?.stop());

    beforeEach(() => reviewer.clear());

    for (const kind of clientKinds) {
      it(`is shown by ${kind} before the answer, which does not wait for the review`, async () => {
        const before = notes(world);
        const { client, pages } = await connect(world, kind, () => ({ action: "accept" }));
        const [, id = ""] = waiting.exec(textOf(await client.callTool("note", { text: kind }))) ?? [];
        expect(pages.map(({ url }) => url)).to.deep.equal([`https://review.example/approvals/${id}?from=agent`]);
        await sleep(200);
        await reviewer.approve(id);
        if (kind !== "v2 modern") {
          const complete = await awaitNotification(
            client,
            ({ method }) => method === "notifications/elicitation/complete",
          );
          expect(complete.params).to.deep.equal({ elicitationId: pages[0]?.elicitationId });
        }
        expect(notes(world)).to.equal(before);
        expect((await client.callTool("note", { text: kind })).isError ?? false).to.equal(false);
        expect([notes(world), pages.length]).to.deep.equal([before + 1, 1]);
      });
    }

    it("is not asked for by an answer to a stateless call that continues another", async () => {
      const answered = await callStateless(world, "note", { "other/1": { action: "accept" } });
      expect(answered.resultType).to.equal("complete");
      expect(textOf(answered)).to.match(waiting);
    });
  });

  describe("where `review_url` is not set", () => {
    it("is nowhere: nobody is asked", async () => {
      const world = await openHoldingWorld("hold_seconds: 1");
      try {
        for (const kind of clientKinds) {
          const { client, pages } = await connect(world, kind, () => ({ action: "accept" }));
          expect(textOf(await client.callTool("note", { text: kind }))).to.match(waiting);
          expect(pages).to.deep.equal([]);
        }
      } finally {
        await world.stop();
      }
    });
  });
});

/** One call of the stateless revision, with answers to what some earlier one asked. */
async function callStateless(
  { endpoint }: World,
  name: string,
  inputResponses: JsonObject,
): Promise<ToolResult & { readonly resultType?: string }> {
  if (!("url" in endpoint)) throw new TypeError("expected an endpoint with a URL");
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": { elicitation: { url: {} } },
  };
  const headers = {
    ...endpoint.headers,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": name,
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, inputResponses, _meta } });
  const response = await fetch(endpoint.url, { method: "POST", headers, body });
  return ((await response.json()) as { result: ToolResult }).result;
}
