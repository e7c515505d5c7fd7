import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import type { TokenUsage } from "../action/model-api.ts";
import type { Principal } from "../action/principal.ts";
import type { BudgetConfig, UsageConfig } from "../config/gateway-config.ts";
import type { Store } from "../store/open.ts";
import { type BudgetStatus, Budgets, type TokenHold } from "./budget.ts";
import { RateLimit, type RateUnit, rateLimitHeaders } from "./rate-limit.ts";
import { reportUsage, type UsagePage, type UsageQuery } from "./usage-report.ts";
import { type Day, dayOf, negateCounts, type UsageCount, type UsageRow } from "./usage-row.ts";
import { UsageStore } from "./usage-store.ts";

/** The limit that a refused request exceeded. */
type UsageRefusal = RateUnit | "budget" | "principals";

interface UsageObserver {
  tokensUsed(direction: "input" | "output", count: number): void;
  usageRefused(reason: UsageRefusal): void;
}

interface UsageMeterOptions {
  readonly config: UsageConfig;
  readonly store: Store;
  readonly clock: Clock;
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
  readonly observer: UsageObserver;
  readonly onWarning: (message: string, fields: object) => void;
}

/** The tokens reserved for an admitted request. It ends with `settle` or `release`; the first of them counts. */
export interface Reservation {
  readonly principal: Principal;
  /** Tokens estimated before the request. */
  readonly tokens: number;
}

/** A provider and its model, by their configured names. */
interface Server {
  readonly provider: string;
  readonly model: string;
}

/** The server of a request, and the tokens that it used. */
interface ServedUsage extends Server {
  readonly usage: TokenUsage;
}

/** Tokens of one request in one direction: a provider that reports more is not believed. */
const maxTokens = 10_000_000;

/** Admits model requests within the rate limits and budgets of their principal, and counts the tokens they use. */
export class UsageMeter {
  readonly #options: UsageMeterOptions;
  readonly #usage: UsageStore;
  readonly #budgets: Budgets;
  readonly #limit: RateLimit;
  readonly #open = new WeakMap<Reservation, TokenHold>();
  /** Rows of open reservations that were counted before their requests were sent. */
  readonly #booked = new WeakMap<Reservation, UsageRow>();

  private constructor(options: UsageMeterOptions, usage: UsageStore, budgets: Budgets) {
    this.#options = options;
    this.#usage = usage;
    this.#budgets = budgets;
    this.#limit = new RateLimit({ ...options.config, elapsedMs: options.elapsedMs });
  }

  /** Opens the meter, with the tokens spent of each budget in the current day and month as the store has them. */
  static async open(options: UsageMeterOptions): Promise<UsageMeter> {
    const { store, clock, onWarning, config } = options;
    const isKept = (tenant: string, { keyId }: UsageRow): boolean => hasBudget(config.budgets, tenant, keyId);
    const usage = new UsageStore({ store, isKept, onWarning });
    const budgets = await Budgets.open(config.budgets, clock, async ({ tenant, key }, from) => {
      let spent = 0;
      for await (const row of usage.rows(tenant, from, dayOf(clock()))) {
        if (key === null || row.keyId === key) spent += row.input + row.output;
      }
      return spent;
    });
    return new UsageMeter(options, usage, budgets);
  }

  /**
   * Reserves one request and an estimated number of tokens: all or nothing, in one turn of the event loop, so that
   * concurrent requests never get more than the limits allow. Throws BUDGET_EXHAUSTED, or RATE_LIMITED with
   * `retry_after_s`.
   */
  admit(principal: Principal, tokens: number): Reservation {
    const reserved = clampTokens(tokens);
    try {
      this.#budgets.check(principal, reserved);
      this.#limit.check(principal.id, reserved);
    } catch (error) {
      this.#options.observer.usageRefused((error as GatewayError).data?.reason as UsageRefusal);
      throw error;
    }
    this.#limit.take(principal.id, reserved);
    const reservation: Reservation = { principal, tokens: reserved };
    this.#open.set(reservation, this.#budgets.hold(principal, reserved));
    return reservation;
  }

  /**
   * Counts the reserved tokens of a spender with a budget as used, and writes them, before the request is sent: what is in
   * flight in a crash counts as estimated. Rejects with EVIDENCE_UNAVAILABLE where they cannot be written; then nothing may be sent.
   */
  async book(reservation: Reservation, server: Server): Promise<void> {
    if (!this.#open.has(reservation) || !this.#budgets.bounds(reservation.principal)) return;
    this.#takeBack(reservation);
    const row = this.#rowOf(reservation, server, { requests: 1, input: reservation.tokens, output: 0, cachedInput: 0 });
    this.#booked.set(reservation, row);
    this.#usage.add(reservation.principal.tenant, row);
    await this.#usage.flush().catch((cause: unknown) => {
      throw new GatewayError("EVIDENCE_UNAVAILABLE", "the tokens of a budget cannot be written", { cause });
    });
  }

  /**
   * Replaces the reserved tokens by those the request used, and counts them, at once. Those of a spender with a budget are written when it
   * resolves; where they cannot be, it warns, and they are written later.
   */
  settle(reservation: Reservation, { usage, ...server }: ServedUsage): Promise<void> {
    const [input, output] = [clampTokens(usage.inputTokens), clampTokens(usage.outputTokens)];
    if (!this.#end(reservation, input + output)) return Promise.resolve();
    const { principal } = reservation;
    const count = { requests: 1, input, output, cachedInput: clampTokens(usage.cachedInputTokens ?? 0) };
    this.#usage.add(principal.tenant, this.#rowOf(reservation, server, count));
    this.#options.observer.tokensUsed("input", input);
    this.#options.observer.tokensUsed("output", output);
    return this.#budgets.bounds(principal) ? this.#usage.flush().catch(this.#warn) : Promise.resolve();
  }

  /** Returns the tokens of a request that no provider served. The request itself still counts. */
  release(reservation: Reservation): void {
    this.#end(reservation, 0);
  }

  /** The rate limit headers for a response to the principal. */
  headers(principal: Principal): Readonly<Record<string, string>> {
    return rateLimitHeaders(this.#limit.states(principal.id));
  }

  /** Lists the budgets of a tenant and of its keys, with what is spent of each. */
  budgets(tenant: string): readonly BudgetStatus[] {
    return this.#budgets.list(tenant);
  }

  get today(): Day {
    return dayOf(this.#options.clock());
  }

  /** Reports the usage of a tenant, everything settled included. Rejects where it cannot be written or read. */
  async page(tenant: string, query: UsageQuery): Promise<UsagePage> {
    await this.#usage.flush();
    return reportUsage(this.#usage.rows(tenant, query.from, query.to), query);
  }

  /** Reads the usage of a tenant from one day to another, both included, by day; everything settled included. */
  async *rows(tenant: string, from: Day, to: Day): AsyncGenerator<UsageRow> {
    await this.#usage.flush();
    yield* this.#usage.rows(tenant, from, to);
  }

  /** Writes the pending counts. Warns where it cannot. */
  async close(): Promise<void> {
    await this.#usage.close().catch(this.#warn);
  }

  readonly #warn = (error: unknown): void => this.#options.onWarning("usage_write_failed", { err: String(error) });

  #rowOf({ principal: { id, keyId } }: Reservation, { provider, model }: Server, count: UsageCount): UsageRow {
    return { day: this.today, principal: id, keyId, provider, model, ...count };
  }

  #takeBack(reservation: Reservation): void {
    const row = this.#booked.get(reservation);
    if (row === undefined) return;
    this.#booked.delete(reservation);
    this.#usage.add(reservation.principal.tenant, { ...row, ...negateCounts(row) });
  }

  /** Returns false for a reservation that has ended before. */
  #end(reservation: Reservation, spent: number): boolean {
    const hold = this.#open.get(reservation);
    if (hold === undefined) return false;
    this.#open.delete(reservation);
    this.#takeBack(reservation);
    this.#limit.correct(reservation.principal.id, spent - reservation.tokens);
    this.#budgets.settle(hold, spent);
    return true;
  }
}

function hasBudget(budgets: readonly BudgetConfig[], tenant: string, keyId: string | null): boolean {
  return budgets.some((budget) => budget.tenant === tenant && budget.key !== null && budget.key === keyId);
}

/** Throws TypeError for NaN and negative counts: they would make every limit check pass. */
function clampTokens(tokens: number): number {
  if (tokens >= 0) return Math.min(Math.ceil(tokens), maxTokens);
  throw new TypeError(`UsageMeter: expected a count of tokens, got ${tokens}`);
}
