import { once } from "node:events";
import { createServer } from "node:net";

/** Below the ports that the system gives to connections, and to servers that take any. */
const lowest = 20_000;
const highest = 32_000;

/** A port of 127.0.0.1 that nobody listens on now, for programs that cannot choose one and say which. */
export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port as number;
}

/** Several such ports in a row. */
export async function freePorts(count: number): Promise<readonly number[]> {
  for (;;) {
    const first = lowest + Math.floor(Math.random() * (highest - lowest));
    const ports = Array.from({ length: count }, (_, at) => first + at);
    if ((await Promise.all(ports.map(isFree))).every(Boolean)) return ports;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch {
    return false;
  }
  await once(server.close(), "close");
  return true;
}
