import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { ClientKind, McpClient, ToolResult } from "../../support/mcp-client.ts";
import { connectClient } from "../../support/mcp-client.ts";
import { inSeconds, wideManifest } from "../../support/task-world.ts";
import { everythingServer } from "../client/server-program.ts";
import { openWorld, type World } from "../client/world.ts";

/** One field of a manifest, an action as near as possible that it expects, and one that it does not. */
interface Pair {
  readonly title: string;
  readonly manifest: object;
  readonly near: Step;
  readonly over: Step;
  readonly rule: string;
}

type Step = (client: McpClient) => Promise<unknown>;

const echo =
  (message: string): Step =>
  (client) =>
    client.callTool("echo", { message });
const look =
  (message: string): Step =>
  (client) =>
    client.callTool("look_echo", { message });
const sum: Step = (client) => client.callTool("get-sum", { a: 1, b: 2 });
const read =
  (uri: string): Step =>
  (client) =>
    client.readResource(uri);
const prompt =
  (name: string): Step =>
  (client) =>
    client.getPrompt(name);
const architecture = "demo://resource/static/document/architecture.md";
const features = "demo://resource/static/document/features.md";

const pairs: readonly Pair[] = [
  {
    title: "expected_tools: the other tool of the same upstream",
    manifest: { expected_tools: ["every/echo"] },
    near: echo("hello"),
    over: sum,
    rule: "session.drift.tool",
  },
  {
    title: "expected_tools: the same tool of another upstream",
    manifest: { expected_tools: ["look/*"] },
    near: look("hello"),
    over: echo("hello"),
    rule: "session.drift.tool",
  },
  {
    title: "expected_tools: one letter beyond the glob",
    manifest: { expected_tools: ["every/get-s*"] },
    near: sum,
    over: (client) => client.callTool("get-tiny-image"),
    rule: "session.drift.tool",
  },
  {
    title: "expected_resources: a path beside the folder",
    manifest: { expected_resources: ["/srv/app/*"] },
    near: look("/srv/app/notes.txt"),
    over: look("/srv/app2/notes.txt"),
    rule: "session.drift.resource",
  },
  {
    title: "expected_resources: a path that climbs out of the folder",
    manifest: { expected_resources: ["/srv/app/*"] },
    near: look("/srv/app/x/../notes.txt"),
    over: look("/srv/app/x/../../notes.txt"),
    rule: "session.drift.resource",
  },
  {
    title: "expected_resources: a path behind a blank in a path",
    manifest: { expected_resources: ["/srv/app/*"] },
    near: look("/srv/app/my notes.txt"),
    over: look("/srv/app/my /etc/passwd"),
    rule: "session.drift.resource",
  },
  {
    title: "expected_resources: another resource",
    manifest: { expected_resources: [architecture] },
    near: read(architecture),
    over: read(features),
    rule: "session.drift.resource",
  },
  {
    title: "expected_resources: another prompt",
    manifest: { expected_resources: ["prompt:simple-prompt"] },
    near: prompt("simple-prompt"),
    over: prompt("args-prompt"),
    rule: "session.drift.resource",
  },
  {
    title: "expected_resources: the twenty-first path, of which nobody is told",
    manifest: { expected_resources: ["/srv/app/*"] },
    near: look(paths(20)),
    over: look(paths(21)),
    rule: "session.drift.resource",
  },
  {
    title: "write_domains: a host that begins like it",
    manifest: { write_domains: ["api.example.com"] },
    near: echo("https://api.example.com/x"),
    over: echo("https://api.example.com.evil.example/x"),
    rule: "session.drift.write_domain",
  },
  {
    title: "write_domains: another port of the host",
    manifest: { write_domains: ["api.example.com:8443"] },
    near: echo("https://api.example.com:8443/x"),
    over: echo("https://api.example.com:8444/x"),
    rule: "session.drift.write_domain",
  },
  {
    title: "write_domains: a path beside the root",
    manifest: { write_domains: ["/srv/app"] },
    near: echo("/srv/app/notes.txt"),
    over: echo("/srv/app-old/notes.txt"),
    rule: "session.drift.write_domain",
  },
  {
    title: "write_domains: a command that begins with a path below the root",
    manifest: { write_domains: ["/srv/app"] },
    near: echo("/srv/app/run --out=/srv/app/x"),
    over: echo("/srv/app/run --out=/etc/x"),
    rule: "session.drift.write_domain",
  },
  {
    title: "write_domains: for an action that writes, and not for one that reads",
    manifest: { write_domains: [] },
    near: look("https://evil.example/x"),
    over: echo("https://evil.example/x"),
    rule: "session.drift.write_domain",
  },
];

describe("what a task's manifest expects, field by field", () => {
  let world: World;
  let session = 0;

  before(async () => {
    world = await openWorld({
      servers: () => ({ every: everythingServer(), look: everythingServer() }),
      keys: {
        every: "capabilities: { echo: write, get-sum: read }",
        look: "tool_prefix: look_, capabilities: { echo: read }",
      },
      more: "sessions: { review_flood: { reviews: 0 }, risk: { kill_at: 0 } }",
    });
  });

  after(() => world.stop());

  /** A client of a session of its own that has the manifest. */
  async function under(manifest: object, kind: ClientKind = "v2 modern"): Promise<McpClient> {
    const label = `session-${++session}`;
    const declared = { ...wideManifest, expires_at: inSeconds(600), principal: "ci", ...manifest };
    const response = await fetch(`${world.gateway.adminUrl}/admin/v1/manifests`, {
      method: "POST",
      headers: { "x-api-key": world.reviewerKey, "content-type": "application/json" },
      body: JSON.stringify({ ...declared, task: label, session: label }),
    });
    expect(response.status, await response.clone().text()).to.equal(200);
    const url = `${world.gateway.url}/mcp`;
    return connectClient(kind, { url, headers: { "x-api-key": world.key, "x-gateway-session-id": label } });
  }

  /** The calls, reads and prompts that reached a server. */
  function reached(): number {
    const actions = ["tools/call", "resources/read", "prompts/get"];
    return ["every", "look"]
      .flatMap((server) => world.received(server))
      .filter(({ method }) => actions.includes(String(method))).length;
  }

  for (const { title, manifest, near, over, rule } of pairs) {
    it(`holds ${title} [R2.5-1, R2.5-2]`, async () => {
      const [expecting, departing] = [await under(manifest), await under(manifest)];
      const before = reached();
      expect(await saidBy(near(expecting))).to.equal("answered");
      expect(reached(), "what is expected reaches its server").to.equal(before + 1);
      expect(await saidBy(over(departing))).to.match(
        new RegExp(`^held for review: .*${rule.replaceAll(".", "\\.")}`, "is"),
      );
      expect(reached(), "what is not expected does not").to.equal(before + 1);
      await Promise.all([expecting.close(), departing.close()]);
    });
  }

  for (const kind of ["v1", "v2 legacy", "v2 modern"] as const) {
    it(`blocks the action after the last one, with the client ${kind} [R2.5-1, R8-3]`, async () => {
      const client = await under({ max_actions: 2 }, kind);
      const before = reached();
      await client.listTools();
      for (const message of ["one", "two"]) expect(await saidBy(echo(message)(client))).to.equal("answered");
      expect(await saidBy(echo("three")(client))).to.match(
        /^Blocked by policy: .*had its 2 actions.*session\.drift\.actions/s,
      );
      expect(reached()).to.equal(before + 2);
      await client.close();
    });
  }

  it("blocks what comes when the time is over, and nothing before [R2.5-1]", async () => {
    const client = await under({ expires_at: inSeconds(2) });
    const before = reached();
    expect(await saidBy(echo("in time")(client))).to.equal("answered");
    await sleep(2_000);
    expect(await saidBy(echo("late")(client))).to.match(/^Blocked by policy: .*session\.drift\.expired/s);
    expect(reached()).to.equal(before + 1);
    await client.close();
  });

  it("lists tools that are not expected, and lets policy decide what is", async () => {
    const client = await under({ expected_tools: [] });
    expect((await client.listTools()).map(({ name }) => name)).to.include.members(["echo", "look_echo"]);
    await client.close();
  });
});

/** What a refusal says, of a tool or of anything else; what a server said is not told. */
async function saidBy(asked: Promise<unknown>): Promise<string> {
  try {
    const { isError, content } = (await asked) as ToolResult;
    return isError === true ? (content[0]?.text ?? "") : "answered";
  } catch (error) {
    return String((error as Error).message).replace(/^.*?(?=held)/s, "");
  }
}

function paths(count: number): string {
  return Array.from({ length: count }, (_, index) => `/srv/app/${index}`).join("\n");
}
