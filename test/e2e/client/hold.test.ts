import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { Agent } from "../../support/agent.ts";
import { clientKinds, type Progress } from "../../support/mcp-client.ts";
import { dial, encodeRequest } from "../../support/wire.ts";
import { notes, openHoldingWorld, publish, rules, textOf, waiting } from "./holding-world.ts";
import { Reviewer } from "./reviewer.ts";
import type { World } from "./world.ts";

const blocked = `rules:
  - { id: test.see, title: All may be seen, decision: allow, match: { phase: [list, output] } }
  - { id: test.stop, title: Nothing is noted, decision: block, match: { phase: input, tool: "note*" }, message: no notes now }
`;

/** As the metrics say. */
async function heldCalls({ gateway }: World): Promise<number> {
  const metrics = await (await fetch(`${gateway.metricsUrl}/metrics`)).text();
  return Number(/^gateway_held_calls (\d+)$/m.exec(metrics)?.[1]);
}

describe("a tool call that is held for review", () => {
  describe("where `hold_seconds` is 0, as it is unless told", () => {
    it("is answered at once", async () => {
      const world = await openHoldingWorld("");
      try {
        const client = await world.connect("v1");
        expect(textOf(await client.callTool("note"))).to.match(waiting);
      } finally {
        await world.stop();
      }
    });
  });

  describe("where `hold_seconds` is 1", () => {
    it("is answered after that time, still pending, and approved later it runs when it is repeated [R3.1-4]", async () => {
      const world = await openHoldingWorld("hold_seconds: 1");
      try {
        const [client, reviewer] = [await world.connect("v1"), new Reviewer(world)];
        const call = client.callTool("note");
        while ((await heldCalls(world)) !== 1) await sleep(10);
        const [, id = ""] = waiting.exec(textOf(await call)) ?? [];
        expect(notes(world)).to.equal(0);
        await reviewer.approve(id);
        await sleep(200);
        expect(notes(world)).to.equal(0);
        expect((await client.callTool("note")).isError ?? false).to.equal(false);
        expect(notes(world)).to.equal(1);
      } finally {
        await world.stop();
      }
    });
  });

  describe("where `hold_seconds` is 20", () => {
    let world: World;
    let reviewer: Reviewer;

    before(async () => {
      world = await openHoldingWorld("hold_seconds: 20");
      reviewer = new Reviewer(world);
    });

    after(() => world?.stop());

    beforeEach(() => reviewer.clear());

    for (const kind of clientKinds) {
      it(`runs for ${kind} once it is approved, as an action of its own, and tells of the wait`, async () => {
        const [client, before] = [await world.connect(kind), notes(world)];
        await client.listTools();
        const told: Progress[] = [];
        const call = client.callTool("note", { text: kind }, { onProgress: (progress) => void told.push(progress) });
        const { id } = await reviewer.awaitPending();
        await sleep(2_200);
        expect(notes(world)).to.equal(before);
        await reviewer.approve(id);
        expect((await call).isError ?? false).to.equal(false);
        expect(notes(world)).to.equal(before + 1);
        expect(told.map(({ message }) => message)).to.deep.equal(told.map(() => `waiting for review of ${id}`));
        expect(told.length).to.be.at.least(2);
        expect(told[1]?.progress)
          .to.be.above(told[0]?.progress ?? 1)
          .and.below(1);
        const records = await world.evidence.recordsOf();
        const [held, used, outcome] = records.toSorted((a, b) => a.seq - b.seq).slice(-3);
        expect([held, used, outcome].map((record) => [record?.kind, record?.effect])).to.deep.equal([
          ["decision", "not_dispatched"],
          ["decision", "dispatched"],
          ["outcome", "success"],
        ]);
        expect([held?.approval?.id, held?.approval?.state]).to.deep.equal([id, "pending"]);
        expect([used?.approval?.id, used?.approval?.state]).to.deep.equal([id, "consumed"]);
        expect(used?.action.id).not.to.equal(held?.action.id);
      });

      it(`says to ${kind} that it was denied, and does not run`, async () => {
        const [client, before] = [await world.connect(kind), notes(world)];
        const call = client.callTool("note", { text: `no, ${kind}` });
        const { id } = await reviewer.awaitPending();
        await reviewer.deny(id, "not today");
        const result = await call;
        expect(result.isError).to.equal(true);
        expect(textOf(result)).to.include(`A reviewer denied approval ${id}: "not today". Do not repeat this call.`);
        expect(notes(world)).to.equal(before);
      });

      it(`is not run for ${kind} when it is approved after it was cancelled`, async () => {
        const [client, before] = [await world.connect(kind), notes(world)];
        await client.listTools();
        const abort = new AbortController();
        const call = client.callTool("note", { text: `cancelled, ${kind}` }, { signal: abort.signal });
        const ended = call.then(
          () => "answered",
          () => "cancelled",
        );
        const { id } = await reviewer.awaitPending();
        abort.abort();
        expect(await ended).to.equal("cancelled");
        await sleep(200);
        await reviewer.approve(id);
        await sleep(300);
        expect(notes(world)).to.equal(before);
        expect((await client.callTool("note", { text: `cancelled, ${kind}` })).isError ?? false).to.equal(false);
        expect(notes(world)).to.equal(before + 1);
      });
    }

    for (const place of [1, 2]) {
      it(`is not run when it is approved after its connection closed, as request ${place} on it`, async () => {
        const before = notes(world);
        const socket = await dial(world.gateway.url);
        const body = JSON.stringify({
          jsonrpc: "2.0",
          id: 1,
          method: "tools/call",
          params: { name: "note", arguments: { place } },
        });
        const headers = [
          ["x-api-key", world.key],
          ["content-type", "application/json"],
          ["connection", "keep-alive"],
        ] as const;
        const ask = encodeRequest(world.gateway.url, { method: "POST", target: "/mcp", headers, body });
        socket.write(Buffer.concat(Array.from({ length: place }, () => Buffer.from(ask))));
        const { id } = await reviewer.awaitPending();
        await sleep(200);
        socket.destroy();
        await sleep(200);
        await reviewer.approve(id);
        await sleep(300);
        expect(notes(world)).to.equal(before);
        expect((await reviewer.list("approved")).map((approval) => approval.id)).to.include(id);
      });
    }

    it("is run for one of 64 equal ones that wait together; the others are held anew, and a 65th did not wait", async () => {
      const before = notes(world);
      const agents = Array.from({ length: 65 }, () => new Agent(world.gateway.url, world.key));
      const first = agents[0] as Agent;
      const calls = [first.call("note", { text: "equal" })];
      const { id } = await reviewer.awaitPending();
      for (const agent of agents.slice(1)) calls.push(agent.call("note", { text: "equal" }));
      const early = await Promise.race(calls);
      expect(waiting.exec(textOf(early.result))?.[1]).to.equal(id);
      expect(await heldCalls(world)).to.equal(64);
      await reviewer.approve(id);
      const answers = await Promise.all(calls);
      await Promise.all(agents.map((agent) => agent.hangUp()));
      const ran = answers.filter(({ result }) => result?.isError !== true);
      expect([ran.length, notes(world) - before]).to.deep.equal([1, 1]);
      const pending = answers.flatMap(({ result }) => waiting.exec(textOf(result))?.[1] ?? []);
      expect(pending.filter((each) => each === id).length).to.equal(1);
      expect([pending.length, new Set(pending).size]).to.deep.equal([64, 2]);
      expect(await heldCalls(world)).to.equal(0);
    });

    it("is void when its tool's definition changed meanwhile: it is held anew [S55]", async () => {
      const [client, before] = [await world.connect("v1"), notes(world)];
      await client.listTools();
      const call = client.callTool("note", { text: "changed" });
      const { id } = await reviewer.awaitPending();
      await publish(world, { description: "Sends the note to everybody." });
      await client.callTool("publish");
      await sleep(300);
      await reviewer.approve(id);
      const text = textOf(await call);
      expect(text).to.include(`Approval ${id} is no longer valid (tool_changed).`);
      expect(waiting.exec(text)?.[1]).not.to.equal(id);
      expect(notes(world)).to.equal(before);
      await publish(world, {});
    });

    /** Changes a file, and resolves once the gateway has it in force. */
    async function reload(change: () => Promise<void>): Promise<void> {
      const before = world.gateway.stderr().length;
      await change();
      world.gateway.process.kill("SIGHUP");
      while (!world.gateway.stderr().slice(before).includes("configuration_reloaded")) await sleep(20);
    }

    it("is refused, and not run, when its key is taken away meanwhile", async () => {
      const [before, file] = [notes(world), join(world.gateway.folder, "gateway.yaml")];
      const agent = new Agent(world.gateway.url, world.reviewerKey);
      const call = agent.call("note", { text: "whose key?" });
      await reviewer.awaitPending();
      const config = await readFile(file, "utf8");
      await reload(() => writeFile(file, config.replace(/^.*id: reviewer.*$/m, "")));
      const { status, error } = await call;
      expect([status, error?.data?.code]).to.deep.equal([401, "KEY_UNKNOWN"]);
      await agent.hangUp();
      await reload(() => writeFile(file, config));
      expect(notes(world)).to.equal(before);
    });

    it("is blocked when policy changed meanwhile, though it is approved", async () => {
      const [client, before] = [await world.connect("v2 modern"), notes(world)];
      const call = client.callTool("note", { text: "blocked" });
      const { id } = await reviewer.awaitPending();
      await reload(() => writeFile(join(world.gateway.folder, "packs/test/rules/rules.yaml"), blocked));
      await reviewer.approve(id);
      const result = await call;
      expect(textOf(result)).to.include("Blocked by policy: no notes now (rule test.stop). Nothing was executed.");
      expect(notes(world)).to.equal(before);
      await reload(() => writeFile(join(world.gateway.folder, "packs/test/rules/rules.yaml"), rules));
    });

    it("is refused, and not run, when its session is stopped meanwhile", async () => {
      const before = notes(world);
      const agent = new Agent(world.gateway.url, world.key, "doomed");
      const call = agent.call("note", { text: "stopped" });
      const { id, session } = await reviewer.awaitPending();
      await reviewer.killSession(session.id);
      expect((await call).error?.data?.code).to.equal("SESSION_KILLED");
      await reviewer.approve(id);
      await sleep(200);
      expect(notes(world)).to.equal(before);
      await agent.hangUp();
      // It stops the other sessions of its principal as well.
      await reviewer.releaseSession(session.id);
    });

    // The last one: it ends the gateway.
    it("is answered as it stands when the gateway stops, which waits for no reviewer", async () => {
      const before = notes(world);
      const agent = new Agent(world.gateway.url, world.key);
      const call = agent.call("note", { text: "stop" });
      const { id } = await reviewer.awaitPending();
      const stopped = world.gateway.stop();
      expect(waiting.exec(textOf((await call).result))?.[1]).to.equal(id);
      expect(await stopped).to.equal(0);
      expect(notes(world)).to.equal(before);
      await agent.hangUp();
    });
  });
});
