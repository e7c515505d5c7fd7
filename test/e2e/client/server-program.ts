import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../../support/free-port.ts";
import type { ServerProgram } from "./world.ts";

/** The environment that each server gets: directly, and as its upstream's `env`. */
const env = { PATH: process.env.PATH ?? "", HOME: "/nonexistent", LANG: "C.UTF-8" };

/** `@modelcontextprotocol/server-filesystem`, allowed what is below `folder`. */
export function filesystemServer(folder: string): ServerProgram {
  return program("server-filesystem", [folder], env);
}

/** `@modelcontextprotocol/server-everything` over stdio. */
export function everythingServer(): ServerProgram {
  return program("server-everything", ["stdio"], env);
}

/** `@modelcontextprotocol/server-memory`, with its graph in `file`. */
export function memoryServer(file: string): ServerProgram {
  return program("server-memory", [], { ...env, MEMORY_FILE_PATH: file });
}

/** The fixture that lists the tools of `file`. */
export function catalogServer(file: string): ServerProgram {
  return fixture("catalog-server", [file], {});
}

/** The fixture that misbehaves; `variables` say how. */
export function hostileServer(variables: Readonly<Record<string, string>>): ServerProgram {
  return fixture("hostile-server", [], variables);
}

/** The fixture that answers what it is told to: an outcome for each tool, and for each other method. */
export function scriptedServer(answers: object): ServerProgram {
  return fixture("scripted-server", [], { ANSWERS: JSON.stringify(answers) });
}

/** The server, after `first`, a line of shell. */
export function lateServer(first: string, { command, args, env: variables }: ServerProgram): ServerProgram {
  return { command: "sh", args: ["-c", `${first}; exec "$0" "$@"`, command, ...args], env: variables };
}

function fixture(name: string, args: readonly string[], variables: Readonly<Record<string, string>>): ServerProgram {
  const path = fileURLToPath(new URL(`../../fixture/${name}.js`, import.meta.url));
  return { command: process.execPath, args: [path, ...args], env: { ...env, ...variables } };
}

function program(name: string, args: readonly string[], variables: Readonly<Record<string, string>>): ServerProgram {
  const folder = fileURLToPath(new URL(".", import.meta.resolve(`@modelcontextprotocol/${name}/package.json`)));
  return { command: process.execPath, args: [join(folder, "dist/index.js"), ...args], env: variables };
}

/** A server over HTTP, as a process of its own. */
export interface HttpServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** `@modelcontextprotocol/server-everything` over HTTP, on `wanted` or a free port. */
export async function startEverything(transport: "streamableHttp" | "sse", wanted?: number): Promise<HttpServer> {
  const { command, args } = program("server-everything", [transport], env);
  const port = wanted ?? (await freePort());
  const child = spawn(command, args, {
    env: { ...env, PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
    detached: true,
  });
  const exited = once(child, "exit");
  const stop = async (): Promise<void> => {
    child.kill("SIGKILL");
    await exited;
  };
  let said = "";
  const listening = new Promise<void>((resolve) => {
    child.stderr.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes(`port ${port}`)) resolve();
    });
  });
  const ended = exited.then(() => Promise.reject(new Error(`expected a server, got an exit: ${said}`)));
  await Promise.race([listening, ended]);
  ended.catch(() => undefined); // from here on, an exit is what `stop` asks for
  return { url: `http://127.0.0.1:${port}/${transport === "sse" ? "sse" : "mcp"}`, stop };
}
