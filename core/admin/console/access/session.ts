import { createHash, timingSafeEqual } from "node:crypto";
import { GatewayError } from "../../../action/error.ts";
import type { Clock, Random } from "../../../action/id.ts";
import type { Principal } from "../../../action/principal.ts";

/** A sign-in: by the key that a proxy adds, by the one-time link of `gateway console`, or at an OpenID provider. */
export interface SignIn {
  readonly by: "key" | "link" | "oidc";
  readonly principal: Principal;
  /** Shown on the page. */
  readonly name: string;
  /** Time that has passed since it. */
  readonly ageMs: number;
}

/** A person's session with the console, in one browser. */
export interface ConsoleSession extends Omit<SignIn, "ageMs"> {
  /** Comes with every change, beside the cookie: a page of another origin can cause one to be sent, but not read the other. */
  readonly csrf: string;
}

interface Entry extends ConsoleSession {
  /** The SHA-256 of the cookie's value. */
  readonly hash: string;
  /** Monotonic, milliseconds, as the two below. */
  readonly signedInMs: number;
  readonly endMs: number;
  usedMs: number;
  readonly onEnd: Set<() => void>;
}

interface ConsoleSessionsOptions {
  /** Age of a sign-in up to which it allows changes. */
  readonly recentMs: number;
  /** The wall clock: for the times that are shown. */
  readonly clock: Clock;
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
  readonly random: Random;
}

/** The times of a session, in RFC 3339. */
export interface SessionTimes {
  readonly signed_in_at: string;
  /** Until then it allows changes. */
  readonly recent_until: string;
  readonly expires_at: string;
}

const idleMs = 30 * 60_000;
const maxAgeMs = 12 * 3_600_000;
const sweepMs = 30_000;
const tokenBytes = 32;
const maxSessions = 1_024;
/** One key may stand behind a proxy for many people. */
const maxSessionsOfPrincipal = 64;

/**
 * The sessions of the console: in memory only, so that a restart ends them. One ends after 30 min without a request, after 12 h,
 * with its sign-out, and with the key behind it. There are 1,024 at most, and 64 of one principal: a further one of that principal
 * ends the one of its own that was idle longest.
 */
export class ConsoleSessions {
  readonly #options: ConsoleSessionsOptions;
  /** By the SHA-256 of the cookie's value, so that a look-up's duration reveals nothing about values that are nearly right. */
  readonly #entries = new Map<string, Entry>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: ConsoleSessionsOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#sweep(), sweepMs).unref();
  }

  get size(): number {
    return this.#entries.size;
  }

  /**
   * Opens a session. Returns it with the value of its cookie, which is kept nowhere. Who signs in at a provider with another tenant
   * or role than before has no older session any more. Throws SIGN_IN_REFUSED for a sign-in of 12 h ago, and GATEWAY_BUSY where
   * there is no room.
   */
  open({ ageMs, ...signIn }: SignIn): { readonly session: ConsoleSession; readonly cookie: string } {
    if (ageMs >= maxAgeMs)
      throw new GatewayError("SIGN_IN_REFUSED", "it was 12 h ago: sign out at the provider, and in again");
    if (signIn.by === "oidc") this.#endFormer(signIn.principal);
    this.#makeRoom(signIn.principal);
    const now = this.#options.elapsedMs();
    const cookie = this.#token();
    const session: Entry = {
      ...signIn,
      csrf: this.#token(),
      hash: hashOf(cookie),
      signedInMs: now - ageMs,
      endMs: now - ageMs + maxAgeMs,
      usedMs: now,
      onEnd: new Set(),
    };
    this.#entries.set(session.hash, session);
    return { session, cookie };
  }

  /** Returns the session of a cookie, which counts as used now; undefined where there is none, or no more. */
  find(cookie: string | undefined): ConsoleSession | undefined {
    const entry = cookie === undefined ? undefined : this.#entries.get(hashOf(cookie));
    if (entry === undefined) return undefined;
    const now = this.#options.elapsedMs();
    if (isOver(entry, now)) {
      this.end(entry);
      return undefined;
    }
    entry.usedMs = now;
    return entry;
  }

  /** Ends a session, and whatever hangs on it. */
  end(session: ConsoleSession): void {
    const { hash, onEnd } = session as Entry;
    if (!this.#entries.delete(hash)) return;
    for (const end of onEnd) end();
  }

  /** Ends the sessions of keys that may no longer act. Who signed in at a provider is none of the configuration's. */
  endRevoked(isKnown: (principal: Principal) => boolean): void {
    for (const entry of [...this.#entries.values()]) {
      if (entry.by !== "oidc" && !isKnown(entry.principal)) this.end(entry);
    }
  }

  /** Calls `end` when the session ends. Returns what takes that back. */
  onEnd(session: ConsoleSession, end: () => void): () => void {
    const { onEnd } = session as Entry;
    onEnd.add(end);
    return () => onEnd.delete(end);
  }

  /** Returns whether the sign-in is recent enough for a change. */
  isRecent(session: ConsoleSession): boolean {
    return this.#options.elapsedMs() - (session as Entry).signedInMs < this.#options.recentMs;
  }

  /** Returns whether a header of a request is the session's CSRF token. */
  isCsrfToken({ csrf }: ConsoleSession, presented: unknown): boolean {
    const [expected, got] = [Buffer.from(csrf), Buffer.from(typeof presented === "string" ? presented : "")];
    return got.length === expected.length && timingSafeEqual(got, expected);
  }

  times(session: ConsoleSession): SessionTimes {
    const { clock, elapsedMs, recentMs } = this.#options;
    const { signedInMs, endMs, usedMs } = session as Entry;
    const [wall, now] = [clock(), elapsedMs()];
    const at = (ms: number): string => new Date(wall + (ms - now)).toISOString();
    return {
      signed_in_at: at(signedInMs),
      recent_until: at(signedInMs + recentMs),
      expires_at: at(Math.min(endMs, usedMs + idleMs)),
    };
  }

  /** Ends all sessions. */
  close(): void {
    clearInterval(this.#timer);
    for (const entry of [...this.#entries.values()]) this.end(entry);
  }

  #sweep(): void {
    const now = this.#options.elapsedMs();
    for (const entry of [...this.#entries.values()]) if (isOver(entry, now)) this.end(entry);
  }

  #endFormer({ id, role, keyId }: Principal): void {
    for (const entry of [...this.#entries.values()]) {
      const { by, principal } = entry;
      const isSamePerson = by === "oidc" && principal.keyId === keyId;
      if (isSamePerson && (principal.id !== id || principal.role !== role)) this.end(entry);
    }
  }

  #makeRoom({ id }: Principal): void {
    if (this.#entries.size >= maxSessions) this.#sweep();
    const own = [...this.#entries.values()].filter(({ principal }) => principal.id === id);
    if (own.length >= maxSessionsOfPrincipal) {
      this.end(own.reduce((oldest, entry) => (entry.usedMs < oldest.usedMs ? entry : oldest)));
    } else if (this.#entries.size >= maxSessions) {
      const detail = `expected at most ${maxSessions} sessions of the console; sign out of some, or try again later`;
      throw new GatewayError("GATEWAY_BUSY", detail, { data: { retry_after_s: 60 } });
    }
  }

  #token(): string {
    return Buffer.from(this.#options.random(tokenBytes)).toString("base64url");
  }
}

function isOver({ endMs, usedMs }: Entry, now: number): boolean {
  return now >= endMs || now - usedMs >= idleMs;
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
