/**
 * A place outside the data folder that keeps signed notes, so that nobody can shorten, replace or fork a chain unseen.
 * A log is one chain, or the list of all chains: `[A-Za-z0-9_-]{1,80}`.
 */
export interface Witness {
  /** Its name in the configuration. */
  readonly name: string;
  /** Keeps a note as the latest of its log. Kept when it resolves. */
  append(log: string, note: string, time: string): Promise<void>;
  /** The latest note of a log; undefined where the witness never had one. Rejects when it cannot be asked. */
  latest(log: string): Promise<string | undefined>;
}

/** Characters of the longest answer that is taken for a note. */
export const longestNote = 65_536;

const logPattern = /^[A-Za-z0-9_-]{1,80}$/;

/** Throws TypeError for a name that could lead out of the witness's own place. */
export function checkLog(log: string): void {
  if (!logPattern.test(log)) throw new TypeError("witness: expected a log name of 1 to 80 of `A-Z a-z 0-9 _ -`");
}
