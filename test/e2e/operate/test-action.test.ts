import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { send } from "../../support/wire.ts";
import { echoCall, type KeyHolder, keys, openWorld, post, type World } from "../wire/world.ts";

const program = fileURLToPath(new URL("../../../core/cli/main.js", import.meta.url));

interface Told {
  readonly decision: string;
  readonly rules: readonly string[];
  readonly verdicts: readonly { readonly policy: { readonly name: string }; readonly decision: string }[];
}

describe("test-action and simulate", () => {
  let world: World;
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "test-action-"));
    world = await openWorld();
  });
  after(async () => {
    await world.stop();
    await rm(folder, { recursive: true });
  });

  const ask = (path: string, body: object | string, holder: KeyHolder = "operator") =>
    send(world.gateway.adminUrl, {
      method: "POST",
      target: `/admin/v1/${path}`,
      headers: [
        ["x-api-key", keys[holder]],
        ["content-type", "application/json"],
      ],
      body: typeof body === "string" ? body : JSON.stringify(body),
    });

  async function tell(action: object): Promise<Told> {
    const { status, body } = await ask("test-action", action);
    expect(status, body).to.equal(200);
    return (JSON.parse(body) as { evaluation: Told }).evaluation;
  }

  function run(...args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    const env = { ...process.env, GATEWAY_API_KEY: keys.operator, GATEWAY_ADMIN_URL: world.gateway.adminUrl };
    return new Promise((resolve) => {
      execFile(process.execPath, [program, ...args], { env }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
      );
    });
  }

  it("say of an action what the road would decide, by the same rules, and carry nothing out [R4.3-7] [R4.3-5]", async () => {
    const asked = { tool: "echo", target: "echo", capability: "read" };
    expect(await tell({ ...asked, arguments: {} })).to.deep.include({ decision: "allow", rules: ["open.all"] });
    const held = await tell({ ...asked, arguments: { please_review: 1 } });
    expect(held).to.deep.include({ decision: "review", rules: ["open.review"] });
    expect(held.verdicts.map(({ policy }) => policy.name)).to.deep.equal(["kill-switch", "task-manifest", "open"]);
    expect(await world.upstream.calls()).to.deep.equal([]);
    const waiting = await send(world.gateway.adminUrl, {
      target: "/admin/v1/approvals",
      headers: [["x-api-key", keys.operator]],
    });
    expect(JSON.parse(waiting.body)).to.deep.equal({ items: [], next: null });
    await post(world, echoCall());
    expect(await world.upstream.calls()).to.have.lengthOf(1);
  });

  it("ask as the caller, whose session is judged as it stands [R4.3-6]", async () => {
    const evidence = new EvidenceReader(world.gateway.adminUrl, keys.admin);
    const [own] = await evidence.sessions();
    const path = `sessions/${own?.id}`;
    expect((await ask(`${path}/kill`, {}, "admin")).status).to.equal(200);
    expect(await tell({ tool: "echo", target: "echo" })).to.deep.include({
      decision: "block",
      rules: ["session.killed"],
    });
    const another = { tool: "echo", target: "echo", session: "another" };
    expect((await tell(another)).decision).to.equal("block");
    expect((await ask(`${path}/release`, { reason: "seen" }, "admin")).status).to.equal(200);
    expect((await tell(another)).decision).to.equal("allow");
  });

  it("need the role operator [R4.3-6] [R5-12]", async () => {
    const action = { tool: "echo", target: "echo" };
    for (const [path, body] of [
      ["test-action", action],
      ["simulate", { actions: [action] }],
    ] as const) {
      expect((await ask(path, body, "viewer")).status, path).to.equal(403);
      expect((await ask(path, body, "operator")).status, path).to.equal(200);
      expect((await ask(path, body, "admin")).status, path).to.equal(200);
    }
  });

  const wrong: readonly (readonly [string, string, object | string, string])[] = [
    ["no tool", "test-action", { target: "echo" }, "expected `tool` in the body, got nothing"],
    ["an unknown member", "test-action", { tool: "a", target: "b", acton: 1 }, "got `acton`"],
    ["an unknown capability", "test-action", { tool: "a", target: "b", capability: "see" }, "be one of read, generate"],
    ["an answer too early", "test-action", { tool: "a", target: "b", output: 1 }, "in phase `output` only"],
    ["no answer", "test-action", { tool: "a", target: "b", phase: "output" }, "must have `output`"],
    [
      "arguments that are a list",
      "test-action",
      { tool: "a", target: "b", arguments: [] },
      "expected `arguments` to be an object, got an array",
    ],
    ["a label of two words", "test-action", { tool: "a", target: "b", session: "a b" }, "expected `session` to be"],
    ["a key twice", "test-action", '{"tool":"a","tool":"b","target":"c"}', "duplicate"],
    ["no list", "simulate", { actions: {} }, "to be a list of 1 to 100"],
    ["an empty list", "simulate", { actions: [] }, "to be a list of 1 to 100"],
    ["101 actions", "simulate", { actions: Array(101).fill({ tool: "a", target: "b" }) }, "to be a list of 1 to 100"],
    [
      "a bad second action",
      "simulate",
      { actions: [{ tool: "a", target: "b" }, {}] },
      "expected `tool` in `actions/1`, got nothing",
    ],
  ];
  for (const [what, path, body, expected] of wrong) {
    it(`refuse ${what}, and say what is expected`, async () => {
      const { status, body: answer } = await ask(path, body);
      expect(status).to.equal(400);
      expect(answer).to.include(JSON.stringify(expected).slice(1, -1));
    });
  }

  it("answer at the command line, with an exit code for what was expected [R4.3-1]", async () => {
    const action = ["test-action", "--tool", "echo", "--target", "echo", "--arguments", '{"please_review":1}'];
    const told = await run(...action);
    expect(told).to.deep.include({ code: 0, stderr: "" });
    expect(told.stdout).to.match(/^review \(risk 10\): open\.review\n {2}pack open \S+: review\n/);
    expect((await run(...action, "--expect", "review")).code).to.equal(0);
    expect(await run(...action, "--expect", "allow", "--json")).to.deep.include({
      code: 1,
      stderr: "gateway: expected allow, got review\n",
    });
  });

  it("answer for a file of actions, a line for each", async () => {
    const file = join(folder, "actions.yaml");
    const rows = Array.from({ length: 150 }, () => "  - { tool: echo, target: echo, expect: allow }\n").join("");
    await writeFile(file, `actions:\n${rows}`);
    const good = await run("simulate", file);
    expect(good).to.deep.include({ code: 0, stderr: "" });
    expect(good.stdout.split("\n")).to.have.lengthOf(151);
    await writeFile(
      file,
      "actions:\n  - { tool: echo, target: echo, arguments: { please_review: 1 }, expect: allow }\n",
    );
    expect(await run("simulate", file)).to.deep.equal({
      code: 1,
      stdout: "review  echo/echo  open.review  (expected allow)\n",
      stderr: "gateway: 1 of 1 actions are not decided as expected\n",
    });
    await writeFile(file, "actions:\n  - { tool: echo, expect: maybe }\n");
    const { code, stderr } = await run("simulate", file);
    expect([code, stderr]).to.deep.equal([
      1,
      `gateway: invalid request: \`${file}\`\n${file}:2:5: expected \`expect\` to be allow, review or block\n`,
    ]);
  });
});
