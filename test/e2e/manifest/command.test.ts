import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { CommandHost } from "../../support/command-host.ts";
import { inSeconds, type TaskPerson, TaskWorld, wideManifest } from "../../support/task-world.ts";
import { type Finished, runGateway } from "../../unit/cli/run.ts";

describe("gateway manifests", () => {
  let folder: string;
  let world: TaskWorld;
  let file: string;
  let keyFile: string;
  let commands: CommandHost;

  before(async () => {
    commands = new CommandHost();
    folder = await mkdtemp(join(tmpdir(), "manifest-command-"));
    world = await TaskWorld.open();
    keyFile = join(folder, "owner.pem");
    await writeFile(keyFile, world.signer("owner").export({ format: "pem", type: "pkcs8" }));
    file = join(folder, "nightly.yaml");
    await writeFile(
      file,
      `task: nightly # as YAML
principal: agent
session: nobody
expected_tools: [files/deep]
expected_resources: ["*"]
write_domains: []
max_actions: 5
expires_at: ${inSeconds(600)}
`,
    );
  });

  after(async () => {
    await commands.stop();
    await world.stop();
    await rm(folder, { recursive: true });
  });

  function run(person: TaskPerson, ...args: readonly string[]): Promise<Finished> {
    return commands.run(["manifests", ...args], environment(person));
  }

  function environment(person: TaskPerson): Record<string, string> {
    return { GATEWAY_API_KEY: world.key(person), GATEWAY_ADMIN_URL: world.gateway.adminUrl };
  }

  it("declares, lists and shows what is in force", async () => {
    const declared = await runGateway(["manifests", "declare", "--file", file], environment("owner"));
    expect([declared.code, declared.stderr]).to.deep.equal([0, ""]);
    expect(declared.stdout).to.match(/^nightly: in force, sha256:[0-9a-f]{64}\n$/);
    const listed = await run("agent", "list");
    expect(listed.stdout).to.match(/^task +of .*\nnightly {2}agent in `nobody` +5 {2}20\S+Z\n$/);
    const shown = await run("agent", "show", "nightly");
    expect(shown.stdout).to.include(
      "tools      files/deep\nresources  *\nwrites to  none\nactions    at most 5 of a session\n",
    );
    const told = JSON.parse((await run("agent", "show", "nightly", "--json")).stdout);
    expect(JSON.parse((await run("agent", "list", "--json")).stdout)).to.deep.equal(told);
    expect(told).to.include({ tenant: "acme", task: "nightly", max_actions: 5 });
  });

  it("signs a reference that binds a session of the agent", async () => {
    const { stdout, stderr } = await run("agent", "sign-reference", "nightly", "--key", keyFile, "--expires-in", "60");
    expect(stderr).to.equal("");
    const client = await world.connect("v2 modern", {
      "x-gateway-session-id": "by-reference",
      "x-gateway-task": stdout.trim(),
    });
    expect((await client.callTool("echo")).content[0]?.text).to.include("session.drift.tool");
    expect(await world.reached()).to.equal(0);
    const told = JSON.parse((await run("agent", "sign-reference", "nightly", "--key", keyFile, "--json")).stdout);
    expect(told.claims).to.include({ tenant: "acme", principal: "agent", task: "nightly" });
  });

  it("tells nothing of a key that is none", async () => {
    const wrong = join(folder, "wrong.pem");
    await writeFile(wrong, "not-a-key-but-a-secret");
    const { code, stdout, stderr } = await run("owner", "sign-reference", "nightly", "--key", wrong);
    expect([code, stdout]).to.deep.equal([1, ""]);
    expect(stderr).to.equal("gateway: key cannot be used: expected the unencrypted PEM of an Ed25519 private key\n");
  });

  it("says what is wrong with a file before anybody is asked", async () => {
    const wrong = join(folder, "wrong.yaml");
    await writeFile(wrong, "task: nightly\nprincipal: agent\nmax_action: 5\n");
    const { code, stderr } = await run("owner", "declare", "--file", wrong);
    expect(code).to.equal(1);
    expect(stderr).to.equal("gateway: invalid params: unknown member `max_action`; did you mean `max_actions`?\n");
  });

  it("refuses a viewer, a foreign key's task and a principal of nobody", async () => {
    expect((await run("agent", "declare", "--file", file)).stderr).to.include("this role may not do that");
    expect((await run("foreign", "show", "nightly")).stderr).to.include("not found");
    expect((await run("foreign", "withdraw", "nightly")).stderr).to.include("not found");
    const { status, body } = await world.declare({ task: "x", principal: "foreign" });
    expect([status, body.detail]).to.deep.equal([
      404,
      "not found: no such principal: expected `principal` to be that of a key of your tenant",
    ]);
  });

  it("takes a principal by its id, and a manifest as JSON", async () => {
    const [principal] = (await world.evidence.recordsOf()).map((record) => record.principal?.id ?? "");
    const json = join(folder, "other.json");
    const manifest = { ...wideManifest, task: "json", principal, session: "json", expires_at: inSeconds(600) };
    await writeFile(json, JSON.stringify(manifest));
    const { stdout } = await run("owner", "declare", "--file", json, "--json");
    expect(JSON.parse(stdout)).to.include({ task: "json", principal: "agent" });
  });

  it("withdraws", async () => {
    const { code, stderr } = await run("owner", "withdraw", "nightly");
    expect([code, stderr]).to.deep.equal([0, "gateway: withdrew the manifest of nightly\n"]);
    expect((await run("owner", "show", "nightly")).code).to.equal(1);
  });
});
