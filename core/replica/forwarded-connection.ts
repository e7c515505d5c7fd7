import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

interface Place {
  readonly host: string;
  readonly port: number;
}

/** The time between two tries, and for which each waits. */
const tryMs = 1_000;
/** A network may lose a packet, or a few. */
const maxUnanswered = 5;
/** A try that fails so has reached nobody. Any other failure is an answer, or this process's own. */
const unreached = new Set(["EHOSTUNREACH", "EHOSTDOWN", "ENETUNREACH", "ENETDOWN", "EINVAL", "ETIMEDOUT"]);

/**
 * The connections that a replica forwards to one owner. They end where its machine has answered nothing for 5 s: on what was
 * sent, TCP waits a quarter of an hour for an answer, and on a quiet connection for ever.
 *
 * The machine's system is asked, by connecting, and not the process: an owner that is busy, or stands still, keeps them.
 */
export class ForwardedConnections {
  readonly #links = new Set<Socket>();
  readonly #onSilence: (connections: number) => void;
  #isWatched = false;

  /** `onSilence`: called with their number before they end. */
  constructor(onSilence: (connections: number) => void) {
    this.#onSilence = onSilence;
  }

  /** Adds a TCP connection, for as long as it is open. */
  add(link: Socket): void {
    const { remoteAddress: host, remotePort: port } = link;
    // It has ended by now.
    if (host === undefined || port === undefined) return;
    this.#links.add(link);
    link.once("close", () => this.#links.delete(link));
    // Not by the owner's name: that it is not found says nothing of connections that are open.
    if (!this.#isWatched) void this.#watch({ host, port });
  }

  /** Ends them all. What the owner has not received yet it never will: nobody waits for it any more. */
  end(): void {
    for (const link of this.#links) link.resetAndDestroy();
    this.#links.clear();
  }

  async #watch(place: Place): Promise<void> {
    this.#isWatched = true;
    for (let unanswered = 0; this.#links.size > 0; ) {
      if (await answers(place)) {
        unanswered = 0;
        await sleep(tryMs, undefined, { ref: false });
      } else if (++unanswered === maxUnanswered) {
        this.#onSilence(this.#links.size);
        this.end();
      }
    }
    this.#isWatched = false;
  }
}

/** Returns whether a machine answers a try to connect, if only by refusing it. */
function answers(place: Place): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(place);
    const end = (isAnswered: boolean): void => {
      clearTimeout(deadline);
      socket.destroy();
      resolve(isAnswered);
    };
    // In a later turn: what came while this process was busy, or stood still itself, is read before that.
    const deadline = setTimeout(() => setImmediate(end, false), tryMs);
    socket.once("connect", () => end(true));
    socket.on("error", ({ code = "" }: NodeJS.ErrnoException) => {
      if (!unreached.has(code)) end(true);
    });
  });
}
