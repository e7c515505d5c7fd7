import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { CommandHost } from "../../support/command-host.ts";
import { hostileArguments, type Person, ReviewWorld } from "../../support/review-world.ts";
import { until } from "../../support/webhook-receiver.ts";
import type { Finished } from "../../unit/cli/run.ts";

const program = fileURLToPath(new URL("../../../core/cli/main.js", import.meta.url));
/** Printable, on lines: what a terminal shows as it is. */
const inert = /^(?:[ -~\n]|\p{L})*$/u;

describe("gateway approvals", () => {
  let folder: string;
  let world: ReviewWorld;
  let commands: CommandHost;
  before(async () => {
    commands = new CommandHost();
    folder = await mkdtemp(join(tmpdir(), "approval-command-"));
    world = await ReviewWorld.start("allow_break_glass: true", folder);
  });
  after(async () => {
    await commands.stop();
    await world.stop();
    await rm(folder, { recursive: true });
  });

  function run(person: Person, ...args: readonly string[]): Promise<Finished> {
    return commands.run(args, environment(person));
  }

  function environment(person: Person): Record<string, string> {
    return { GATEWAY_API_KEY: world.key(person), GATEWAY_ADMIN_URL: world.gateway.adminUrl };
  }

  it("lists, shows, approves: all that the page says to type next [R3.1-2]", async () => {
    const args = { path: "/etc/hosts", text: "127.0.0.1 localhost" };
    const id = await world.hold(args);
    const listed = await run("rita", "approvals", "list");
    expect(listed.stdout).to.match(
      new RegExp(`^${id}  pending  \\d+ min  agent  execute echo on recorder  open.review$`, "m"),
    );
    const shown = await run("rita", "approvals", "show", id);
    expect([shown.code, shown.stderr]).to.deep.equal([0, ""]);
    for (const line of [
      `asked by    agent (operator), ${world.principal("agent")}`,
      'held by     open.review (high): "somebody has to look at it"',
      "reviewers   0 of 1 approved",
      '  "path": "/etc/hosts",',
      `  gateway approvals deny ${id}`,
    ]) {
      expect(shown.stdout.split("\n")).to.include(line);
    }
    expect(shown.stdout).to.match(/^action {6}execute echo on recorder; \d+ bytes, .*; paths \/etc\/hosts$/m);
    const [next] = /approvals approve apr_[0-9a-f]{32}$/m.exec(shown.stdout) ?? [""];
    const approved = await run("rita", ...next.split(" "), "--comment", "fine");
    expect([approved.code, approved.stdout]).to.deep.equal([0, ""]);
    expect(approved.stderr).to.match(
      new RegExp(`^gateway: approved ${id} for one use: the agent has 1[45] min to repeat`),
    );
    const ran = await world.ran();
    await world.call("echo", args);
    expect(await world.ran()).to.equal(ran + 1);
    const past = await run("vera", "approvals", "history", "--state", "consumed", "--limit", "1", "--json");
    expect(JSON.parse(past.stdout)).to.include({ id, state: "consumed", comment: "fine" });
    const other = await world.hold({ ...args, path: "/etc/passwd" });
    expect((await run("rita", "approvals", "show", other)).stdout).to.include(
      `changed since ${id}, the last call of this tool that was approved and ran\n` +
        '  changed "/path"\n  - "/etc/hosts"\n  + "/etc/passwd"\n',
    );
  });

  it("says how many more a rule wants, and denies [R3.1-3]", async () => {
    const id = await world.hold({ text: "quorum" }, "deep");
    const first = await run("rita", "approvals", "approve", id);
    expect(first.stderr).to.equal(`gateway: 1 of 2 reviewers approved ${id}\n`);
    const shown = await run("olaf", "approvals", "show", id);
    expect(shown.stdout).to.match(/^reviewers {3}1 of 2 approved\n {12}rita at .*, scope exact$/m);
    const denied = await run("olaf", "approvals", "deny", id, "--comment", "not\u202enow");
    expect([denied.code, denied.stderr]).to.deep.equal([0, `gateway: denied ${id}\n`]);
    const late = await run("rita", "approvals", "approve", id);
    expect([late.code, late.stdout]).to.deep.equal([1, ""]);
    expect(late.stderr)
      .to.include("the approval is in another state")
      .and.to.include(`\`gateway approvals show ${id}\` shows its state`);
    expect((await run("rita", "approvals", "show", id)).stdout).to.include('"not\\u{202e}now"');
  });

  it("prints nothing of an agent's text as it is, and all of it [S51]", async () => {
    const id = await world.hold(hostileArguments);
    const texts = [
      await run("rita", "approvals", "show", id),
      await run("rita", "approvals", "show", id, "--json"),
      await run("rita", "approvals", "list", "--limit", "500"),
      await run("rita", "approvals", "list", "--json"),
    ].map(({ stdout }) => stdout);
    for (const text of texts) expect(text).to.match(inert);
    const [shown = "", json = ""] = texts;
    expect(JSON.parse(json).held.action.arguments).to.deep.equal(hostileArguments);
    expect(shown).to.include('"a\\u{202e}b": "\\u{1b}[2J\\u{1b}[31mred\\r\\n\\u{2028}next"');
    expect(shown).to.include('"ad\\u{200b}min\\u{feff}\\u{ad}"');
    expect(shown).to.include('"p\u0430ypal.com", // mixes Latin and Cyrillic letters');
    expect(shown).to.include(`"${"x".repeat(200_000)}END"`);
  });

  it("shows a viewer no arguments and no command that the gateway would refuse [R5-10]", async () => {
    const id = await world.hold({ text: "sentinel-of-the-command" });
    const { stdout } = await run("vera", "approvals", "show", id);
    expect(stdout).to.include("arguments are shown to reviewers only");
    expect(stdout).to.not.include("sentinel-of-the-command").and.to.not.include("gateway approvals");
    const refused = await run("vera", "approvals", "approve", id);
    expect([refused.code, /this role may not do that/.test(refused.stderr)]).to.deep.equal([1, true]);
  });

  it("breaks the glass, lists it, and closes it with a text or a file [R5-18]", async () => {
    const account = "The disk was full; the quota is raised and both reviewers know.";
    for (const from of ["--post-mortem", "--file"]) {
      const args = { text: from };
      const id = await world.hold(args, "deep");
      const broken = await run("adam", "approvals", "approve", id, "--break-glass", "the disk is full, deploys fail");
      expect(broken.stderr).to.include(`\`gateway break-glass close ${id}\``);
      await world.call("deep", args);
      expect((await run("vera", "break-glass", "list")).stdout).to.include(`${id}  consumed`);
      const file = join(folder, "account.md");
      await writeFile(file, account);
      const closed = await run("adam", "break-glass", "close", id, from, from === "--file" ? file : account);
      expect([closed.code, closed.stderr]).to.deep.equal([0, `gateway: closed ${id}\n`]);
      expect((await run("adam", "approvals", "show", id)).stdout).to.include(`post-mortem "${account}"`);
    }
    expect((await run("vera", "break-glass", "list")).stdout).to.equal("");
  });

  it("watches: one line for each that begins to wait, through a restart of the gateway, until Ctrl-C", async () => {
    const before = await world.hold({ text: "before the watch" });
    const watch = new Watch(["approvals", "watch"], environment("rita"));
    const json = new Watch(["approvals", "watch", "--json"], environment("rita"));
    await until(async () => watch.stdout.includes(before) && json.stdout.includes(before), "the first line");
    const during = await world.hold({ text: "during\u001b[2J the watch" });
    await until(async () => watch.stdout.includes(during), "the second line");
    await world.gateway.stop();
    await until(async () => watch.stderr !== "", "a word about the gateway");
    await world.startAgain();
    await until(async () => watch.stderr.includes("again") && json.stderr.includes("again"), "another word");
    const after = await world.hold({ text: "after the restart" });
    await until(async () => watch.stdout.includes(after) && json.stdout.includes(after), "the last line");
    expect([await watch.interrupt(), await json.interrupt()]).to.deep.equal([0, 0]);
    expect(watch.stderr).to.equal("gateway: no answer; waiting for the gateway\ngateway: the gateway answers again\n");
    const ids = watch.stdout.match(/apr_[0-9a-f]{32}/g) ?? [];
    expect(new Set(ids).size, "each once").to.equal(ids.length);
    expect(ids).to.include.members([before, during, after]);
    const items = json.stdout.trim().split("\n");
    expect(items.map((line) => JSON.parse(line).id)).to.deep.equal(ids);
  });
});

/** A command that runs until it is interrupted. */
class Watch {
  stdout = "";
  stderr = "";
  readonly #child: ChildProcess;

  constructor(args: readonly string[], env: Readonly<Record<string, string>>) {
    this.#child = spawn(process.execPath, [program, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
  }

  /** Ctrl-C, then the exit code. */
  interrupt(): Promise<number | null> {
    return new Promise((resolve) => {
      this.#child.once("close", resolve);
      this.#child.kill("SIGINT");
    });
  }
}
