import { execFile } from "node:child_process";
import { copyFile, mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { exitCodes } from "../../../core/evidence/record/reason.ts";
import type { SessionReport } from "../../../core/evidence/report/model.ts";
import { repositoryRoot } from "../../check/source-tree.ts";
import { Agent } from "../../support/agent.ts";
import { CommandHost, runCommand } from "../../support/command-host.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { send, type WireResponse } from "../../support/wire.ts";
import type { Finished } from "../../unit/cli/run.ts";
import { type KeyHolder, keys, openWorld, type World } from "../wire/world.ts";

describe("evidence of a session, handed to an outsider", () => {
  let world: World;
  let folder: string;
  let session: string;
  let publicKey: string;
  let witness: string;
  let commands: CommandHost;

  before(async () => {
    commands = new CommandHost();
    folder = await mkdtemp(join(tmpdir(), "auditor-"));
    witness = join(folder, "witness");
    const witnesses = `[{ name: elsewhere, type: file, path: ${JSON.stringify(witness)}, interval_ms: 1000 }]`;
    world = await openWorld(`evidence: { witnesses: ${witnesses} }`);
    const agent = new Agent(world.gateway.url, keys.operator, "audited");
    await agent.call("echo", { text: "attention: secret-of-the-session", ratio: 0.1, nothing: null });
    await agent.call("echo", { text: "second" });
    await agent.hangUp();
    const sessions = await new EvidenceReader(world.gateway.adminUrl, keys.operator).sessions();
    session = sessions.find(({ label }) => label === "audited")?.id ?? "";
    const checkpoint = await ask("operator", "/admin/v1/evidence/checkpoint");
    publicKey = (JSON.parse(checkpoint.body) as { keys: [{ public_key: string }] }).keys[0].public_key;
  });

  after(async () => {
    await commands.stop();
    await world.stop();
    await rm(folder, { recursive: true });
  });

  function ask(holder: KeyHolder, target: string): Promise<WireResponse> {
    return send(world.gateway.adminUrl, { target, headers: [["x-api-key", keys[holder]]] });
  }

  function gateway(holder: KeyHolder, ...args: string[]): Promise<Finished> {
    return commands.run(["evidence", ...args, "--admin", world.gateway.adminUrl], { GATEWAY_API_KEY: keys[holder] });
  }

  async function exportTo(file: string, ...args: string[]): Promise<string> {
    const path = join(folder, file);
    const { code, stderr } = await gateway("operator", "export", session, "--file", path, ...args);
    expect([code, stderr]).to.deep.equal([0, `gateway: wrote ${path}, ${(await stat(path)).size} bytes\n`]);
    return path;
  }

  it("is verified where there is nothing but the bundle, verify.py, python3 and openssl, as its README says [R2.3-6, R4.3-2]", async () => {
    const bundle = await exportTo("whole.jsonl");
    const machine = await mkdtemp(join(tmpdir(), "machine-"));
    try {
      await copyFile(bundle, join(machine, "bundle.jsonl"));
      await copyFile(join(repositoryRoot, "sdk", "evidence", "verify.py"), join(machine, "verify.py"));
      for (const command of await readmeCommands()) {
        if (command.includes("--witness")) continue;
        const { code, stdout } = await shell(command.replace("<public key>", publicKey), machine);
        expect([code, (JSON.parse(stdout) as { verdict: string }).verdict], command).to.deep.equal([
          10,
          "self-attested",
        ]);
      }
    } finally {
      await rm(machine, { recursive: true });
    }
  });

  it("is witnessed with the notes that a witness kept", async () => {
    await until(async () => (await readdir(witness)).some((name) => name.endsWith(".notes")));
    await new Promise((resolve) => setTimeout(resolve, 1_500)); // another push, so that the export can build on it
    const bundle = await exportTo("witnessed.jsonl");
    const args = ["evidence", "verify", bundle, "--key", publicKey, "--witness", witness, "--json"];
    const ours = await runCommand(args);
    expect(JSON.parse(ours.stdout)).to.include({ verdict: "witnessed", exit: exitCodes.witnessed, first_bad: null });
    const own = (await readdir(witness)).filter((name) => name.endsWith(".notes"));
    const chain = (
      JSON.parse((await ask("operator", `/admin/v1/evidence/sessions/${session}/report`)).body) as SessionReport
    ).chain;
    expect(own).to.include(`${chain}.notes`);
    const python = `python3 ${join(repositoryRoot, "sdk/evidence/verify.py")} ${bundle} --key ${publicKey} --witness ${join(witness, `${chain}.notes`)}`;
    const theirs = await shell(python, folder);
    expect([theirs.code, (JSON.parse(theirs.stdout) as { verdict: string }).verdict]).to.deep.equal([0, "witnessed"]);
  });

  it("is not believed under another key", async () => {
    const bundle = await exportTo("foreign-key.jsonl");
    const other = Buffer.alloc(32, 7).toString("base64");
    const { code, stdout } = await commands.run(["evidence", "verify", bundle, "--key", other]);
    expect(code).to.equal(exitCodes.invalid);
    expect(stdout.split("\n")[0]).to.equal(`${bundle}: invalid, unknown_key in records at record 0, 7 records`);
  });

  it("shows what was asked, and withholds what is told to", async () => {
    const records = await new EvidenceReader(world.gateway.adminUrl, keys.operator).records(session);
    const seq = records[0]?.seq ?? -1;
    const whole = await readFile(await exportTo("shown.jsonl"));
    expect(whole.includes("secret-of-the-session")).to.equal(true);
    const both = ["--redact", `${seq}.arguments.text`, "--redact", `${seq + 1}.output.content`];
    const path = await exportTo("redacted.jsonl", ...both);
    expect((await readFile(path)).includes("secret-of-the-session")).to.equal(false);
    expect((await commands.run(["evidence", "verify", path, "--key", publicKey])).code).to.equal(10);
  });

  it("gives a viewer the evidence without the private fields, and it verifies all the same", async () => {
    const path = join(folder, "viewer.jsonl");
    expect((await gateway("viewer", "export", session, "--file", path)).code).to.equal(0);
    expect((await readFile(path)).includes("secret-of-the-session")).to.equal(false);
    expect((await commands.run(["evidence", "verify", path, "--key", publicKey])).code).to.equal(10);
    const report = await ask("viewer", `/admin/v1/evidence/sessions/${session}/report?format=html`);
    expect([report.status, report.body.includes("secret-of-the-session")]).to.deep.equal([200, false]);
  });

  it("is another tenant's to nobody, and says no more than of a session that does not exist [R2.1-4, R4.2-12]", async () => {
    for (const what of ["export", "report"]) {
      const foreign = await ask("foreign", `/admin/v1/evidence/sessions/${session}/${what}`);
      const none = await ask("foreign", `/admin/v1/evidence/sessions/session-v1-none/${what}`);
      expect([foreign.status, JSON.parse(foreign.body).detail]).to.deep.equal([404, "not found: no such session"]);
      expect([none.status, JSON.parse(none.body).detail]).to.deep.equal([404, "not found: no such session"]);
    }
    const { code, stderr } = await gateway("foreign", "export", session, "--file", join(folder, "none.jsonl"));
    expect(code).to.equal(1);
    expect(stderr).to.equal("gateway: not found: no such session\n");
  });

  it("is a page that runs nothing, loads nothing and shows no value as markup", async () => {
    const agent = new Agent(world.gateway.url, keys.operator, "hostile");
    await agent.call("echo", { text: "<script>alert(1)</script>\u202e[x](javascript:alert(2)) | # `" });
    await agent.hangUp();
    const sessions = await new EvidenceReader(world.gateway.adminUrl, keys.operator).sessions();
    const id = sessions.find(({ label }) => label === "hostile")?.id;
    const html = await ask("operator", `/admin/v1/evidence/sessions/${id}/report?format=html`);
    expect(html.headers.get("content-security-policy")).to.match(/^default-src 'none'; style-src 'sha256-[^']+'; /);
    expect(html.body).to.include("&lt;script&gt;alert(1)&lt;/script&gt;\\u{202e}");
    expect(html.body).to.not.include("<script").and.not.include("\u202e");
    const markdown = await ask("operator", `/admin/v1/evidence/sessions/${id}/report?format=md`);
    expect(markdown.body).to.include("\\<script\\>alert\\(1\\)\\</script\\>\\\\u\\{202e\\}\\[x\\]\\(javascript\\:");
  });

  it("is a report that says who asked what, what was decided by which rule, and what came of it [R4.3-3]", async () => {
    const path = join(folder, "report.md");
    expect((await gateway("operator", "report", session, "--file", path)).code).to.equal(0);
    const text = await readFile(path, "utf8");
    expect(text).to.include("# Session audited\n\n2 actions attempted: 2 allowed, 0 held for review, 0 blocked.");
    expect(text).to.include("### 1. echo on recorder");
    expect(text).to.match(/\*\*Allowed by rule open\.[a-z.-]+ of open 1\.0\.0, unsigned\*\*/);
    expect(text).to.include("**Succeeded**");
  });

  it("counts what came of the actions", async () => {
    const json = await ask("operator", `/admin/v1/evidence/sessions/${session}/report?format=json`);
    expect((JSON.parse(json.body) as SessionReport).summary).to.include({ actions: 2, allow: 2, success: 2, open: 0 });
  });

  const mistakes: readonly (readonly [string, readonly string[], number, string])[] = [
    ["a session that nobody has", ["export", "a/b", "--file", "x.jsonl"], 1, "not found: no such session"],
    ["no file", ["export", "session-v1-a"], 2, "required option '--file <path>' not specified"],
    [
      "a redaction that is none",
      ["export", "SESSION", "--file", "x.jsonl", "--redact", "text"],
      1,
      "invalid params: expected `redact/0` to be `<seq>.<arguments|output|facts>.<field>`, got `text`",
    ],
    [
      "a format nobody writes",
      ["report", "SESSION", "--file", "x", "--format", "pdf"],
      2,
      "Allowed choices are md, html, json.",
    ],
  ];
  for (const [what, args, code, text] of mistakes) {
    it(`refuses ${what} and says so`, async () => {
      const finished = await gateway("operator", ...args.map((arg) => (arg === "SESSION" ? session : arg)));
      expect(finished.code).to.equal(code);
      expect(finished.stderr).to.include(text);
    });
  }

  it("asks for a key, and names the address where no gateway answers", async () => {
    const args = ["evidence", "export", "session-v1-a", "--file", "x.jsonl", "--admin"];
    const keyless = await runCommand([...args, world.gateway.adminUrl]);
    expect([keyless.code, keyless.stderr]).to.deep.equal([
      1,
      "gateway: authentication required: set GATEWAY_API_KEY to an API key\n",
    ]);
    const nobody = await runCommand([...args, "http://127.0.0.1:9"], { GATEWAY_API_KEY: "x" });
    expect(nobody.stderr).to.include("no answer from `http://127.0.0.1:9/admin/v1/evidence/sessions/");
  });

  it("overwrites no file", async () => {
    const path = await exportTo("once.jsonl");
    const { code, stderr } = await gateway("operator", "export", session, "--file", path);
    expect([code, stderr]).to.deep.equal([
      1,
      `gateway: invalid request: \`${path}\` exists already; choose another --file\n`,
    ]);
  });
});

/** The commands that the verifier's README tells an auditor to type. */
async function readmeCommands(): Promise<readonly string[]> {
  const readme = await readFile(join(repositoryRoot, "sdk", "evidence", "README.md"), "utf8");
  const commands = [...readme.matchAll(/^\s*(python3 verify\.py .*)$/gm)].map(([, command]) => command as string);
  expect(commands.length).to.be.at.least(2);
  return commands;
}

function shell(command: string, cwd: string): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const child = execFile("bash", ["-c", command], { cwd, timeout: 20_000 }, (_error, stdout, stderr) => {
      if (child.exitCode === null) reject(new Error(`expected an exit code, got the signal ${child.signalCode}`));
      else resolve({ code: child.exitCode, stdout, stderr });
    });
  });
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 60_000;
  while (!(await holds().catch(() => false))) {
    if (performance.now() > end) throw new Error("expected it to come true within 15 s");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
