import type { WitnessFeed } from "./witness-feed.ts";

export interface ScheduledFeed {
  readonly feed: WitnessFeed;
  readonly intervalMs: number;
}

export interface WitnessScheduleOptions {
  readonly feeds: readonly ScheduledFeed[];
  /** Hears each push. An error says what the witness did not take, or could not be asked; it never blocks an action. */
  readonly onPush: (witness: string, error: unknown) => void;
}

/** Tells each witness at its own interval, one push at a time, and once more at the end. */
export class WitnessSchedule {
  readonly #options: WitnessScheduleOptions;
  readonly #timers: readonly NodeJS.Timeout[];
  readonly #running = new Map<WitnessFeed, Promise<void>>();

  private constructor(options: WitnessScheduleOptions) {
    this.#options = options;
    this.#timers = options.feeds.map(({ feed, intervalMs }) =>
      setInterval(() => void this.#push(feed), intervalMs).unref(),
    );
  }

  /** Compares every chain with every witness that can be asked, then begins to push. */
  static async start(options: WitnessScheduleOptions): Promise<WitnessSchedule> {
    await Promise.all(
      options.feeds.map(({ feed }) => feed.compare().catch((error) => options.onPush(feed.witness.name, error))),
    );
    return new WitnessSchedule(options);
  }

  /** Resolves when every witness was told where things ended, or did not take it. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all(this.#running.values());
    await Promise.all(this.#options.feeds.map(({ feed }) => this.#push(feed)));
  }

  /** A push that still runs is the push of this turn too. */
  #push(feed: WitnessFeed): Promise<void> {
    const running = this.#running.get(feed) ?? this.#run(feed).finally(() => this.#running.delete(feed));
    this.#running.set(feed, running);
    return running;
  }

  async #run(feed: WitnessFeed): Promise<void> {
    try {
      await feed.push();
      this.#options.onPush(feed.witness.name, undefined);
    } catch (error) {
      this.#options.onPush(feed.witness.name, error);
    }
  }
}
