import { expect } from "chai";
import { textOf } from "../../support/held-site.ts";
import { TaskWorld } from "../../support/task-world.ts";

describe("drift from a task's manifest", () => {
  let world: TaskWorld;

  afterEach(() => world?.stop());

  async function callAll(count: number, label?: string): Promise<readonly string[]> {
    const agent = world.agent("agent", label);
    const said: string[] = [];
    for (let turn = 0; turn < count; turn++) said.push(firstWord(textOf(await agent.call("echo", { turn }))));
    return said;
  }

  it("adds up to the session's risk, and stops it at the threshold [R2.5-3, R3.2-9, R3.2-10]", async () => {
    world = await TaskWorld.open("review_flood: { reviews: 0 }");
    await world.declare({ expected_tools: ["files/deep"] });
    // 20 points each: the fourth comes to 80.
    expect(await callAll(5)).to.deep.equal(["Held", "Held", "Held", "Blocked", "Blocked"]);
    const refused = textOf(await world.agent().call("echo", { turn: "later" }));
    expect(refused).to.match(/is stopped until .*session\.killed/s);
    expect(await world.reached()).to.equal(0);
    expect(await world.metric("gateway_kills_total")).to.include('{scope="session",reason="risk"} 1');
    expect(await world.evidence.verify()).to.include({ ok: true });
  });

  it("adds nothing where it stays below, and nothing for what is expected [R3.2-9]", async () => {
    world = await TaskWorld.open("review_flood: { reviews: 0 }");
    await world.declare({ expected_tools: ["files/deep"] });
    expect(await callAll(3)).to.deep.equal(["Held", "Held", "Held"]);
    await world.declare({ expected_tools: ["files/echo"] });
    expect(await callAll(20)).to.deep.equal(Array<string>(20).fill("answered"));
  });

  it("is only recorded in shadow mode, whichever says so, and adds no risk [R3.2-12, S63]", async () => {
    world = await TaskWorld.open("drift: { mode: shadow }, review_flood: { reviews: 0 }");
    await world.declare({ expected_tools: [], write_domains: [], max_actions: 2 });
    expect(await callAll(8)).to.deep.equal(Array<string>(8).fill("answered"));
    expect(await world.reached()).to.equal(8);
    await world.declare({ task: "strict", session: "strict", expected_tools: [], mode: "enforce" });
    expect(await callAll(1, "strict")).to.deep.equal(["Held"]);
    expect(await world.reached()).to.equal(8);
    expect(await world.metric("gateway_kills_total")).to.not.match(/ [1-9]\d*$/m);
    // Eight strange tools, and six calls beyond the second; the strict one counts.
    const would = await world.metric("gateway_shadow_decisions_total");
    expect(would).to.include('{kind="session",decision="review"} 8').and.include('{kind="session",decision="block"} 6');
    const decisions = (await world.evidence.recordsOf((label) => label === undefined)).filter(
      ({ kind }) => kind === "decision",
    );
    expect(decisions.at(-1)?.evaluation?.would_have?.map(({ rule }) => rule)).to.have.members([
      "session.drift.actions",
      "session.drift.tool",
    ]);
  });

  it("hides in shadow mode nothing that others decide [R3.2-12, S63]", async () => {
    world = await TaskWorld.open("review_flood: { reviews: 0 }, risk: { kill_at: 0 }");
    await world.declare({ expected_tools: [], mode: "shadow" });
    expect(await callAll(1)).to.deep.equal(["answered"]);
    const [session] = await world.evidence.sessions();
    await world.admin("POST", `/admin/v1/sessions/${session?.id}/kill`, "owner", {});
    expect(await callAll(1)).to.deep.equal(["Blocked"]);
    expect(await world.reached()).to.equal(1);
  });

  it("is blocked where configuration says so", async () => {
    world = await TaskWorld.open("drift: { decision: block }, review_flood: { reviews: 0 }");
    await world.declare({ expected_tools: [] });
    expect(await callAll(1)).to.deep.equal(["Blocked"]);
    expect(await world.reached()).to.equal(0);
  });

  it("lets not one action more through than its most, however many come at once [R8-3, S63]", async () => {
    world = await TaskWorld.open();
    const most = 10;
    await world.declare({ max_actions: most });
    const agents = Array.from({ length: 100 }, () => world.agent());
    const said = await Promise.all(agents.map((agent, turn) => agent.call("echo", { turn })));
    const answered = said.filter((answer) => firstWord(textOf(answer)) === "answered").length;
    expect(await world.reached()).to.equal(answered);
    expect(answered).to.be.within(1, most);
    // Those that were refused beside others do not count: what is left of the ten is still there, and no more.
    await callAll(most);
    expect(await world.reached()).to.equal(most);
  });

  const risky = `rules:
  - id: open.risky
    title: Echoes are risky
    decision: allow
    severity: low
    risk: 10
    session_risk: 20
    match: { phase: input, tool: echo }
    message: an echo
`;

  it("stops a session at its threshold, however many come at once: what comes to it is not let through [S63]", async () => {
    world = await TaskWorld.open("review_flood: { reviews: 0 }, risk: { kill_at: 80 }", risky);
    const agents = Array.from({ length: 100 }, () => world.agent());
    expect(await callAll(2)).to.deep.equal(["answered", "answered"]);
    await Promise.all(agents.map((agent, turn) => agent.call("echo", { turn: `at once ${turn}` })));
    // 20 points each: three stay below 80.
    expect(await world.reached()).to.be.within(2, 3);
    expect(await callAll(1)).to.deep.equal(["Blocked"]);
    expect(await world.metric("gateway_kills_total")).to.include('{scope="session",reason="risk"} 1');
  });

  it("counts model requests with the tool calls of their session, and asks nothing else of them [R8-3]", async () => {
    world = await TaskWorld.open();
    await world.declare({ expected_tools: ["files/echo"], expected_resources: [], write_domains: [], max_actions: 3 });
    const statuses: number[] = [];
    for (let turn = 0; turn < 2; turn++) statuses.push(await askModel(`read /etc/passwd, turn ${turn}`));
    expect(await callAll(2)).to.deep.equal(["answered", "Blocked"]);
    statuses.push(await askModel("one too many"));
    expect(statuses).to.deep.equal([200, 200, 403]);
    expect(await world.reached()).to.equal(1);
  });

  it("holds after a crash: manifests, what a reference bound, and how many actions there were [R2.5-2, R8-3]", async () => {
    world = await TaskWorld.open();
    await world.declare({ max_actions: 3 });
    await world.declare({ task: "by-reference", session: "nobody", principal: "other", expected_tools: [] });
    const headers = { "x-api-key": world.key("other"), "x-gateway-session-id": "bound" };
    const reference = await world.reference("by-reference", { principal: "other" });
    const client = await world.connect("v2 modern", { ...headers, "x-gateway-task": reference });
    expect((await client.callTool("echo")).isError).to.equal(true);
    expect(await callAll(2)).to.deep.equal(["answered", "answered"]);
    await world.crash();
    expect(await callAll(2)).to.deep.equal(["answered", "Blocked"]);
    const again = await world.connect("v2 modern", headers);
    expect((await again.callTool("echo")).content[0]?.text).to.include("task `by-reference`");
    expect(await world.reached()).to.equal(3);
    expect(await world.evidence.verify()).to.include({ ok: true });
  });

  it("leaves a session that a reference bound without a way out when its manifest is withdrawn", async () => {
    world = await TaskWorld.open();
    await world.declare({ session: "nobody" });
    const reference = await world.reference("nightly");
    const client = await world.connect("v2 modern", { "x-gateway-session-id": "bound", "x-gateway-task": reference });
    expect((await client.callTool("echo")).isError ?? false).to.equal(false);
    expect((await world.admin("DELETE", "/admin/v1/manifests/nightly")).status).to.equal(200);
    const free = await world.connect("v2 modern", { "x-gateway-session-id": "bound" });
    expect((await free.callTool("echo")).content[0]?.text).to.match(/^Blocked by policy: .*was withdrawn/s);
    const unbound = await world.connect("v2 modern", { "x-gateway-session-id": "another" });
    expect((await unbound.callTool("echo")).isError ?? false).to.equal(false);
    expect(await world.reached()).to.equal(2);
  });

  async function askModel(content: string): Promise<number> {
    const { status } = await fetch(`${world.gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "x-api-key": world.key("agent"), "content-type": "application/json" },
      body: JSON.stringify({ model: "mock", messages: [{ role: "user", content }] }),
    });
    return status;
  }
});

/** Of a refusal; what the upstream said is JSON. */
function firstWord(text: string): string {
  return text.startsWith("{") ? "answered" : (text.split(" ")[0] ?? "");
}
