import type { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import type { JsonObject } from "../action/json.ts";
import type { Log } from "./log.ts";

/** The clocks of the machine, in milliseconds. */
export interface MachineTime {
  /** Since 1970; anybody who administers the machine can set it. */
  readonly wallMs: Clock;
  /** Monotonic; it may stand still while the machine sleeps. */
  readonly elapsedMs: () => number;
  /** Monotonic, to a second or better; it goes on while the machine sleeps. */
  readonly uptimeMs: () => number;
}

/** The wall clock was set: it showed `foundMs`, later than it should by `sizeMs` (earlier where that is negative). */
interface ClockJump {
  readonly foundMs: number;
  readonly sizeMs: number;
}

/** A difference that is no jump: followed slowly. Above what `uptimeMs` may be wrong by. */
const maxDriftMs = 2_000;
/** The part of the time elapsed by which gateway time follows the wall clock: more than crystals differ. */
const followed = 1 / 1_000;
/** Between the two readings of a check; after more they belong to different moments. */
const maxReadingMs = 100;
/** Changes that wait for the watch. */
const maxWaiting = 64;

/**
 * Gateway time: the wall clock as it was when the process started, and the time that has passed since, sleep included. Setting
 * the wall clock changes it in no direction; a clock that is slewed is followed by at most a thousandth. A start takes the wall
 * clock as it is.
 */
export class GatewayClock {
  /** Gateway time in whole milliseconds since 1970. It never goes back. */
  readonly now: Clock;
  readonly #time: MachineTime;
  /** Gateway time is this and `elapsedMs`. */
  #anchorMs: number;
  /** By how much `uptimeMs` exceeds `elapsedMs`. */
  #leadMs: number;
  /** By how much the wall clock is later, by the jumps so far. */
  #offsetMs = 0;
  #checkedMs: number;
  #jumps: ClockJump[] = [];
  #sleptMs = 0;

  constructor(time: MachineTime) {
    const elapsed = time.elapsedMs();
    this.#time = time;
    this.#anchorMs = time.wallMs() - elapsed;
    this.#leadMs = time.uptimeMs() - elapsed;
    this.#checkedMs = elapsed;
    this.now = () => Math.floor(this.#anchorMs + time.elapsedMs());
  }

  /** Gateway time, with a sleep of the machine that ended just now. */
  readonly checked: Clock = () => {
    this.check();
    return this.now();
  };

  /** The later of wall clock and gateway time: what ends at a time that another party named has ended by either. */
  readonly latest: Clock = () => Math.max(this.#time.wallMs(), this.now());

  /** The earlier of both: what may be deleted at a certain age has that age by both. */
  readonly earliest: Clock = () => Math.min(this.#time.wallMs(), this.now());

  /** Compares gateway time with the wall clock. Finds sleeps and jumps, which `takeChanges` returns. */
  check(): void {
    const { wallMs, elapsedMs, uptimeMs } = this.#time;
    const begun = elapsedMs();
    const wall = wallMs();
    const elapsed = elapsedMs();
    if (elapsed - begun > maxReadingMs) return;
    const differenceMs = (): number => wall - this.#offsetMs - this.#anchorMs - elapsed;
    if (Math.abs(differenceMs()) > maxDriftMs) this.#includeSleep(uptimeMs() - elapsed);
    const difference = differenceMs();
    if (Math.abs(difference) > maxDriftMs) {
      this.#offsetMs += difference;
      if (this.#jumps.length < maxWaiting) this.#jumps.push({ foundMs: wall, sizeMs: Math.round(difference) });
    } else this.#follow(difference, elapsed);
    this.#checkedMs = elapsed;
  }

  /** Returns the jumps and the sleep found since the last call. */
  takeChanges(): { readonly jumps: readonly ClockJump[]; readonly sleptMs: number } {
    const changes = { jumps: this.#jumps, sleptMs: Math.round(this.#sleptMs) };
    this.#jumps = [];
    this.#sleptMs = 0;
    return changes;
  }

  #includeSleep(leadMs: number): void {
    const slept = leadMs - this.#leadMs;
    if (slept <= maxDriftMs) return;
    this.#leadMs = leadMs;
    this.#anchorMs += slept;
    this.#sleptMs += slept;
  }

  #follow(difference: number, elapsed: number): void {
    const limit = (elapsed - this.#checkedMs) * followed;
    this.#anchorMs += Math.min(limit, Math.max(-limit, difference));
  }
}

interface ClockWatchOptions {
  readonly clock: GatewayClock;
  readonly log: Pick<Log, "info" | "warn">;
  /** Puts an event on the record of every tenant; durable when it resolves. */
  readonly record: (detail: JsonObject) => Promise<void>;
}

const intervalMs = 1_000;

/** Jumps that are not on record yet: one, or several as one. */
interface Unrecorded extends ClockJump {
  readonly jumps: number;
}

/** Checks the clock every second. Jumps go to the log and on record; those that cannot be recorded are tried again, as one. */
export class ClockWatch {
  readonly #options: ClockWatchOptions;
  readonly #timer: NodeJS.Timeout;
  #unrecorded: Unrecorded | undefined;
  #recording: Promise<void> | undefined;

  constructor(options: ClockWatchOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.check(), intervalMs).unref();
  }

  /** Checks now. */
  check(): void {
    const { clock, log } = this.#options;
    clock.check();
    const { jumps, sleptMs } = clock.takeChanges();
    if (sleptMs > 0) log.info({ slept_ms: sleptMs }, "machine_resumed");
    for (const jump of jumps) {
      log.warn(describeJump(jump), "clock_jumped");
      this.#unrecorded = join(this.#unrecorded, { ...jump, jumps: 1 });
    }
    this.#recording ??= this.#record();
  }

  /** Ends the checks; resolves when nothing is being recorded. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#recording;
  }

  #record(): Promise<void> | undefined {
    const due = this.#unrecorded;
    if (due === undefined) return undefined;
    this.#unrecorded = undefined;
    const detail = { event: "jumped", ...describeJump(due), jumps: due.jumps };
    return this.#options
      .record(detail)
      .catch((cause: GatewayError) => {
        this.#unrecorded = join(due, this.#unrecorded);
        this.#options.log.warn({ cause: cause.message }, "clock_jump_record_failed");
      })
      .finally(() => {
        this.#recording = undefined;
      });
  }
}

function join(first: Unrecorded | undefined, second: Unrecorded | undefined): Unrecorded | undefined {
  if (first === undefined || second === undefined) return first ?? second;
  return {
    foundMs: second.foundMs,
    sizeMs: first.sizeMs + second.sizeMs,
    jumps: first.jumps + second.jumps,
  };
}

function describeJump({ foundMs, sizeMs }: ClockJump): JsonObject {
  return {
    expected: new Date(foundMs - sizeMs).toISOString(),
    found: new Date(foundMs).toISOString(),
    size_ms: sizeMs,
  };
}
