import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { Agent, type Answer } from "../../support/agent.ts";
import { awaitNotification, type McpClient } from "../../support/mcp-client.ts";
import { scrape } from "../../support/scrape.ts";
import { hostileServer, lateServer, memoryServer } from "./server-program.ts";
import { openWorld, type ServerProgram, type World } from "./world.ts";

const tool = (name: string): object => ({ name, inputSchema: { type: "object" } });
const listing = (name: string): ServerProgram => hostileServer({ TOOLS: JSON.stringify([tool(name), tool("echo")]) });
const slow = "sleep 2.5";

interface Seen {
  readonly state: string;
  readonly reason?: string;
}

describe("upstreams that are not up yet", () => {
  let world: World;
  let agent: Agent;
  const opened: (() => Promise<unknown>)[] = [];

  afterEach(async () => {
    for (const close of opened.splice(0).reverse()) await close();
  });

  async function open(options: Parameters<typeof openWorld>[0]): Promise<void> {
    world = await openWorld(options);
    opened.push(() => world.stop());
    agent = new Agent(world.gateway.url, world.key);
    opened.push(() => agent.hangUp());
  }

  async function upstream(name: string): Promise<Seen> {
    const response = await fetch(`${world.gateway.adminUrl}/admin/v1/upstreams`, {
      headers: { "x-api-key": world.key },
    });
    const { items } = (await response.json()) as { items: readonly (Seen & { name: string })[] };
    return items.find((one) => one.name === name) as Seen;
  }

  function methods(server: string): readonly (string | undefined)[] {
    return world.received(server).map(({ method }) => method);
  }

  /** Requires the client to be shown the tool: at once, or after it was told that there are other tools now. */
  async function expectListed(client: McpClient, name: string): Promise<void> {
    const names = async (): Promise<readonly string[]> => (await client.listTools()).map((one) => one.name);
    if ((await names()).includes(name)) return;
    await awaitNotification(client, ({ method }) => method === "notifications/tools/list_changed");
    expect(await names()).to.include(name);
  }

  const texts = ({ result }: Answer): unknown => result?.content?.[0]?.text;

  describe("because they start slowly", () => {
    it("are waited for, and asked for their era once", async () => {
      await open({ servers: (folder) => ({ slow: lateServer(slow, memoryServer(join(folder, "graph.json"))) }) });
      const client = await world.connect("v1");
      await expectListed(client, "read_graph");
      expect((await client.callTool("read_graph")).isError ?? false).to.equal(false);
      // The gateway's own start tries both revisions; the session's knows which one to speak.
      const asked = methods("slow").filter((method) => method === "initialize" || method === "server/discover");
      expect(asked).to.deep.equal(["server/discover", "initialize", "initialize"]);
      expect(world.calls("slow").length).to.equal(1);
    });

    it("start with the gateway, and serve a request without a session from that start", async () => {
      await open({ servers: () => ({ slow: lateServer(slow, listing("a")) }) });
      expect(texts(await agent.call("echo"))).to.include('"echo"');
      expect(methods("slow").filter((method) => method === "initialize").length).to.equal(1);
      expect((await upstream("slow")).state).to.equal("up");
    });
  });

  it("say that they are starting, in every place, and announce their tools when they are up", async () => {
    await open({
      servers: (folder) => ({
        late: lateServer(`until [ -e ${join(folder, "go")} ]; do sleep 0.1; done`, listing("a")),
        other: listing("b"),
      }),
      keys: { late: "tool_prefix: late_, start_timeout_ms: 60000", other: "tool_prefix: other_" },
    });
    const client = await world.connect("v1");
    expect((await client.listTools()).map(({ name }) => name)).to.deep.equal(["other_b", "other_echo"]);
    expect((await upstream("late")).state).to.equal("starting");
    expect((await scrape(world.gateway.metricsUrl)).get('gateway_upstreams{state="starting"}')).to.equal(1);
    expect(world.gateway.stderr()).to.include('"upstream":"late","msg":"upstream_starting"');
    const refused = await agent.call("late_echo");
    expect(refused.status).to.equal(200);
    expect(refused.error?.data?.code).to.equal("UPSTREAM_STARTING");
    expect(refused.error?.message).to.match(
      /^upstream is starting: `late` has been starting for \d+ s; try again in 5 s$/,
    );
    expect(texts(await agent.call("other_echo"))).to.include('"echo"');

    await writeFile(join(world.folder, "go"), "");
    await awaitNotification(client, ({ method }) => method === "notifications/tools/list_changed");
    expect((await client.listTools()).map(({ name }) => name)).to.include("late_echo");
    expect((await client.callTool("late_echo")).isError ?? false).to.equal(false);
    expect((await upstream("late")).state).to.equal("up");
  });

  it("say why they failed, are tried again, and announce their tools when they are up", async () => {
    await open({
      servers: (folder) => ({
        failing: lateServer(`[ -e ${join(folder, "go")} ] || exit 3`, listing("a")),
        other: listing("b"),
      }),
      keys: { failing: "tool_prefix: failing_", other: "tool_prefix: other_" },
    });
    const client = await world.connect("v1");
    expect((await client.listTools()).map(({ name }) => name)).to.deep.equal(["other_b", "other_echo"]);
    const { state, reason } = await upstream("failing");
    expect(state).to.equal("down");
    expect(reason).to.match(/^upstream unavailable: the process ended \(exit code \d\)$/);
    const refused = await agent.call("failing_echo");
    expect(refused.error?.data?.code).to.equal("UPSTREAM_UNAVAILABLE");
    expect(refused.error?.message).to.match(/^upstream unavailable: the process ended \(exit code \d\)/);

    await writeFile(join(world.folder, "go"), "");
    await awaitNotification(client, ({ method }) => method === "notifications/tools/list_changed");
    expect((await client.callTool("failing_echo")).isError ?? false).to.equal(false);
  });

  it("because their name cannot be resolved say so, and leave the others alone", async () => {
    await open({
      servers: () => ({ other: listing("b") }),
      upstreams: [`{ name: gone, transport: http, url: "http://gone.invalid/mcp", tool_prefix: gone_ }`],
    });
    const client = await world.connect("v1");
    expect((await client.listTools()).map(({ name }) => name)).to.deep.equal(["b", "echo"]);
    expect((await client.callTool("echo")).isError ?? false).to.equal(false);
    const refused = await agent.call("gone_anything");
    expect(refused.error?.data?.code).to.equal("UPSTREAM_UNAVAILABLE");
    expect(refused.error?.message).to.match(/ENOTFOUND|EAI_AGAIN/);
    const { state, reason } = await upstream("gone");
    expect(state).to.equal("down");
    expect(reason).to.match(/ENOTFOUND|EAI_AGAIN/);
  });
});
