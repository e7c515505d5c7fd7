import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { routes } from "../../support/route-table.ts";
import { send } from "../../support/wire.ts";
import { type Finished, runGateway } from "../../unit/cli/run.ts";
import { effectsOf, messageHeaders, nothing, openWorld, portsOf, type World } from "./world.ts";

/** What asks for a gate that executes, or for ranks beyond the three roles, and the start of what is said of it. */
const asking: readonly (readonly [yaml: string, said: string])[] = [
  ["execution_gates: { shell: {} }", "execution_gates: unknown key, expected one of `listen`, "],
  ["sandbox: { sql: {} }", "sandbox: unknown key, expected one of `listen`, "],
  ["shell: { enabled: true }", "shell: unknown key, expected one of `listen`, "],
  ["identity: { hierarchy: [] }", "identity: unknown key, expected one of `listen`, "],
  ["separation_of_duties: true", "separation_of_duties: unknown key, expected one of `listen`, "],
  ...["shell", "sql", "git"].map(
    (transport) =>
      [
        `upstreams: [{ name: a, transport: ${transport} }]`,
        `upstreams[0].transport: expected \`stdio\`, \`http\` or \`sse\`, got \`${transport}\``,
      ] as const,
  ),
  [
    "keys: [{ id: a, tenant: t, role: auditor }]",
    "keys[0].role: expected `admin`, `operator` or `viewer`, got `auditor`",
  ],
  [
    "keys: [{ id: a, tenant: t, role: viewer, reports_to: b }]",
    "keys[0].reports_to: unknown key, expected one of `id`",
  ],
];

describe("execution gates and a hierarchy of identities", () => {
  let world: World;
  before(async () => {
    world = await openWorld();
  });
  after(() => world.stop());

  async function check(yaml: string): Promise<Finished> {
    const folder = await mkdtemp(join(tmpdir(), "gateway-unwired-"));
    try {
      await writeFile(join(folder, "gateway.yaml"), yaml);
      return await runGateway(["config", "check", join(folder, "gateway.yaml")]);
    } finally {
      await rm(folder, { recursive: true });
    }
  }

  for (const [yaml, said] of asking) {
    it(`cannot be asked for: \`${yaml}\` [R1.1-21]`, async () => {
      const { code, stdout } = await check(yaml);
      expect(code).to.equal(1);
      expect(stdout).to.include(`: ${said}`);
    });
  }

  it("are told from what is there: an unknown path is named, with the nearest that is known [R1.1-21]", async () => {
    const said = async (target: string): Promise<string> => {
      const answer = await send(world.gateway.url, {
        method: "POST",
        target,
        headers: messageHeaders("admin"),
        body: "{}",
      });
      expect(answer.status, target).to.equal(404);
      return answer.body;
    };
    expect(await said("/v1/chat/completion")).to.include(
      "no such path on this port: `/v1/chat/completion`; did you mean `/v1/chat/completions`?",
    );
    expect(await said("/.well-known/oauth-protected-resource")).to.include("`/.well-known/oauth-protected-resource`");
    expect(await said("/v1beta/tunedModels/m:generateContent")).to.include("`/v1beta/tunedModels/m:generateContent`");
    for (const target of ["/x/.well-known/y", "/.well-known", "/..well-known/x", "/.hidden", "/.well-known/../mcp"]) {
      expect(await said(target), target).to.include("canonical form");
    }
  });

  it("are at no path of any port: whoever has a key gets 404, and nothing runs [R1.1-21]", async () => {
    const names = ["execute", "exec", "shell", "sql", "git", "http", "sandbox", "identity"];
    const paths = names.flatMap((name) => [`/${name}`, `/v1/${name}`, `/admin/v1/${name}`]);
    const taken = Object.values(routes).filter(({ path }) => paths.some((each) => `${path}/`.startsWith(`${each}/`)));
    expect(taken).to.deep.equal([]);
    const command = { protocol: "shell", command: "touch /tmp/ran", argv: ["touch", "/tmp/ran"] };
    const effects = await effectsOf(world, async () => {
      for (const url of Object.values(portsOf(world.gateway))) {
        for (const target of paths) {
          const asked = { target, method: "POST", headers: messageHeaders("admin"), body: JSON.stringify(command) };
          expect((await send(url, asked)).status, `${url}${target}`).to.equal(404);
        }
      }
    });
    expect(effects).to.deep.equal(nothing);
  });

  it("carry nothing out that is described: a shell command, a statement and a push are judged, and no more [R1.1-21]", async () => {
    const effects = await effectsOf(world, async () => {
      for (const protocol of ["shell", "sql", "git", "http"]) {
        const action = { protocol, tool: protocol, target: "anything", arguments: { command: "touch ran" } };
        const { status, body } = await send(world.gateway.adminUrl, {
          target: "/admin/v1/test-action",
          method: "POST",
          headers: messageHeaders("admin"),
          body: JSON.stringify(action),
        });
        const { evaluation } = JSON.parse(body) as { evaluation: { decision: string } };
        expect([status, evaluation.decision], protocol).to.deep.equal([200, "allow"]);
      }
    });
    expect(effects).to.deep.equal(nothing);
  });
});
