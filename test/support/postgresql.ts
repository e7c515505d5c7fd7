import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Ran, runProgram } from "./program.ts";

/** A database of Debian's PostgreSQL in a folder of its own, reached by a socket in that folder and by nothing else. */
export class PostgresServer {
  readonly #folder: string;
  readonly #launch: () => ChildProcess;
  #server: ChildProcess;

  private constructor(folder: string, launch: () => ChildProcess) {
    this.#folder = folder;
    this.#launch = launch;
    this.#server = launch();
  }

  static async start(): Promise<PostgresServer> {
    const folder = await mkdtemp(join(tmpdir(), "postgresql-"));
    const bin = (await run("pg_config", ["--bindir"])).trim();
    const owner = await ownerFor(folder);
    const data = join(folder, "data");
    const options = { ...owner, cwd: folder, stdio: "ignore" } as const;
    const made = spawn(join(bin, "initdb"), ["--pgdata", data, "--auth=trust", "--username=auditor"], options);
    const [code] = (await once(made, "exit")) as [number | null];
    if (code !== 0) throw new Error(`initdb: exit code ${code}`);
    const launch = (): ChildProcess =>
      spawn(join(bin, "postgres"), ["-D", data, "-k", folder, "-c", "listen_addresses="], options);
    const started = new PostgresServer(folder, launch);
    await started.#answers();
    return started;
  }

  /** The socket at which it is reached. */
  get socket(): string {
    return join(this.#folder, ".s.PGSQL.5432");
  }

  /** Ends the server: `fast` rolls back what is open, `immediate` is a crash. */
  async halt(how: "fast" | "immediate"): Promise<void> {
    const server = this.#server;
    if (server.exitCode !== null || server.signalCode !== null) return;
    const exited = once(server, "exit");
    server.kill(how === "fast" ? "SIGINT" : "SIGQUIT");
    await exited;
  }

  /** Starts the server that was halted, on what it kept. */
  async resume(): Promise<void> {
    this.#server = this.#launch();
    await this.#answers();
  }

  /** Runs a statement and prints rows as JSON reads them. */
  sql(statement: string, database = "postgres"): Promise<Ran> {
    return this.psql(["--tuples-only", "--no-align", `--dbname=${database}`, "--command", statement]);
  }

  psql(args: readonly string[], input: string = ""): Promise<Ran> {
    const base = ["--no-psqlrc", "--quiet", `--host=${this.#folder}`, "--username=auditor"];
    return runProgram("psql", [...base, "--dbname=postgres", ...args], input, {
      PGOPTIONS: "--client-min-messages=warning",
    });
  }

  /** Creates an empty database and returns its URL. */
  async createDatabase(name: string): Promise<string> {
    const { code, stderr } = await this.sql(`CREATE DATABASE ${name}`);
    if (code !== 0) throw new Error(`CREATE DATABASE: ${stderr}`);
    return `postgres://auditor@localhost/${name}?host=${encodeURIComponent(this.#folder)}`;
  }

  /** Keeps this process from nothing, and ends with it. */
  endWithProcess(): void {
    this.#server.unref();
    process.once("exit", () => {
      this.#server.kill("SIGQUIT");
      rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
    });
  }

  async stop(): Promise<void> {
    await this.halt("fast");
    await rm(this.#folder, { recursive: true });
  }

  async #answers(): Promise<void> {
    for (let left = 300; (await this.sql("SELECT 1")).code !== 0; left--) {
      if (left === 0) throw new Error("expected PostgreSQL to answer");
      await sleep(100);
    }
  }
}

/** PostgreSQL does not run as root; where a test does, the package's own user is there for it. */
async function ownerFor(folder: string): Promise<{ readonly uid?: number; readonly gid?: number }> {
  if (process.getuid?.() !== 0) return {};
  const [uid, gid] = (await Promise.all([run("id", ["-u", "postgres"]), run("id", ["-g", "postgres"])])).map(Number);
  if (uid === undefined || gid === undefined) throw new Error("expected a user `postgres`");
  await chown(folder, uid, gid);
  return { uid, gid };
}

async function run(command: string, args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runProgram(command, args);
  if (code !== 0) throw new Error(`${command}: ${stderr}`);
  return stdout;
}
