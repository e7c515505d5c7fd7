import { type ErrorCode, GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { Principal } from "../action/principal.ts";
import type { Ledger } from "../evidence/ledger.ts";

/** A refused request. */
interface Attempt {
  /** The id of the operation. */
  readonly route: string;
  /** The id in the request, as it came; undefined where it has none. */
  readonly subject?: unknown;
}

interface RefusedAttemptsOptions {
  readonly ledger: Pick<Ledger, "recordEvent">;
  readonly onWarning: (message: string, fields: object) => void;
  /** The window in which the attempts of a principal are counted together. */
  readonly windowMs?: number;
}

/** The refused attempts of one principal since `timer` began. */
interface Window {
  readonly caller: Principal;
  readonly timer: NodeJS.Timeout;
  recorded: number;
  /** Beyond the recorded ones. */
  counted: number;
}

const usualWindowMs = 60_000;
/** Attempts of one principal in one window that get a record each. */
export const maxRecorded = 80;

/** The shapes of ids that the gateway issues. Anything else may be a misplaced secret, and stays out of evidence. */
const idShape =
  /^(?:(?:apr|tkt|def)_[0-9a-f]{32}|(?:session|principal)-v1-[0-9a-f]{64}|(?:msg_)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/**
 * Records the requests to the admin port, GraphQL included, that holders of a key were refused: forbidden by their role,
 * or unknown in their tenant. The record goes to the chain of their own tenant. An id of another tenant leaves the same
 * record as one that never existed, after the same work.
 *
 * The number of records is bounded: beyond `maxRecorded` of a principal in a minute attempts are only counted, and one
 * record with the count follows when the minute is over or the gateway stops. Where it cannot be written, it is logged;
 * a crash loses the count of one minute at most.
 */
export class RefusedAttempts {
  readonly #options: RefusedAttemptsOptions;
  /** By principal; only those with an attempt within the last minute. */
  readonly #windows = new Map<string, Window>();

  constructor(options: RefusedAttemptsOptions) {
    this.#options = options;
  }

  /**
   * Returns the error to respond with: `error`, after the refusal is durable, or EVIDENCE_UNAVAILABLE where it cannot be
   * recorded. Errors other than 403 and 404 are returned at once. Never rejects.
   */
  async settle(caller: Principal, attempt: Attempt, error: GatewayError): Promise<GatewayError> {
    const { status } = error.row;
    if (status !== 403 && status !== 404) return error;
    const window = this.#windowOf(caller);
    if (window.recorded >= maxRecorded) {
      window.counted++;
      return error;
    }
    // Counted before it is written: concurrent attempts are bounded too.
    window.recorded++;
    try {
      await this.#record(caller, attemptDetail(attempt, error.code));
      return error;
    } catch (cause) {
      window.recorded--;
      return GatewayError.from(cause);
    }
  }

  /** Records the counts so far. */
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
      this.#options.onWarning("refused_attempts_not_recorded", fields);
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
