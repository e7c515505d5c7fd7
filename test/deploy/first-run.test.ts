import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { expect } from "chai";
import { ConsoleTab, launchBrowser } from "../support/console-browser.ts";
import { cloneRepository, packClone } from "../support/package.ts";
import { runProgram } from "../support/program.ts";
import { awaitReady, type ReadyProcess } from "../support/ready-line.ts";

const waitMs = 300_000;

/** Of a pending approval, what is read here. */
interface Held {
  readonly id: string;
  readonly session: { readonly id: string };
}

/** Each step goes on where the one before it ended; what each takes is printed. */
describe("the first run of a newcomer with an empty folder, Node and the archive", function () {
  this.timeout(waitMs);
  let folder: string;
  let archive: string;
  /** Where the newcomer types. */
  let place: string;
  let running: ReadyProcess;
  let client: Client;
  let held: Held;
  const times: [step: string, seconds: number][] = [];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "first-run-"));
    place = join(folder, "empty");
    await mkdir(place);
    await cloneRepository(join(folder, "clone"));
    archive = await packClone(join(folder, "clone"));
  });

  after(async () => {
    await client?.close();
    await running?.stop("SIGTERM", 30_000);
    await rm(folder, { recursive: true, force: true });
    const total = times.reduce((sum, [, seconds]) => sum + seconds, 0);
    const lines = [...times, ["altogether", total] as const].map(
      ([step, seconds]) => `      ${seconds.toFixed(1).padStart(6)} s  ${step}\n`,
    );
    process.stdout.write(lines.join(""));
  });

  /** Nothing that npm has fetched before, and no program of this repository. */
  function environment(): Record<string, string | undefined> {
    const path = (process.env.PATH ?? "").split(delimiter).filter((each) => !each.endsWith("node_modules/.bin"));
    return { ...process.env, PATH: path.join(delimiter), npm_config_cache: join(folder, "cache") };
  }

  /** Where npx has put the packages. */
  async function installed(): Promise<string> {
    const [name = ""] = await readdir(join(folder, "cache/_npx"));
    return join(folder, "cache/_npx", name, "node_modules");
  }

  /** Runs what npx has installed: to find that again, by the archive, it takes some four seconds a command. */
  async function gateway(...words: readonly string[]): Promise<string> {
    const env = {
      ...(environment() as Record<string, string>),
      GATEWAY_ADMIN_URL: `http://127.0.0.1:${running.port("admin_port")}`,
      GATEWAY_API_KEY: (await readFile(join(place, "data/operator.key"), "utf8")).trim(),
    };
    const program = join(await installed(), ".bin/agent-governance-gateway");
    const line = ["-c", 'cd "$0" && exec "$@"', place, program, ...words];
    const { code, stdout, stderr } = await runProgram("sh", line, "", env);
    expect(code, stderr).to.equal(0);
    return stdout;
  }

  async function writeNote(): Promise<string> {
    const { content } = await client.callTool({ name: "write_note", arguments: { title: "plan", text: "Ship it." } });
    return (content as readonly { readonly text: string }[])[0]?.text ?? "";
  }

  function step(title: string, run: () => Promise<void>): void {
    it(title, async () => {
      const start = performance.now();
      await run();
      times.push([title, (performance.now() - start) / 1_000]);
    });
  }

  step("`npx` of the archive, every package fetched, serves local mode", async () => {
    const args = ["--yes", "--package", archive, "agent-governance-gateway", "--port", "0"];
    const env = environment();
    const child = spawn("npx", args, { cwd: place, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    running = await awaitReady(child, { event: "ready" }, waitMs);
    expect(await readdir(place)).to.have.members(["data", "data.mark"]);
  });

  step("a client's call is held", async () => {
    const headers = { "X-API-Key": (await readFile(join(place, "data/agent.key"), "utf8")).trim() };
    const url = new URL(`http://127.0.0.1:${running.port("gateway_port")}/mcp`);
    client = new Client({ name: "newcomer", version: "1.0.0" });
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
    expect(await writeNote()).to.match(/^Held for review/);
    const { content } = await client.callTool({ name: "list_notes", arguments: {} });
    expect(JSON.stringify(content)).to.not.include("plan");
  });

  step("a person approves it in the browser, by the link of `console`", async () => {
    held = JSON.parse(await gateway("approvals", "list", "--json")) as Held;
    const consoleUrl = `http://127.0.0.1:${running.port("metrics_port")}`;
    const { link } = JSON.parse(await gateway("console", "--url", consoleUrl, "--json")) as { readonly link: string };
    const browser = await launchBrowser();
    try {
      const tab = new ConsoleTab(await browser.newPage(), consoleUrl);
      await tab.page.goto(link);
      await tab.go(`#/approvals/${held.id}`);
      await tab.page.locator("textarea").fill("as planned");
      await tab.click("button.approve");
      await tab.untilText(".detail-head", "approved");
      expect(tab.faults).to.deep.equal([]);
    } finally {
      await browser.close();
    }
  });

  step("the call runs, once", async () => {
    expect(await writeNote()).to.equal("wrote `plan`");
    expect(await writeNote()).to.match(/^Held for review/);
  });

  step("its evidence is exported, and python3 verifies it", async () => {
    await gateway("evidence", "export", held.session.id, "--file", "session.jsonl");
    const file = join(place, "session.jsonl");
    const lines = (await readFile(file, "utf8")).split("\n").filter((line) => line.includes('"tool":"write_note"'));
    expect(lines.filter((line) => line.includes('"effect":"dispatched"'))).to.have.length(1);
    const { keys } = JSON.parse(await gateway("evidence", "keys", "list", "--json"));
    const own = join(await installed(), "agent-governance-gateway/sdk/evidence/verify.py");
    const verified = await runProgram("python3", [own, file, "--key", keys[0].public_key]);
    expect(JSON.parse(verified.stdout)).to.deep.include({ verdict: "self-attested", first_bad: null });
  });
});
