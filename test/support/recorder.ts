import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { awaitReady } from "./ready-line.ts";

/** One HTTP request as it arrived at the recording upstream. */
export interface Recorded {
  readonly method: string;
  readonly url: string;
  /** Name, value, name, value, as Node keeps them. */
  readonly headers: readonly string[];
  readonly body: string;
}

/** A running `fixture/recording-server.ts`: an upstream that keeps a log of its own. */
export interface Recorder {
  /** Its MCP endpoint. */
  readonly url: string;
  /** Its log: a `Recorded` as JSON on each line, written before the request is answered. */
  readonly file: string;
  /** Everything that reached it so far. */
  requests(): Promise<readonly Recorded[]>;
  /** Those of them that call a tool. */
  calls(): Promise<readonly Recorded[]>;
  stop(): Promise<void>;
}

const program = fileURLToPath(new URL("../fixture/recording-server.js", import.meta.url));

/** `host`: the address at which it listens. */
export async function startRecorder(host = "127.0.0.1"): Promise<Recorder> {
  const folder = await mkdtemp(join(tmpdir(), "recorder-"));
  const file = join(folder, "record.jsonl");
  const child = spawn(process.execPath, [program], {
    env: { ...process.env, RECORD: file, RECORD_HOST: host },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const ready = await awaitReady(child, { event: "ready" }, 60_000);
  const requests = (): Promise<readonly Recorded[]> => readRecord(file);
  return {
    url: `http://${host}:${ready.port("port")}/mcp`,
    file,
    requests,
    calls: async () => (await requests()).filter(({ body }) => body.includes('"tools/call"')),
    stop: async () => {
      await ready.stop("SIGKILL", 60_000);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function readRecord(file: string): Promise<readonly Recorded[]> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return ""; // nothing has arrived yet
    throw error;
  });
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Recorded);
}
