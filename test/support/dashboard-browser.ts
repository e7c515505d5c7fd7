import { createServer, request as forward, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import puppeteer, { type Browser } from "puppeteer-core";
import { type KeyHolder, keys } from "../e2e/wire/world.ts";

/** Debian's Chromium, without a window. */
export function launchBrowser(): Promise<Browser> {
  const args = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"];
  return puppeteer.launch({ executablePath: "/usr/bin/chromium", args });
}

export function urlOf(server: Server): string {
  return `http://localhost:${(server.address() as AddressInfo).port}/`;
}

/** A reverse proxy that has authenticated its user, and says so to the gateway with a key of its own. */
export async function openProxy(target: string, holder: KeyHolder): Promise<Server> {
  const { port } = new URL(target);
  const headersFor = (headers: object): Record<string, string> => ({
    ...(headers as Record<string, string>),
    host: `localhost:${port}`,
    "x-api-key": keys[holder],
  });
  const server = createServer((asked, answer) => {
    const { url, method, headers } = asked;
    const own = headersFor(headers);
    delete own.origin;
    asked.pipe(
      forward({ port, path: url, method, headers: own }, (answered) => {
        answer.writeHead(answered.statusCode ?? 502, answered.headers);
        answered.pipe(answer);
      }),
    );
  });
  server.on("upgrade", ({ url, headers }, socket, head) => {
    const own = Object.entries(headersFor({ ...headers, origin: `http://localhost:${port}` }));
    const up = connect(Number(port), "127.0.0.1", () => {
      up.write(`GET ${url} HTTP/1.1\r\n${own.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`);
      up.write(head);
      up.pipe(socket).pipe(up);
    });
    for (const each of [up, socket]) each.on("error", () => each.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}
