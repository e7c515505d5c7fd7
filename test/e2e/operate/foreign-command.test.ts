import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { runCommand } from "../../support/command-host.ts";
import { ForeignWorld, hourAhead, type Kind, maskTimes, twinOf } from "../../support/foreign-world.ts";
import type { Finished } from "../../unit/cli/run.ts";
import { LiveClient } from "../live/live-client.ts";

/** Commands that take an id, which stands for `ID`; `OUT` is a file that is not there. */
const commands: readonly (readonly [kind: Kind, line: string])[] = [
  ["approval", "approvals show ID"],
  ["approval", "approvals approve ID"],
  ["approval", "approvals deny ID --comment no"],
  ["glass", "break-glass close ID --post-mortem it-was-down-and-two-people-were-told"],
  ["session", "sessions show ID"],
  ["session", "sessions kill ID"],
  ["session", "sessions release ID --reason asked"],
  ["session", "sessions reset ID --reason asked"],
  ["principal", "sessions kill --principal ID"],
  ["principal", "sessions release --principal ID --reason asked"],
  ["decision", "explain ID"],
  ["session", "evidence export ID --file OUT"],
  ["session", "evidence report ID --file OUT"],
  ["ticket", "tickets revoke ID --reason asked"],
  ["principal", "tickets issue --principal ID --tool echo --target * --capability execute"],
  ["definition", "definitions show ID"],
  ["definition", "definitions approve ID"],
  ["definition", "definitions deny ID --comment no"],
  ["letter", "webhooks redeliver ID"],
  ["task", "manifests show ID"],
  ["task", "manifests withdraw ID"],
  ["principal", "manifests declare --file MANIFEST"],
];

describe("what is another tenant's, by command and on /v1/ws", () => {
  let folder: string;
  let world: ForeignWorld;
  let size: number;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "foreign-command-"));
    world = await ForeignWorld.start();
    size = await world.size();
  });
  after(async () => {
    await world.site.stop();
    await world.remove();
    await rm(folder, { recursive: true });
  });

  /** What a command prints and returns, but for the id that it was given. */
  async function run(line: string, id: string): Promise<Finished> {
    const manifest = join(folder, "manifest.json");
    const wide = { expected_tools: ["*"], expected_resources: ["*"], write_domains: ["*"], max_actions: 1 };
    await writeFile(manifest, JSON.stringify({ task: "mine", principal: id, ...wide, expires_at: hourAhead() }));
    const words = line.replace("ID", id).replace("OUT", join(folder, "out")).replace("MANIFEST", manifest).split(" ");
    const environment = { GATEWAY_API_KEY: world.site.key("foreign"), GATEWAY_ADMIN_URL: world.site.gateway.adminUrl };
    const { code, stdout, stderr } = await runCommand(words, environment);
    return { code, stdout: stdout.replaceAll(id, "<id>"), stderr: stderr.replaceAll(id, "<id>") };
  }

  for (const [kind, line] of commands) {
    it(`is to \`gateway ${line}\` as unknown as what nobody has [S4]`, async () => {
      const foreign = await run(line, world.ids[kind]);
      expect(foreign).to.deep.equal(await run(line, twinOf(world.ids[kind])));
      expect([foreign.code, foreign.stdout]).to.deep.equal([1, ""]);
      expect(foreign.stderr).to.match(/^gateway: not found: no such [\w ]+/);
      expect(await readdir(folder)).to.deep.equal(["manifest.json"]);
    });
  }

  for (const line of ["backup create", "backup list"]) {
    it(`is not in what \`gateway ${line}\` makes or shows [S4]`, async () => {
      const { code, stdout, stderr } = await run(line, "nobody");
      expect([code, stdout]).to.deep.equal([1, ""]);
      expect(stderr).to.include("this role may not do that").and.include("`resilience.tenant`");
    });
  }

  it("is no session that /v1/ws judges by, and what names a task or a ticket is refused [S4]", async () => {
    const client = new LiveClient(world.site.gateway.url, { key: world.site.key("foreign") });
    await client.open();
    const evaluate = async (named: object, turn: string): Promise<string> => {
      client.say("evaluate", { action: { tool: "echo", target: "recorder", ...named } }, turn);
      const { type, payload } = await client.hear(({ id }) => id === turn);
      return maskTimes(JSON.stringify({ type, payload }));
    };
    for (const [member, kind] of [
      ["session", "session"],
      ["session", "approval"],
      ["task", "task"],
      ["ticket", "ticket"],
    ] as const) {
      const id = world.ids[kind];
      const foreign = await evaluate({ [member]: id }, `${member} ${kind} foreign`);
      expect(foreign).to.equal(await evaluate({ [member]: twinOf(id) }, `${member} ${kind} unknown`));
      expect(foreign).to.include(member === "session" ? '"type":"evaluation"' : "INVALID_PARAMS");
    }
    client.socket.terminate();
  });

  it("is what it was [S4]", async () => {
    expect(await world.size()).to.equal(size);
  });

  it("is heard on no channel of /v1/ws [S4]", async () => {
    const clients = await Promise.all(
      (["foreign", "adam"] as const).map((person) =>
        new LiveClient(world.site.gateway.url, { key: world.site.key(person) }).open(),
      ),
    );
    for (const client of clients) {
      client.say("subscribe", { channels: ["decisions", "approvals", "risk"] });
      await client.hear(({ type }) => type === "subscribed");
    }
    await world.site.hold("echo", { turn: "heard" }, "rita");
    await world.site.hold("echo", { turn: "heard" }, "foreign");
    const [foreign, owner] = clients as [LiveClient, LiveClient];
    const held = `"principal":"${world.site.principal("rita")}"`;
    await owner.hear(({ payload }) => JSON.stringify(payload).includes(held));
    await foreign.hear(({ payload }) => payload.channel === "approvals");
    expect(JSON.stringify(foreign.heard)).to.not.include(world.site.principal("rita"));
    for (const client of clients) client.socket.terminate();
  });
});
