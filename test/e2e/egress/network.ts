import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Ran, runProgram } from "../../support/program.ts";

const standIn = fileURLToPath(new URL("../../fixture/network-stand-in.js", import.meta.url));

/** Addresses for each look-up of a name in turn; one list stands for all. */
export type Answers = readonly (readonly string[])[];

/** The network of one program: see `fixture/network-stand-in.ts`. */
export class Network {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async open(): Promise<Network> {
    return new Network(await mkdtemp(join(tmpdir(), "network-")));
  }

  /** The environment of a program on this network. */
  get env(): Readonly<Record<string, string>> {
    const [NETWORK, NETWORK_LOG] = [this.#path("network.json"), this.#path("log")];
    return { NODE_OPTIONS: `--import=${standIn}`, NETWORK, NETWORK_LOG };
  }

  /** From now on names resolve so, and addresses lead to these ports of this machine. */
  async write(names: Readonly<Record<string, Answers>>, routes: Readonly<Record<string, number>> = {}): Promise<void> {
    await writeFile(this.#path("network.json"), JSON.stringify({ names, routes }));
  }

  /** The addresses and ports to which programs opened connections, such as `127.0.0.1 80`. */
  async connections(): Promise<readonly string[]> {
    return (await this.#lines()).filter((line) => !line.startsWith("? "));
  }

  /** How often programs looked up each name of this network. */
  async lookUps(): Promise<ReadonlyMap<string, number>> {
    const counts = new Map<string, number>();
    for (const line of await this.#lines()) {
      if (line.startsWith("? ")) counts.set(line.slice(2), (counts.get(line.slice(2)) ?? 0) + 1);
    }
    return counts;
  }

  /** Opens a connection to each place from a program that has no guard. Rejects where one fails. */
  async connectUnguarded(places: readonly { readonly host: string; readonly port: number }[]): Promise<Ran> {
    const source = `
      import { connect } from "node:net";
      import { once } from "node:events";
      for (const place of ${JSON.stringify(places)}) {
        const socket = connect(place);
        await once(socket, "connect");
        socket.destroy();
      }`;
    const ran = await runProgram(process.execPath, ["--input-type=module", "--eval", source], "", this.env);
    if (ran.code !== 0) throw new Error(`expected connections, got ${ran.stderr}`);
    return ran;
  }

  async remove(): Promise<void> {
    await rm(this.#folder, { recursive: true });
  }

  async #lines(): Promise<readonly string[]> {
    return (await readFile(this.#path("log"), "utf8").catch(() => "")).split("\n").slice(0, -1);
  }

  #path(name: string): string {
    return join(this.#folder, name);
  }
}

/** A port that must not be connected to, and the number of connections that it got. */
export interface WitnessPort {
  readonly port: number;
  readonly connections: number;
  close(): Promise<void>;
}

/** Listens on every IPv4 address of this machine. */
export async function openWitnessPort(): Promise<WitnessPort> {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.on("error", () => undefined).destroy();
  });
  const port = await listening(server, "0.0.0.0");
  return {
    port,
    get connections() {
      return connections;
    },
    close: () => closed(server),
  };
}

/** An HTTP server on 127.0.0.1. */
export interface LocalServer {
  readonly port: number;
  readonly url: string;
  close(): Promise<void>;
}

export async function serve(answer: RequestListener): Promise<LocalServer> {
  const server = createHttpServer(answer);
  const port = await listening(server, "127.0.0.1");
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.closeAllConnections();
      return closed(server);
    },
  };
}

const results: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: "2025-11-25",
    capabilities: { tools: {} },
    serverInfo: { name: "closing", version: "1.0.0" },
  },
  "tools/list": { tools: [{ name: "echo", description: "Answers.", inputSchema: { type: "object" } }] },
  "tools/call": { content: [{ type: "text", text: "served" }] },
};

/** An MCP server that ends the connection after each answer, so that each request needs another look-up. */
export function serveClosing(): Promise<LocalServer> {
  return serve((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      response.setHeader("connection", "close");
      if (request.method !== "POST") return response.writeHead(405).end();
      const { id, method } = JSON.parse(Buffer.concat(chunks).toString("utf8"));
      if (id === undefined) return response.writeHead(202).end();
      const result = results[method];
      const outcome = result === undefined ? { error: { code: -32601, message: "unknown" } } : { result };
      return response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ jsonrpc: "2.0", id, ...outcome }));
    });
  });
}

async function listening(server: Server, host: string): Promise<number> {
  server.listen(0, host);
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

async function closed(server: Server): Promise<void> {
  server.close();
  await once(server, "close");
}
