import { type ErrorCode, GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { Principal } from "../action/principal.ts";
import type { Ledger } from "../evidence/ledger.ts";

/** What somebody asked for. */
interface Attempt {
  readonly route: string;
  /** The id that they named, as they wrote it; undefined where they named none. */
  readonly subject?: unknown;
}

interface RefusedAttemptsOptions {
  readonly ledger: Pick<Ledger, "recordEvent">;
  readonly onWarning: (message: string, fields: object) => void;
  /** How long the attempts of a principal are counted together. */
  readonly windowMs?: number;
}

/** What one principal was refused since `timer` began. */
interface Window {
  readonly caller: Principal;
  readonly timer: NodeJS.Timeout;
  recorded: number;
  /** Beyond those. */
  counted: number;
}

const usualWindowMs = 60_000;
/** Of one principal in one window, each with a record of its own. */
export const maxRecorded = 60;

/** The ids that the gateway gives out. Anything else may be a secret in the wrong place, and stays out of evidence. */
const idShape =
  /^(?:(?:apr|tkt)_[0-9a-f]{32}|(?:session|principal)-v1-[0-9a-f]{64}|(?:msg_)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/**
 * Puts on record, in the chain of their own tenant, what holders of a key were refused on the admin port, in GraphQL
 * too: because their role forbids it, or because there is no such thing for them. What is another tenant's leaves
 * the same record as what never was, after the same work.
 *
 * Nobody fills the disk by asking: beyond `maxRecorded` of a principal in a minute they are counted, and one record says
 * how many there were when the minute is over or the gateway stops. Where that cannot be written, the log says it; a
 * crash loses the count of a minute at most.
 */
export class RefusedAttempts {
  readonly #options: RefusedAttemptsOptions;
  /** By principal; those with an attempt within the last minute. */
  readonly #windows = new Map<string, Window>();

  constructor(options: RefusedAttemptsOptions) {
    this.#options = options;
  }

  /**
   * The error to answer `caller` with: `error`, once it is durable that it was met, and at once where it is none of these
   * refusals; EVIDENCE_UNAVAILABLE where it cannot be recorded. Never rejects.
   */
  async settle(caller: Principal, attempt: Attempt, error: GatewayError): Promise<GatewayError> {
    const { status } = error.row;
    if (status !== 403 && status !== 404) return error;
    const window = this.#windowOf(caller);
    if (window.recorded >= maxRecorded) {
      window.counted++;
      return error;
    }
    // Before it is written: many at once are no more than one after another.
    window.recorded++;
    try {
      await this.#record(caller, attemptDetail(attempt, error.code));
      return error;
    } catch (cause) {
      window.recorded--;
      return GatewayError.from(cause);
    }
  }

  /** Records what was only counted so far. */
  async close(): Promise<void> {
    await Promise.all([...this.#windows.values()].map((window) => this.#end(window)));
  }

  #windowOf(caller: Principal): Window {
    const known = this.#windows.get(caller.id);
    if (known !== undefined) return known;
    const timer = setTimeout(() => void this.#end(window), this.#options.windowMs ?? usualWindowMs).unref();
    const window: Window = { caller, timer, recorded: 0, counted: 0 };
    this.#windows.set(caller.id, window);
    return window;
  }

  async #end({ caller, timer, counted }: Window): Promise<void> {
    clearTimeout(timer);
    this.#windows.delete(caller.id);
    if (counted === 0) return;
    try {
      await this.#record(caller, { count: counted });
    } catch (cause) {
      const { message } = GatewayError.from(cause);
      const fields = { principal: caller.id, count: counted, cause: message };
      this.#options.onWarning("refused attempts are not on record", fields);
    }
  }

  #record({ tenant, id }: Principal, detail: JsonObject): Promise<void> {
    return this.#options.ledger.recordEvent(tenant, "admin", { action: "refused", principal: id, ...detail });
  }
}

function attemptDetail({ route, subject }: Attempt, code: ErrorCode): JsonObject {
  const named = typeof subject === "string" && idShape.test(subject) ? { subject } : {};
  return { route, code, ...named };
}
