import { type SpawnOptions, spawn } from "node:child_process";
import { lstat, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { type Ran, runProgram } from "../support/program.ts";
import { awaitReady, type ReadyProcess } from "../support/ready-line.ts";
import { send, type WireResponse } from "../support/wire.ts";

const program = fileURLToPath(new URL("../../core/cli/main.js", import.meta.url));
/** Runs what follows with the mask that takes no right away from anybody. */
const unmasked = ["-c", 'umask 0; exec "$@"', "sh", process.execPath, program];

describe("what the gateway writes, where its user takes no rights away by `umask`", () => {
  let folder: string;
  let serving: ReadyProcess | undefined;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "private-"));
  });
  after(async () => {
    await serving?.stop("SIGKILL", 10_000);
    await rm(folder, { recursive: true, force: true });
  });

  const at = (...path: readonly string[]): string => join(folder, ...path);

  async function run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> {
    const ran = await runProgram("sh", [...unmasked, ...args], "", env);
    expect(ran.code, ran.stderr).to.equal(0);
    return ran;
  }

  async function serve(args: readonly string[]): Promise<ReadyProcess> {
    const options: SpawnOptions = { cwd: folder, stdio: ["ignore", "pipe", "pipe"], detached: true };
    serving = await awaitReady(
      spawn("sh", [...unmasked, "serve", "--json", ...args], options),
      { event: "ready" },
      60_000,
    );
    return serving;
  }

  /** What others than the owner may open, with its mode; of policies, which are no secret, nothing. */
  async function open(path: string): Promise<readonly string[]> {
    const names = await readdir(path, { recursive: true });
    const found = await Promise.all(
      names
        .map((name) => join(path, name))
        .filter((each) => !/\/(?:policy-packs|plugins)(?:\/|$)/.test(each))
        .map(async (each) => [relative(folder, each), (await lstat(each)).mode & 0o7777] as const),
    );
    expect(found.length).to.be.above(3);
    return found.filter(([, mode]) => (mode & 0o077) !== 0).map(([name, mode]) => `${mode.toString(8)} ${name}`);
  }

  it("is for its owner alone: an installation, state, keys, locks, witnesses, backups, exports, and what is restored", async () => {
    await run(["init", at("site"), "--port", "0"]);
    const ready = await serve(["--config", at("site/gateway.yaml")]);
    const key = async (name: string): Promise<string> => (await readFile(at("site", name), "utf8")).trim();
    const [agent, admin] = [await key("agent.key"), await key("admin.key")];
    const post = (port: string, target: string, holder: string, body: object): Promise<WireResponse> =>
      send(`http://127.0.0.1:${ready.port(port)}`, {
        method: "POST",
        target,
        headers: [
          ["x-api-key", holder],
          ["content-type", "application/json"],
        ],
        body: JSON.stringify(body),
      });
    const params = { name: "list_notes", arguments: {} };
    const called = await post("gateway_port", "/mcp", agent, { jsonrpc: "2.0", id: 1, method: "tools/call", params });
    expect(called.status, called.body).to.equal(200);
    const env = { GATEWAY_API_KEY: admin, GATEWAY_ADMIN_URL: `http://127.0.0.1:${ready.port("admin_port")}` };
    const backup = (await run(["backup", "create"], env)).stdout.trim();
    const { stdout } = await run(["sessions", "list", "--json"], env);
    const [session = ""] = /session-v1-[0-9a-f]{64}/.exec(stdout) ?? [];
    await run(["evidence", "export", session, "--file", at("site/session.tar")], env);
    expect(await ready.stop("SIGTERM", 60_000)).to.equal(0);
    await run([
      "restore",
      at("site/backups", backup),
      "--data",
      at("site/data"),
      "--by",
      "ops",
      "--replace",
      "--accept-rollback",
      "older",
    ]);
    expect(await open(at("site"))).to.deep.equal([]);
    const written = await readdir(at("site"), { recursive: true });
    for (const part of ["data/state/LOCK", "data/keys", "data/high-water", "witness/", "backups/", "session.tar"]) {
      expect(
        written.some((name) => name.startsWith(part)),
        part,
      ).to.equal(true);
    }
  });

  it("is for its owner alone in local mode", async () => {
    const ready = await serve(["--data", at("local"), "--port", "0"]);
    expect(await ready.stop("SIGTERM", 60_000)).to.equal(0);
    expect(await open(at("local"))).to.deep.equal([]);
  });
});
