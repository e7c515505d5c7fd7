import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";

const run = promisify(execFile);

/** Packs a folder as `npm publish` would, and returns the tarball. */
export async function npmPack(folder: string): Promise<Buffer> {
  const place = await mkdtemp(join(tmpdir(), "gateway-npm-"));
  try {
    const words = [
      "pack",
      folder,
      "--json",
      "--ignore-scripts",
      "--pack-destination",
      place,
      "--cache",
      join(place, "c"),
    ];
    const { stdout } = await run("npm", words, { cwd: place });
    const [{ filename, integrity }] = JSON.parse(stdout) as [{ readonly filename: string; readonly integrity: string }];
    const tarball = await readFile(join(place, filename));
    if (integrityOf(tarball) !== integrity) throw new Error(`expected the integrity ${integrity}`);
    return tarball;
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}

/** The integrity of a tarball, as npm writes it. */
export function integrityOf(tarball: Buffer): string {
  return `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
}

/** One entry of a tarball made by hand. */
export interface HandEntry {
  readonly name: string;
  readonly bytes?: Buffer;
  /** `0`, a plain file, unless told. */
  readonly type?: string;
  /** The size that the header gives, as it is written there. */
  readonly size?: string;
  readonly link?: string;
}

/** A tarball with what npm would not pack. */
export function handTarball(entries: readonly HandEntry[], end = Buffer.alloc(1_024)): Buffer {
  return gzipSync(Buffer.concat([...entries.map(blocksOf), end]));
}

function blocksOf({ name, bytes = Buffer.alloc(0), type = "0", size, link = "" }: HandEntry): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0, 100);
  header.write("000644 \0", 100);
  header.write(size ?? `${bytes.length.toString(8).padStart(11, "0")} `, 124);
  header.write("00000000000 ", 136);
  header.write("        ", 148);
  header.write(type, 156);
  header.write(link, 157, 100);
  header.write("ustar\x0000", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")} \0`, 148);
  return Buffer.concat([header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)]);
}

/** Stands in for an npm registry: hands out tarballs. */
export class NpmRegistry {
  readonly url: string;
  /** Answers in place of the tarballs, where it is set. */
  answer: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  readonly #tarballs = new Map<string, Buffer>();
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(): Promise<NpmRegistry> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const registry = new NpmRegistry(server);
    server.on("request", (request, response) => {
      if (registry.answer !== undefined) return registry.answer(request, response);
      const tarball = registry.#tarballs.get(request.url ?? "");
      response.writeHead(tarball === undefined ? 404 : 200).end(tarball);
    });
    return registry;
  }

  /** Serves a tarball, and returns its reference. */
  serve(name: string, tarball: Buffer, integrity = integrityOf(tarball)): string {
    const path = `/${name}/-/${name}-1.0.0.tgz`;
    this.#tarballs.set(path, tarball);
    return `${this.url}${path}#${integrity}`;
  }

  /** May be called again. */
  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
