import type { IncomingMessage } from "node:http";
import { GatewayError } from "../../../action/error.ts";
import type { Principal } from "../../../action/principal.ts";
import type { AccessRule } from "../../../http/access.ts";
import type { RequestGuard } from "../../../http/request.ts";
import type { Access } from "../../../operation/operation.ts";
import type { Entrance } from "../../admin-port.ts";
import type { ConsoleCookie } from "./cookie.ts";
import type { ConsoleSession, ConsoleSessions } from "./session.ts";

/** The person behind a request to the console. */
export interface ConsoleCaller {
  readonly principal: Principal;
  /** Null for a key that came without one: it may read. */
  readonly session: ConsoleSession | null;
}

interface ConsoleCallersParts {
  readonly keyRule: Pick<AccessRule, "identifyIfPresented">;
  readonly sessions: ConsoleSessions;
  readonly cookie: ConsoleCookie;
  readonly guard: RequestGuard;
  /** Says to who has not signed in how to do so. */
  readonly notice: string;
}

const nextStep: Readonly<Record<ConsoleSession["by"], string>> = {
  key: "reload the page",
  link: "open another link of `gateway console`",
  oidc: "at `/console/sign-in`",
};

/** Identifies the people who use the console, by their session and by the key that a proxy adds to their requests. */
export class ConsoleCallers implements Entrance {
  readonly #parts: ConsoleCallersParts;

  constructor(parts: ConsoleCallersParts) {
    this.#parts = parts;
  }

  /**
   * Returns the person behind a request; null where it has neither key nor session. Throws KEY_UNKNOWN.
   *
   * INVARIANT: the session of a key is worth nothing without that key, and ends where its cookie comes with another.
   */
  find(rawHeaders: readonly string[]): ConsoleCaller | null {
    const { keyRule, sessions, cookie } = this.#parts;
    const holder = keyRule.identifyIfPresented(rawHeaders);
    const session = sessions.find(cookie.read(rawHeaders)) ?? null;
    if (holder === null)
      return session === null || session.by === "key" ? null : { principal: session.principal, session };
    if (session === null || (session.by === "key" && session.principal.id === holder.id)) {
      return { principal: holder, session };
    }
    sessions.end(session);
    return { principal: holder, session: null };
  }

  /** Does the same for a request that may come from the console's own page only. Throws ORIGIN_FORBIDDEN for any other page. */
  findOnOwnPage(request: IncomingMessage): ConsoleCaller | null {
    this.#parts.guard.checkOwnPage(request);
    return this.find(request.rawHeaders);
  }

  /** Returns the caller of an operation. Throws ORIGIN_FORBIDDEN, KEY_MISSING or KEY_UNKNOWN. */
  identify(_: Access, request: IncomingMessage): Principal {
    const caller = this.findOnOwnPage(request);
    if (caller === null) throw this.refusal();
    return caller.principal;
  }

  /**
   * Throws for a request that may not change anything: what `RequestGuard` throws, CSRF_INVALID without the token of a session,
   * and SIGN_IN_STALE where its sign-in is too old.
   */
  checkChange(request: IncomingMessage): void {
    const { guard, sessions } = this.#parts;
    guard.checkChange(request);
    const session = this.findSession(request);
    if (sessions.isRecent(session)) return;
    throw new GatewayError("SIGN_IN_STALE", `sign in again: ${nextStep[session.by]}`);
  }

  /** Returns the session whose CSRF token a request carries. Throws CSRF_INVALID. */
  findSession({ rawHeaders, headers }: IncomingMessage): ConsoleSession {
    const session = this.find(rawHeaders)?.session ?? null;
    if (session !== null && this.#parts.sessions.isCsrfToken(session, headers["x-csrf-token"])) return session;
    throw new GatewayError("CSRF_INVALID", "expected `x-csrf-token` with the `csrf` of `GET /console/session`");
  }

  /** The error for a request without key and session. */
  refusal(): GatewayError {
    return new GatewayError("KEY_MISSING", this.#parts.notice);
  }
}
