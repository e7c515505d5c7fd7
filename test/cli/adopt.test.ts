import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { parse } from "yaml";
import { runCommand } from "../support/command-host.ts";
import type { Finished } from "../unit/cli/run.ts";

const demo = {
  command: process.execPath,
  args: [fileURLToPath(new URL("../../core/upstream/demo/server.js", import.meta.url))],
};
const secret = "made-up-secret-of-a-server";
const env = { PATH: process.env.PATH ?? "", HOME: "/nonexistent" };

describe("gateway adopt", () => {
  let folder: string;
  let file: string;
  let into: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "adopt-"));
    into = join(folder, "gateway");
    file = join(folder, ".mcp.json");
  });

  after(() => rm(folder, { recursive: true }));

  function adopt(...args: readonly string[]): Promise<Finished> {
    return runCommand(["adopt", ...args, "--into", into], env);
  }

  async function refused(path: string, ...more: readonly string[]): Promise<string> {
    const { code, stderr } = await adopt(path, ...more);
    expect(code, stderr).to.equal(1);
    expect(existsSync(into), "nothing is written").to.equal(false);
    return stderr;
  }

  describe("on a file that is none of a client", () => {
    it("refuses a symbolic link, and names the file to name instead", async () => {
      const target = join(folder, "elsewhere.json");
      await writeFile(target, "{}");
      await symlink(target, file);
      expect(await refused(file)).to.include(`got a symbolic link; name the file itself, \`${target}\``);
      await rm(file);
    });

    it("refuses a pipe at once, a folder, and a file that is not there", async () => {
      execFileSync("mkfifo", [file]);
      expect(await refused(file)).to.include("expected a regular file");
      await rm(file);
      await mkdir(file);
      expect(await refused(file)).to.include("expected a regular file");
      await rm(file, { recursive: true });
      expect(await refused(file)).to.include(
        "expected the configuration of a client, got no such file; name one that you may read",
      );
    });

    it("refuses a huge one, a deep one, and bytes that are no text, and quotes no secret", async () => {
      await writeFile(file, Buffer.alloc(16 * 1024 * 1024 + 1, 0x20));
      expect(await refused(file)).to.include("expected at most 16777216 bytes");
      await writeFile(file, `{ "a": ${"[".repeat(50_000)} }`);
      expect(await refused(file)).to.include("at most 64 levels");
      await writeFile(file, Buffer.from([0x7b, 0xff, 0x7d]));
      expect(await refused(file)).to.include("expected UTF-8");
      await writeFile(file, `{ "mcpServers": { "a": { "env": { "KEY": "${secret}" } }`);
      expect(await refused(file))
        .to.include("1:")
        .and.not.include(secret);
    });

    it("asks for the client of a file that any program may have", async () => {
      const other = join(folder, "config.toml");
      await writeFile(other, `[mcp_servers.a]\ncommand = "x"\nkey = '${secret}\n`);
      const { code, stderr } = await adopt(other);
      expect([code, stderr.split("\n")[0]]).to.deep.equal([
        2,
        `error: expected a file as a client calls it, or --client <name>, got '${other}'`,
      ]);
      expect(await refused(other, "--client", "codex"))
        .to.include("expected TOML")
        .and.not.include(secret);
    });
  });

  describe("on servers that cannot be adopted", () => {
    it("says why of each, changes nothing and leaves no process", async () => {
      const silent = { command: process.execPath, args: ["-e", "setInterval(() => {}, 1000)", "silent-adopted"] };
      const text = JSON.stringify({
        mcpServers: {
          silent,
          "gone\u202e ": { command: "/nonexistent/program" },
          ends: { command: process.execPath, args: ["-e", ""] },
          __proto__x: { command: "a", disabledTools: ["b"] },
          nobody: { type: "http", url: "http://127.0.0.1:9/mcp" },
          metadata: { type: "http", url: "http://169.254.169.254/mcp" },
        },
      });
      await writeFile(file, text);
      const said = await refused(file, "--wait", "3");
      expect(said).to.include("no server of it can be adopted; nothing was changed");
      expect(said).to.match(/`silent` stays: its tools cannot be read: .*3 s|`silent` stays: .*(?:time|within)/i);
      expect(said).to.include("`gone\\u{202e} ` stays: its tools cannot be read");
      expect(said).to.include("`ends` stays: its tools cannot be read");
      expect(said).to.include("`__proto__x` stays: the gateway has nothing that corresponds to its `disabledTools`");
      expect(said).to.include("`nobody` stays").and.include("`metadata` stays");
      expect(await readFile(file, "utf8")).to.equal(text);
      expect(execFileSync("ps", ["-eo", "args"], { encoding: "utf8" })).to.not.include("silent-adopted");
    });

    it("does not write over a change that was made while they were started", async () => {
      const script = 'echo " " >> "$0"; exec "$1" "$2"';
      const args = ["-c", script, file, demo.command, ...demo.args];
      await writeFile(file, JSON.stringify({ mcpServers: { notes: { command: "sh", args } } }));
      const { code, stderr } = await adopt(file);
      expect([code, stderr.includes("was changed while its servers were started")]).to.deep.equal([1, true]);
      expect(await readFile(file, "utf8")).to.match(/^\{.*\} \n( \n)*$/);
      expect(await readdir(into), "no installation stays").to.deep.equal([]);
      await rm(into, { recursive: true });
    });

    it("does not put a gateway behind another one", async () => {
      await writeFile(
        file,
        `{ "mcpServers": { "a": { "url": "http://x", "headers": { "X-API-Key": "\${GATEWAY_AGENT_KEY}" } } } }`,
      );
      expect(await refused(file)).to.include("`a` leads to a gateway already");
    });
  });

  describe("on a server over HTTP", () => {
    let server: Server;

    before(async () => {
      server = createServer((request, response) => void answerMcp(request, response));
      await once(server.listen(0, "127.0.0.1"), "listening");
    });

    after(() => server.close());

    it("reads its tools with the secret that its client has, and leaves the one that signs in by itself", async () => {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
      const remote = { type: "http", url, headers: { Authorization: `Bearer ${secret}` } };
      await writeFile(file, JSON.stringify({ mcpServers: { remote, alone: { type: "http", url } } }));
      const { code, stdout, stderr } = await adopt(file, "--dry-run", "--json");
      expect(code, stderr).to.equal(0);
      const said = JSON.parse(stdout);
      expect(said.tools.map(({ tool, capability }: ToolSaid) => [tool, capability])).to.deep.equal([
        ["get_page", "read"],
      ]);
      expect(said.left).to.have.length(1);
      expect(said.left[0].name).to.equal("alone");
      expect(stdout).to.not.include(secret);
    });
  });

  describe("on two servers, beside one that is switched off", () => {
    let original: string;

    before(async () => {
      original = `{
  // what this project uses
  "mcpServers": {
    "Notes!": ${JSON.stringify({ ...demo, env: { NOTES_API_KEY: secret } })},
    "off": { "command": "x", "disabled": true }, // for later
    "twice": ${JSON.stringify({ ...demo })}
  },
  "other": [1, 2]
}
`;
      await writeFile(file, original);
      await chmod(file, 0o640);
    });

    it("prints the whole proposal with --dry-run, and writes nothing", async () => {
      const { code, stdout } = await adopt(file, "--dry-run");
      expect(code).to.equal(0);
      expect(stdout).to.include("delete_note: delete # its name says delete").and.not.include(secret);
      expect(await readdir(folder)).to.not.include("gateway");
      expect(await readFile(file, "utf8")).to.equal(original);
    });

    it("rewrites the file, moves secrets to a file of their own, and says where the key is", async () => {
      const { code, stdout, stderr } = await adopt(file, "--json");
      expect(code, stderr).to.equal(0);
      const said = JSON.parse(stdout);
      expect(said.left).to.deep.equal([{ name: "off", reason: "the client does not start it" }]);
      expect(said.adopted).to.deep.equal([
        { name: "Notes!", upstream: "notes-" },
        { name: "twice", upstream: "twice" },
      ]);
      expect(said.key).to.deep.equal({ file: join(into, "agent.key"), variable: "GATEWAY_AGENT_KEY" });
      const now = await readFile(file, "utf8");
      expect(now).to.equal(`{
  // what this project uses
  "mcpServers": {
    "gateway": {
      "type": "http",
      "url": "http://127.0.0.1:8080/mcp",
      "headers": {
        "X-API-Key": "\${GATEWAY_AGENT_KEY}"
      }
    },
    "off": { "command": "x", "disabled": true } // for later
  },
  "other": [1, 2]
}
`);
      expect((await stat(file)).mode & 0o777).to.equal(0o640);
      const key = (await readFile(join(into, "agent.key"), "utf8")).trim();
      expect(stdout + now)
        .to.not.include(key)
        .and.not.include(secret);
    });

    it("makes an installation that is sound and strict, in shadow mode, whose secrets are its owner's alone", async () => {
      const text = await readFile(join(into, "gateway.yaml"), "utf8");
      const config = parse(text);
      expect(text).to.not.include(secret);
      expect(config.upstreams[0]).to.deep.include({
        name: "notes-",
        env_from: ["NOTES_API_KEY"],
        capabilities: { list_notes: "read", read_note: "read", write_note: "write", delete_note: "delete" },
      });
      expect(config.upstreams[1].tool_prefix, "its names are those of the first").to.equal("twice_");
      const modes = config.policy.packs.map(({ path, mode }: { path: string; mode: string }) => [path, mode]);
      expect(modes[0]).to.deep.equal(["policy-packs/trial", "enforce"]);
      expect(new Set(modes.slice(1).map(([, mode]: [string, string]) => mode))).to.deep.equal(new Set(["shadow"]));
      expect(modes).to.have.length(9);
      expect([config.policy.default_decision, config.state.mark, config.extensions.strict]).to.deep.equal([
        "block",
        "gateway.mark",
        true,
      ]);
      expect(text).to.match(/delete_note: delete # its name says delete\n/);
      for (const name of [
        "gateway.yaml",
        "servers.env",
        "agent.key",
        "admin.key",
        "client-backup",
        "adoption.json",
        "signing-key.pem",
      ]) {
        expect((await stat(join(into, name))).mode & 0o777, name).to.equal(0o600);
      }
      const shell = execFileSync("sh", ["-c", 'set -a; . "$0"; printenv NOTES_API_KEY', join(into, "servers.env")], {
        encoding: "utf8",
      });
      expect(shell.trim()).to.equal(secret);
      const checked = await runCommand(["config", "check", join(into, "gateway.yaml")], {
        ...env,
        NOTES_API_KEY: secret,
      });
      expect(checked.code, checked.stderr).to.equal(0);
    });

    it("does not adopt over an installation, and leaves the client as it is", async () => {
      const before = await readFile(file, "utf8");
      const again = join(folder, "again.json");
      await writeFile(again, original);
      const { code, stderr } = await adopt(again, "--client", "claude");
      expect([code, stderr.includes("exists already")]).to.deep.equal([1, true]);
      expect(await readFile(again, "utf8")).to.equal(original);
      expect(await readFile(file, "utf8")).to.equal(before);
      expect((await readdir(into)).filter((name) => name.startsWith("."))).to.deep.equal([]);
    });

    it("refuses to undo over a change, and says how to merge", async () => {
      const adopted = await readFile(file);
      await writeFile(file, `${adopted.toString()}\n`);
      const { code, stderr } = await adopt(file, "--undo");
      expect(code).to.equal(1);
      expect(stderr)
        .to.include("was changed since the adoption")
        .and.include(`diff ${join(into, "client-backup")} ${file}`);
      expect(await readFile(file, "utf8")).to.equal(`${adopted.toString()}\n`);
      await writeFile(file, adopted);
    });

    it("refuses to undo from another folder, of another file, or from a backup that is another", async () => {
      const elsewhere = await runCommand(["adopt", file, "--undo", "--into", folder], env);
      expect([elsewhere.code, elsewhere.stderr.includes("holds no adoption")]).to.deep.equal([1, true]);
      const other = await adopt(join(folder, "again.json"), "--undo");
      expect([other.code, other.stderr.includes("adopted `")]).to.deep.equal([1, true]);
      const backup = await readFile(join(into, "client-backup"));
      await writeFile(join(into, "client-backup"), "{}");
      const changed = await adopt(file, "--undo");
      expect([changed.code, changed.stderr.includes("got others")]).to.deep.equal([1, true]);
      await writeFile(join(into, "client-backup"), backup);
    });

    it("restores the bytes and their mode, once and again", async () => {
      const restored = await adopt(file, "--undo", "--json");
      expect([restored.code, JSON.parse(restored.stdout).result]).to.deep.equal([0, "restored"]);
      expect(await readFile(file, "utf8")).to.equal(original);
      expect((await stat(file)).mode & 0o777).to.equal(0o640);
      expect(JSON.parse((await adopt(file, "--undo", "--json")).stdout).result).to.equal("unchanged");
      expect(await readdir(folder)).to.deep.equal([
        ".mcp.json",
        "again.json",
        "config.toml",
        "elsewhere.json",
        "gateway",
      ]);
    });
  });
});

interface ToolSaid {
  readonly tool: string;
  readonly capability: string;
}

/** An MCP server with one tool, for those who know the secret. */
async function answerMcp(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { id, method } = JSON.parse((await text(request)) || "{}");
  const results: Readonly<Record<string, object>> = {
    initialize: {
      protocolVersion: "2025-11-25",
      capabilities: { tools: {} },
      serverInfo: { name: "remote", version: "1.0.0" },
    },
    "tools/list": { tools: [{ name: "get_page", inputSchema: { type: "object" } }] },
  };
  const isKnown = request.headers.authorization === `Bearer ${secret}`;
  const result = results[method];
  if (!isKnown || id === undefined) return void response.writeHead(isKnown ? 202 : 401).end();
  const error = { code: -32601, message: "method not found" };
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", id, ...(result === undefined ? { error } : { result }) }));
}
