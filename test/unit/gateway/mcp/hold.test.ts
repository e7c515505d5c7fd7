import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { Cancellation } from "../../../../core/action/cancellation.ts";
import { uuidV7 } from "../../../../core/action/id.ts";
import { sessionScope } from "../../../../core/action/principal.ts";
import { refusedToolResult } from "../../../../core/gateway/mcp/answer.ts";
import type { OpenRequest } from "../../../../core/gateway/mcp/caller.ts";
import { Hold } from "../../../../core/gateway/mcp/hold.ts";
import { Reply } from "../../../../core/gateway/mcp/reply.ts";
import { ReviewWaits } from "../../../../core/gateway/review-wait.ts";
import type { Refusal } from "../../../../core/http/refusal.ts";
import { type Road, type RunResult, runAction } from "../../../../core/road/run.ts";
import { UpstreamGroup } from "../../../../core/upstream/group.ts";
import { ApprovalWorld, reviewer } from "../../../support/approval-world.ts";
import { makeEvaluation, newAction } from "../../../support/ledger-world.ts";
import type { ToolResult } from "../../../support/mcp-client.ts";
import { roadOf } from "../../../support/road-world.ts";
import { dial } from "../../../support/wire.ts";

describe("Hold", () => {
  let world: ApprovalWorld;
  let server: Server;
  let client: Socket;
  let reply: Reply;
  let road: Road;
  let hold: Hold;
  /** Roads travelled so far. */
  let travelled: number;
  let onApproved: () => void;
  let counts: number[];

  beforeEach(async () => {
    travelled = 0;
    counts = [];
    onApproved = () => undefined;
    world = await ApprovalWorld.create({ onChange: ({ state }) => state === "approved" && onApproved() });
    server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    client = await dial(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    client.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
    const [, response] = (await once(server, "request")) as [unknown, ServerResponse];
    reply = new Reply(response, true);
    const newId = (): string => uuidV7(Date.now(), randomBytes(10));
    hold = new Hold({
      holdMs: 25_000,
      reviewUrl: null,
      book: world.approvals.store,
      newId,
      waits: new ReviewWaits({ book: world.approvals.store, onCount: (count) => counts.push(count) }),
    });
    road = roadOf(
      world,
      {
        evaluate: async (action) => makeEvaluation(action, action.phase === "input" ? "review" : "allow"),
        readsOutput: () => false,
      },
      newId,
    );
  });

  afterEach(async () => {
    hold.stop();
    client.destroy();
    server.close();
    await world.remove();
  });

  /** Resolves once so many calls have come as far as they come without a reviewer. Rejects after 10 s. */
  async function untilTravelled(count: number): Promise<void> {
    for (const end = performance.now() + 60_000; travelled < count; await sleep(10)) {
      if (performance.now() > end) throw new Error(`expected ${count}, got ${travelled}`);
    }
    await sleep(50);
  }

  /** One call of the principal of that name, and whether its answer has come. */
  function call(name: string): { readonly passage: Promise<RunResult<string>>; answered: boolean } {
    const principal = reviewer(name);
    const open: OpenRequest = {
      caller: {
        principal,
        scope: sessionScope("http", "acme", principal.id, "work"),
        client: { name: "test", version: "1", address: "127.0.0.1" },
        era: { era: "legacy" },
        group: new UpstreamGroup([], new Set(), () => undefined),
        session: null,
        ticket: undefined,
        traceparent: undefined,
      },
      request: { jsonrpc: "2.0", id: 1, method: "tools/call", params: {} },
      meta: {},
      reply,
      cancellation: new Cancellation(),
    };
    const action = () => newAction({ principal: { id: principal.id, role: principal.role, keyId: principal.keyId } });
    const run = async (): Promise<RunResult<string>> => {
      const send = async () => ({ status: "success", output: {}, makeReply: () => "ran" }) as const;
      const result = await runAction(road, action(), send);
      travelled++;
      return result;
    };
    const passage = (async (): Promise<RunResult<string>> => {
      const first = await run();
      if (first.kind !== "refused" || first.review?.kind !== "held") return first;
      const refusal = await hold.waitForApproval(open, first, first.review);
      return refusal === "approved" ? run() : refusal;
    })();
    const made = { passage, answered: false };
    void passage.then(() => (made.answered = true));
    return made;
  }

  it("lets 64 calls of a principal wait and 1,000 of all, answers the next at once, and all when it stops", async () => {
    const others = Array.from({ length: 936 }, (_, index) => call(`p${Math.floor(index / 63)}`));
    const own = Array.from({ length: 64 }, () => call("rita"));
    await untilTravelled(1_000);
    const sixtyFifth = await call("rita").passage;
    const next = await call("olaf").passage;
    expect([sixtyFifth, next].map(stateOf)).to.deep.equal(["pending", "pending"]);
    expect([...others, ...own].filter(({ answered }) => answered).length).to.equal(0);
    hold.stop();
    const passages = await Promise.all([...others, ...own].map(({ passage }) => passage));
    expect(new Set(passages.map(stateOf))).to.deep.equal(new Set(["pending"]));
    expect(stateOf(await call("adam").passage)).to.equal("pending");
    expect([Math.max(...counts), counts.at(-1)]).to.deep.equal([1_000, 0]);
  });

  it("answers the calls of those whose key is gone with KEY_UNKNOWN, and no others", async () => {
    const [gone, stays] = [call("gone"), call("stays")];
    await untilTravelled(2);
    hold.endRevoked(({ keyId }) => keyId === "stays");
    const error = await gone.passage.catch((cause: unknown) => cause);
    expect(error).to.include({ code: "KEY_UNKNOWN" });
    expect(stays.answered).to.equal(false);
  });

  it("does not run a call that is given up in the very turn in which it is approved", async () => {
    const given = call("vera");
    await untilTravelled(1);
    onApproved = () => hold.stop();
    await world.approve(world.approvals.store.live.of("acme")[0]?.approval.id ?? "");
    const passage = await given.passage;
    expect([stateOf(passage), travelled]).to.deep.equal(["approved", 1]);
    if (passage.kind === "answered") return;
    const { content } = refusedResult(passage);
    expect(content[0]?.text).to.match(
      /Nothing was executed\. Approval apr_\w+ is given: repeat exactly the same call before \S+Z\./,
    );
  });

  it("says of an approval that ended meanwhile that it did, and asks for nothing by itself", async () => {
    const waiting = call("vera");
    await untilTravelled(1);
    world.pass(1_800_000);
    await world.approvals.expiry.sweep();
    const passage = await waiting.passage;
    expect([stateOf(passage), travelled]).to.deep.equal(["expired", 1]);
    if (passage.kind === "answered") return;
    const { content } = refusedResult(passage);
    expect(content[0]?.text).to.match(
      /Approval apr_\w+ is no longer valid \(not_reviewed_in_time\)\. Repeat the call to have it reviewed anew\./,
    );
  });

  it("runs an approved call once for all that wait for it, and holds the others anew without a wait", async () => {
    const calls = [call("vera"), call("vera")];
    await untilTravelled(2);
    const id = world.approvals.store.live.of("acme")[0]?.approval.id ?? "";
    await world.approve(id);
    const passages = await Promise.all(calls.map(({ passage }) => passage));
    expect(passages.map(({ kind }) => kind).toSorted()).to.deep.equal(["answered", "refused"]);
    expect(passages.map(stateOf)).to.include("pending");
    expect(world.approvals.store.live.of("acme").map(({ approval }) => approval.id)).not.to.include(id);
  });
});

function refusedResult(refusal: Refusal): ToolResult {
  const response = refusedToolResult(1, "legacy", refusal);
  if (!("result" in response)) throw new Error("expected a tool result");
  return response.result as unknown as ToolResult;
}

function stateOf(passage: RunResult<string>): string | undefined {
  if (passage.kind !== "refused" || passage.review?.kind !== "held") return passage.kind;
  return passage.review.approval.state;
}
