import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { appendFile, chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Ran, runProgram } from "./program.ts";

export interface PostgresOptions {
  /** An empty folder, which is the caller's to remove; left out: one that is removed with the server. */
  readonly folder?: string;
  /** An address at which the machines of its network reach it, too. */
  readonly host?: string;
}

/** A database of Debian's PostgreSQL in a folder of its own, reached by a socket in that folder, and at an address where told. */
export class PostgresServer {
  readonly #folder: string;
  readonly #programs: Programs;
  #server: ChildProcess;

  private constructor(folder: string, programs: Programs) {
    this.#folder = folder;
    this.#programs = programs;
    this.#server = this.#launch();
  }

  static start(options: PostgresOptions = {}): Promise<PostgresServer> {
    return PostgresServer.#create(options, (data) => [
      "initdb",
      "--pgdata",
      data,
      "--auth=trust",
      "--username=auditor",
    ]);
  }

  /** Starts a server that follows this one, asynchronously unless it is told otherwise, and is read-only until it is promoted. */
  startStandby(): Promise<PostgresServer> {
    const from = `--dbname=host=${this.#folder} user=auditor`;
    const more = ["--write-recovery-conf", "--checkpoint=fast", "--no-sync"];
    return PostgresServer.#create({}, (data) => ["pg_basebackup", "--pgdata", data, from, ...more]);
  }

  static async #create(
    { folder: given, host }: PostgresOptions,
    commandFor: (data: string) => readonly string[],
  ): Promise<PostgresServer> {
    const folder = given ?? (await mkdtemp(join(tmpdir(), "postgresql-")));
    const bin = (await run("pg_config", ["--bindir"])).trim();
    const programs = { bin, data: join(folder, "data"), owner: await ownerFor(folder), host: host ?? null };
    await runAs(programs, folder, commandFor(programs.data));
    if (host !== undefined) await appendFile(join(programs.data, "pg_hba.conf"), "host all all samenet trust\n");
    const started = new PostgresServer(folder, programs);
    await started.#answers();
    return started;
  }

  /** The socket at which it is reached. */
  get socket(): string {
    return join(this.#folder, ".s.PGSQL.5432");
  }

  /** False once the server has ended, also by itself. */
  get isRunning(): boolean {
    return this.#server.exitCode === null && this.#server.signalCode === null;
  }

  /** Ends the server: `fast` rolls back what is open, `immediate` is a crash, and `kill -9` ends every process of it at once. */
  async halt(how: "fast" | "immediate" | "kill -9"): Promise<void> {
    const server = this.#server;
    if (!this.isRunning) return;
    const exited = once(server, "exit");
    if (how === "kill -9") {
      // Its sessions would go on for a moment without it, and it would replace those that end before it.
      server.kill("SIGSTOP");
      await runProgram("pkill", ["-KILL", "-P", String(server.pid)]);
      server.kill("SIGKILL");
    } else server.kill(how === "fast" ? "SIGINT" : "SIGQUIT");
    await exited;
  }

  /** Makes a standby a server that is written to, once it has replayed all that it got. */
  promote(): Promise<void> {
    const { data } = this.#programs;
    return runAs(this.#programs, this.#folder, ["pg_ctl", "promote", "--pgdata", data, "--wait"]);
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

  #launch(): ChildProcess {
    const { bin, data, owner, host } = this.#programs;
    const args = ["-D", data, "-k", this.#folder, "-c", `listen_addresses=${host ?? ""}`];
    return spawn(join(bin, "postgres"), args, { ...owner, cwd: this.#folder, stdio: "ignore" });
  }

  async #answers(): Promise<void> {
    for (let left = 300; (await this.sql("SELECT 1")).code !== 0; left--) {
      if (left === 0) throw new Error("expected PostgreSQL to answer");
      await sleep(100);
    }
  }
}

/** Where PostgreSQL's programs and data are, and who runs them. */
interface Programs {
  readonly bin: string;
  readonly data: string;
  /** The address at which it listens; null: none. */
  readonly host: string | null;
  readonly owner: { readonly uid?: number; readonly gid?: number };
}

async function runAs({ bin, owner }: Programs, cwd: string, [name = "", ...args]: readonly string[]): Promise<void> {
  const ran = spawn(join(bin, name), args, { ...owner, cwd, stdio: "ignore" });
  const [code] = (await once(ran, "exit")) as [number | null];
  if (code !== 0) throw new Error(`${name}: exit code ${code}`);
}

/** PostgreSQL does not run as root; where a test does, the package's own user is there for it. */
async function ownerFor(folder: string): Promise<Programs["owner"]> {
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
