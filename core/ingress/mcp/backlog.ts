import type { ServerMessage } from "./reply.ts";

const mostMessages = 256;
const mostBytes = 4 * 1024 * 1024;

/**
 * What waits for a client that has no stream open: at most 256 messages and 4 MiB. Where there is no room the oldest
 * notifications go first, because a question that is lost leaves an upstream waiting; a message over the bound is lost.
 */
export class Backlog {
  #waiting: { readonly message: ServerMessage; readonly bytes: number }[] = [];
  #bytes = 0;

  push(message: ServerMessage): void {
    const bytes = Buffer.byteLength(JSON.stringify(message));
    if (bytes > mostBytes) return;
    this.#waiting.push({ message, bytes });
    this.#bytes += bytes;
    while (this.#waiting.length > mostMessages || this.#bytes > mostBytes) this.#dropOne();
  }

  /** Everything that waits, oldest first; nothing waits afterwards. */
  take(): readonly ServerMessage[] {
    const taken = this.#waiting.map(({ message }) => message);
    this.#waiting = [];
    this.#bytes = 0;
    return taken;
  }

  #dropOne(): void {
    const oldest = this.#waiting.findIndex(({ message }) => !("id" in message));
    const [dropped] = this.#waiting.splice(Math.max(oldest, 0), 1);
    this.#bytes -= dropped?.bytes ?? 0;
  }
}
