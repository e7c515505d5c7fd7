const mostWaiting = 1_024;
const mostBytes = 4 * 1024 * 1024;
const mostWaitMs = 2_000;

/** Lets one notification go, or drops it: `late` where it has waited for its turn longer than anything may. */
export type Turn = (late: boolean) => Promise<void>;

/**
 * The notifications of one upstream on their way to one client, in the order in which they came, one at a time. At most
 * 1,024 wait, 4 MiB of them, and none begins its turn after more than 2 s: so an answer that waits for those before it
 * is not held up by a flood.
 */
export class NotificationLane {
  #waiting = 0;
  #bytes = 0;
  #last: Promise<void> = Promise.resolve();

  /** Whether what comes now overtakes nothing. */
  get idle(): boolean {
    return this.#waiting === 0;
  }

  /** Resolves once all that came before has gone or was dropped. */
  get settled(): Promise<void> {
    return this.#last;
  }

  /** Takes in a notification of so many bytes, whose `turn` must not reject. False where there is no room. */
  enter(bytes: number, turn: Turn): boolean {
    if (this.#waiting >= mostWaiting || this.#bytes + bytes > mostBytes) return false;
    const latest = performance.now() + mostWaitMs;
    this.#waiting++;
    this.#bytes += bytes;
    this.#last = this.#last
      .then(() => turn(performance.now() > latest))
      .finally(() => {
        this.#waiting--;
        this.#bytes -= bytes;
      });
    return true;
  }
}

/** The lanes to one client, one for each upstream that has said something: none holds up another's. */
export class LaneTable {
  readonly #lanes = new Map<string, NotificationLane>();

  of(upstream: string): NotificationLane {
    const lane = this.#lanes.get(upstream) ?? new NotificationLane();
    this.#lanes.set(upstream, lane);
    return lane;
  }
}
