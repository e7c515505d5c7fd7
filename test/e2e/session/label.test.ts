import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { textOf } from "../../support/held-site.ts";
import { TaskWorld } from "../../support/task-world.ts";

const rules = `rules:
  - { id: open.ask, title: Asked, decision: review, session_risk: 0, match: { phase: input, tool: echo }, when: has(args.ask), message: asked }
  - { id: open.risky, title: Risky, decision: allow, session_risk: 20, match: { phase: input, tool: echo }, when: has(args.risky), message: risky }
  - { id: open.reads, title: Reads, decision: allow, taints: [seen], match: { phase: input, tool: echo }, when: has(args.reads), message: reads }
  - id: open.sends
    title: Who read sends nothing
    decision: block
    session_risk: 0
    match: { phase: input, tool: echo }
    when: has(args.sends) && session_state.taints.exists(t, t.name == "seen")
    message: it read
`;
const noFlood = "review_flood: { reviews: 0 }, risk: { kill_at: 0 }";

describe("another label of a principal [S57] [S79]", () => {
  let world: TaskWorld;

  afterEach(() => world?.stop());

  /** One call under each label, in turn: the first word of what is said. */
  async function callUnder(labels: readonly (string | undefined)[], args: object = {}): Promise<readonly string[]> {
    const said: string[] = [];
    for (const [turn, label] of labels.entries()) {
      const answer = await world.agent("agent", label).call("echo", { ...args, turn, label });
      said.push(
        textOf(answer).split(" ")[0] === "Held" ? "Held" : answer.result?.isError === true ? "Blocked" : "answered",
      );
    }
    return said;
  }

  async function change(label: string, what: "kill" | "release"): Promise<void> {
    const session = (await world.evidence.sessions()).find((each) => each.label === label);
    const { status } = await world.admin("POST", `/admin/v1/sessions/${session?.id}/${what}`, "owner", {
      ...(what === "release" ? { reason: "seen to" } : {}),
    });
    expect(status).to.equal(200);
  }

  const labels = (count: number): readonly string[] => Array.from({ length: count }, (_, n) => `label-${n}`);

  it("does not run while a session is stopped, says which and why, after a crash too, and runs once it is released", async () => {
    world = await TaskWorld.open(noFlood, rules);
    expect(await callUnder(["one", "two"])).to.deep.equal(["answered", "answered"]);
    await change("one", "kill");
    expect(await callUnder(["one", "two", "new", undefined])).to.deep.equal(Array(4).fill("Blocked"));
    await world.crash();
    expect(await callUnder(["one", "two", "new"])).to.deep.equal(Array(3).fill("Blocked"));
    expect(await world.reached()).to.equal(2);
    const refused = textOf(await world.agent("agent", "new").call("echo", {}));
    expect(refused).to.match(
      /session `session-v1-\w+` is stopped until an operator .* every other session of this principal/s,
    );
    expect(textOf(await world.agent("other", "elsewhere").call("echo", {}))).to.not.include("is stopped");
    await change("one", "release");
    expect(await callUnder(["one", "two", "new"])).to.deep.equal(Array(3).fill("answered"));
    expect(await world.evidence.verify()).to.include({ ok: true });
  });

  it("is cancelled upstream with the session that is stopped", async () => {
    world = await TaskWorld.open(noFlood, rules);
    await callUnder(["one", "two"]);
    const call = world.agent("agent", "two").call("echo", { mark: "in flight", wait_ms: 60_000 });
    while (!(await world.recorder.calls()).some(({ body }) => body.includes("in flight"))) await sleep(10);
    await change("one", "kill");
    expect((await call).error).to.include({ code: 1403 });
  });

  it("is no way around the review flood: of 30 held calls with a label each, five wait", async () => {
    world = await TaskWorld.open("risk: { kill_at: 0 }", rules);
    const said = await callUnder(labels(30), { ask: true });
    expect(said).to.deep.equal([...Array(5).fill("Held"), ...Array(25).fill("Blocked")]);
    expect(await world.reached()).to.equal(0);
    const { body } = await world.admin("GET", "/admin/v1/approvals?limit=100");
    expect((body as { items?: readonly unknown[] }).items).to.have.length(5);
  });

  it("has the risk of all: the principal is stopped at the threshold that one session has", async () => {
    world = await TaskWorld.open("review_flood: { reviews: 0 }", rules);
    const said = await callUnder(labels(6), { risky: true });
    expect(said).to.deep.equal([...Array(3).fill("answered"), ...Array(3).fill("Blocked")]);
    expect(await callUnder(["calm"])).to.deep.equal(["Blocked"]);
    expect(await world.reached()).to.equal(3);
  });

  it("is tainted by what another one read, after a crash too", async () => {
    world = await TaskWorld.open(noFlood, rules);
    expect(await callUnder(["clean"], { sends: "hello" })).to.deep.equal(["answered"]);
    await callUnder(["reader"], { reads: true });
    expect(await callUnder(["new", "clean", undefined], { sends: "secret" })).to.deep.equal(Array(3).fill("Blocked"));
    await world.crash();
    expect(await callUnder(["newer"], { sends: "secret" })).to.deep.equal(["Blocked"]);
    expect((await world.recorder.calls()).some(({ body }) => body.includes("secret"))).to.equal(false);
  });

  it("has what is left of `max_actions`, after a crash too", async () => {
    world = await TaskWorld.open(noFlood, rules);
    await world.declare({ max_actions: 3 });
    expect(await callUnder(labels(2))).to.deep.equal(["answered", "answered"]);
    await world.crash();
    expect(await callUnder(["a", "b", "c"])).to.deep.equal(["answered", "Blocked", "Blocked"]);
    expect(await world.reached()).to.equal(3);
  });

  it("lets no more through than `max_actions`, however many labels come at once", async () => {
    world = await TaskWorld.open(noFlood, rules);
    await world.declare({ max_actions: 10 });
    await Promise.all(labels(60).map((label) => world.agent("agent", label).call("echo", { label })));
    expect(await world.reached()).to.be.within(1, 10);
  });

  it("is a session of its own where a manifest gives it a task of its own", async () => {
    world = await TaskWorld.open("review_flood: { reviews: 2 }", rules);
    for (const label of ["a", "b"]) await world.declare({ task: label, session: label, max_actions: 20 });
    await callUnder(["a", "a", "a"], { risky: true });
    await callUnder(["a"], { reads: true });
    expect(await callUnder(["b"], { sends: "b" }), "no taint of a's").to.deep.equal(["answered"]);
    expect(await callUnder(["b", "b", "b"], { risky: true }), "no risk of a's").to.deep.equal(
      Array(3).fill("answered"),
    );
    expect(await callUnder(["a", "b", "a", "b"], { ask: true })).to.deep.equal(Array(4).fill("Held"));
    expect(await callUnder(["a", "a"], { ask: "one more" }), "a floods").to.deep.equal(["Blocked", "Blocked"]);
    expect(await callUnder(["b", "new"]), "a is stopped").to.deep.equal(["answered", "Blocked"]);
    await change("a", "release");
    expect(await callUnder(["a", "b", "new"])).to.deep.equal(Array(3).fill("answered"));
  });

  it("cannot do without a task where `sessions.require_task` says so, and can where it does not", async () => {
    for (const [required, expected] of [
      ["true", "Blocked"],
      ["false", "answered"],
    ] as const) {
      world = await TaskWorld.open(`${noFlood}, require_task: ${required}`, rules);
      await world.declare({ session: "work" });
      expect(await callUnder(["work", "play"])).to.deep.equal(["answered", expected]);
      expect(await world.reached()).to.equal(expected === "Blocked" ? 1 : 2);
      const listed = await world.agent("agent", "play").send("tools/list");
      expect(listed.error, "tools are listed").to.equal(undefined);
      if (required === "true") {
        const refused = textOf(await world.agent("agent", "play").call("echo", {}));
        expect(refused).to.include("expected a session that works on a task").and.include("session.task_required");
        await world.stop();
      }
    }
  });
});
