import { createHash } from "node:crypto";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { switchProblem } from "../../core/config/run-as.ts";
import { type RunningGateway, startGateway } from "../support/gateway.ts";
import { allowEverything } from "../support/pack.ts";
import { type Ran, runProgram } from "../support/program.ts";
import { send } from "../support/wire.ts";

const key = "test-key-of-the-agent-0123456789";
const [uid, gid] = [64_123, 64_124];
const isRoot = process.geteuid?.() === 0;
const program = fileURLToPath(new URL("../../core/cli/main.js", import.meta.url));

/** A server over stdio that says who it is, and what it finds in the folder of the gateway's keys. */
const server = `
const { readdirSync, readFileSync } = require("node:fs");
const look = () => {
  try { return readdirSync(process.env.KEYS).length > 0 ? "read" : "empty"; } catch ({ code }) { return code; }
};
const groups = () => /^Groups:[ \\t]*(.*?)[ \\t]*$/m.exec(readFileSync("/proc/self/status", "utf8"))[1];
const seen = () => ({
  uid: process.getuid(), gid: process.getgid(), groups: groups(), keys: look(), home: process.env.HOME ?? null,
  umask: process.umask(),
});
const results = {
  initialize: () => ({ protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } }),
  "tools/list": () => ({ tools: [{ name: "look", inputSchema: { type: "object" } }] }),
  "tools/call": () => ({ content: [{ type: "text", text: JSON.stringify(seen()) }] }),
};
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result: results[method]?.() ?? {} }));
});
`;

describe("a server over stdio that reads the gateway's keys", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "own-user-"));
    await chmod(folder, 0o755);
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  function configOf(runAs: string): string {
    const hash = createHash("sha256").update(key).digest("hex");
    const upstream = (name: string, more: string): string =>
      JSON.stringify({
        name,
        transport: "stdio",
        command: process.execPath,
        args: ["-e", server],
        env: { KEYS: join(folder, "data/keys") },
        tool_prefix: `${name}_`,
        protocol: "legacy",
      }).replace(/\}$/, `${more} }`);
    return `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys: [{ id: agent, tenant: acme, role: viewer, key_hash: "sha256:${hash}" }]
upstreams:
  - ${upstream("other", runAs)}
  - ${upstream("own", "")}
policy: { packs: [{ path: packs/open }] }
log: { level: warn }
`;
  }

  async function look(gateway: RunningGateway, tool: string): Promise<Readonly<Record<string, unknown>>> {
    const { body } = await send(gateway.url, {
      method: "POST",
      target: "/mcp",
      headers: [
        ["x-api-key", key],
        ["content-type", "application/json"],
      ],
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: tool, arguments: {} } }),
    });
    const text = (JSON.parse(body) as { result?: { content: { text: string }[] } }).result?.content[0]?.text;
    if (text === undefined) throw new Error(`expected a result, got ${body}`);
    return JSON.parse(text);
  }

  /** Runs a command of the program, after `launcher`. */
  async function run(launcher: readonly string[], ...command: readonly string[]): Promise<Ran> {
    await writeFile(join(folder, "gateway.yaml"), configOf(`, "run_as": { "uid": ${uid}, "gid": ${gid} }`));
    const [first = "", ...rest] = [...launcher, process.execPath, program, ...command];
    return runProgram(first, rest);
  }

  if (isRoot) {
    it("cannot where `run_as` names another user: it has that user and that group, no further one, and no folder of the gateway's", async () => {
      const gateway = await startGateway({
        folder,
        config: configOf(`, "run_as": { "uid": ${uid}, "gid": ${gid} }`),
        files: allowEverything("packs/open"),
        launcher: ["setpriv", "--groups", "0,4"],
      });
      try {
        const { umask, ...seen } = await look(gateway, "other_look");
        expect(seen).to.deep.equal({ uid, gid, groups: "", keys: "EACCES", home: null });
        expect(umask).to.equal(process.umask());
        expect(await look(gateway, "own_look")).to.include({ uid: 0, keys: "read" });
      } finally {
        expect(await gateway.stop()).to.equal(0);
      }
      const { stdout } = await run([], "doctor", "--config", join(folder, "gateway.yaml"));
      expect(stdout).to.match(/^warn {2}server user {4}`own` over stdio: .*data\/keys; set `run_as`/m);
      expect(stdout).to.not.match(/^warn.*`other`/m);
    });
  }

  const launchers = isRoot ? { "root without a capability": ["setpriv", "--bounding-set", "-setuid"] } : { user: [] };
  for (const [who, launcher] of Object.entries(launchers)) {
    it(`is not started by ${who}, which may not change the user: the configuration is refused by every command`, async () => {
      const got = isRoot ? "root without CAP_SETUID" : `user ${process.geteuid?.()}`;
      const fault = `upstreams[0].run_as: expected a gateway that runs as root, with CAP_SETUID, CAP_SETGID and CAP_KILL, got ${got}; or run the server by itself and reach it over HTTP`;
      const checked = await run(launcher, "config", "check", join(folder, "gateway.yaml"));
      expect(checked.code).to.equal(1);
      expect(checked.stdout).to.include(fault);
      const served = await run(launcher, "serve", "--config", join(folder, "gateway.yaml"));
      expect(served.code).to.not.equal(0);
      expect(served.stderr).to.include(fault);
      expect(served.stdout).to.equal("");
    });
  }

  const root = { uid: 0, status: "CapEff:\t00000000000000e0\n", setgroups: "allow\n" };
  const rights: readonly (readonly [string, Partial<typeof root>, string | undefined])[] = [
    ["root with the three capabilities", {}, undefined],
    ["root of a system without capabilities", { status: "", setgroups: "" }, undefined],
    ["a user with all capabilities", { uid: 990, status: "CapEff:\t000001ffffffffff\n" }, "user 990"],
    ["root that may end nobody else's process", { status: "CapEff:\t00000000000000c0\n" }, "root without CAP_KILL"],
    ["root that keeps its groups", { setgroups: "deny\n" }, "a user namespace in which groups cannot be given up"],
  ];
  for (const [who, given, problem] of rights) {
    it(`is asked of ${who}: ${problem ?? "may change the user"}`, () => {
      expect(switchProblem({ ...root, ...given })).to.equal(problem);
    });
  }
});
