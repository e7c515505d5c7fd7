import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { ActionEnvelope } from "../../../../core/action/envelope.ts";
import { uuidV7 } from "../../../../core/action/id.ts";
import type { JsonObject } from "../../../../core/action/json.ts";
import type { JsonRpcNotification } from "../../../../core/action/json-rpc.ts";
import type { Verdict } from "../../../../core/action/policy.ts";
import { NotificationLane, relayNotification } from "../../../../core/gateway/mcp/notification.ts";
import { PolicyChain } from "../../../../core/policy/chain.ts";
import { ActionFactory, UntrustedSources } from "../../../../core/road/action-factory.ts";
import { ApprovalWorld } from "../../../support/approval-world.ts";
import { newAction } from "../../../support/ledger-world.ts";
import { roadOf } from "../../../support/road-world.ts";

const newId = (): string => uuidV7(Date.now(), randomBytes(10));
const allow: Verdict = { decision: "allow", findings: [], risk: 0 };
const message = (data: string): JsonRpcNotification => note("notifications/message", { data });

function note(method: string, params: JsonObject): JsonRpcNotification {
  return { jsonrpc: "2.0", method, params };
}

describe("relayNotification(parts, lane, told)", () => {
  let world: ApprovalWorld;
  let lane: NotificationLane;
  let abort: AbortController;
  let told: JsonRpcNotification[];
  let dropped: string[];
  /** What policy was asked about. */
  let judged: unknown[];

  beforeEach(async () => {
    world = await ApprovalWorld.create({});
    [lane, abort] = [new NotificationLane(), new AbortController()];
    [told, dropped, judged] = [[], [], []];
  });

  afterEach(() => world.remove());

  /** Relays under one policy, whose answers may take 50 ms at most. */
  function relay(notes: readonly JsonRpcNotification[], answer: (asked: ActionEnvelope) => Promise<Verdict>): void {
    const ref = { kind: "external", name: "one", version: "1", digest: "", signer: null } as const;
    const evaluate = (asked: ActionEnvelope): Promise<Verdict> => {
      judged.push(asked.output);
      return answer(asked);
    };
    const road = roadOf(
      world,
      new PolicyChain({
        policies: [{ ref, mode: "enforce", evaluate }],
        defaultDecision: "block",
        deadlineMs: 50,
        newId,
        elapsedMs: () => performance.now(),
      }),
      newId,
    );
    const parts = {
      road,
      actions: new ActionFactory("mcp", Date.now, newId, {
        untrusted: new UntrustedSources([]),
        tasks: { taskOf: () => null },
      }),
      onDropped: ({ reason }: { readonly reason: string }): void => void dropped.push(reason),
    };
    const action = newAction();
    for (const each of notes) {
      const deliver = (left: JsonRpcNotification): void => void told.push(left);
      relayNotification(parts, lane, {
        upstream: "files",
        note: each,
        untrusted: false,
        action: () => action,
        deliver,
        signal: abort.signal,
      });
    }
  }

  it("drops what is held for review, what is blocked, and what no policy answers in time", async () => {
    const answers: Readonly<Record<string, () => Promise<Verdict>>> = {
      review: async () => ({ ...allow, decision: "review" }),
      block: async () => ({ ...allow, decision: "block" }),
      never: () => new Promise(() => undefined),
      fails: () => Promise.reject(new Error("no")),
      allow: async () => allow,
    };
    relay(Object.keys(answers).map(message), async ({ output }) =>
      (answers[(output as { data: string }).data] as () => Promise<Verdict>)(),
    );
    await lane.settled;
    expect(told).to.deep.equal([message("allow")]);
    expect(dropped).to.deep.equal(["policy", "policy", "policy", "policy"]);
  });

  it("keeps the order where a later one needs no judgement", async () => {
    const changed: JsonRpcNotification = { jsonrpc: "2.0", method: "notifications/tools/list_changed" };
    relay([message("slow"), changed], async () => {
      await sleep(20);
      return allow;
    });
    expect(told).to.deep.equal([]);
    await lane.settled;
    expect(told).to.deep.equal([message("slow"), changed]);
    expect(judged.length).to.equal(1);
  });

  it("judges a progress token in all but progress, where it is the client's own", async () => {
    const params = { progressToken: "t", progress: 1 };
    const notes = [note("notifications/progress", params), note("notifications/message", params)];
    relay(notes, async () => allow);
    await lane.settled;
    expect(judged).to.deep.equal([{ progress: 1 }, params]);
    expect(told).to.deep.equal(notes);
  });

  it("drops what has no room", async () => {
    relay(
      Array.from({ length: 1_030 }, () => message("one")),
      async () => allow,
    );
    await lane.settled;
    expect([told.length, dropped]).to.deep.equal([1_024, Array.from({ length: 6 }, () => "full")]);
  });

  it("tells nothing once its client is to be told nothing more", async () => {
    relay([message("judged meanwhile"), message("waits")], async () => {
      abort.abort();
      return allow;
    });
    await lane.settled;
    expect(told).to.deep.equal([]);
    expect(judged.length).to.equal(1);
  });

  it("ends what clients have no use for", () => {
    relay([note("notifications/cancelled", { requestId: 1 })], async () => allow);
    expect([told, dropped, lane.idle]).to.deep.equal([[], [], true]);
  });
});
