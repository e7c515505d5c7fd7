import type { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import type { TokenUsage } from "../action/model-api.ts";
import type { Principal } from "../action/principal.ts";
import type { BudgetConfig, UsageConfig } from "../config/peer-config.ts";
import { Budgets, type Hold } from "./budget.ts";
import { RateLimit, type RateUnit, rateLimitHeaders } from "./rate-limit.ts";
import { reportUsage, type UsagePage, type UsageQuery } from "./usage-report.ts";
import { type Day, dayOf, type UsageRow } from "./usage-row.ts";
import { UsageBook, type UsageStore } from "./usage-store.ts";

/** Why a request was not let in. */
type UsageRefusal = RateUnit | "budget" | "principals";

interface UsageObserver {
  tokensUsed(direction: "input" | "output", count: number): void;
  usageRefused(reason: UsageRefusal): void;
}

interface UsageMeterOptions {
  readonly config: UsageConfig;
  readonly store: UsageStore;
  readonly clock: Clock;
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
  readonly observer: UsageObserver;
  readonly onWarning: (message: string, fields: object) => void;
}

/** A request that was let in. It ends in `settle` or in `release`; the first of them counts. */
export interface Reservation {
  readonly principal: Principal;
  /** What it was let in with. */
  readonly tokens: number;
}

/** Who answered, by the names of the configuration, and what it took. */
interface ServedUsage {
  readonly provider: string;
  readonly model: string;
  readonly usage: TokenUsage;
}

/** No request takes more in one direction: what a provider says beyond it is not believed. */
const maxTokens = 10_000_000;

/** Lets model requests in by their principal's limits and the budgets, and keeps count of what they took. */
export class UsageMeter {
  readonly #options: UsageMeterOptions;
  readonly #book: UsageBook;
  readonly #budgets: Budgets;
  readonly #limit: RateLimit;
  readonly #open = new WeakMap<Reservation, Hold>();

  private constructor(options: UsageMeterOptions, book: UsageBook, budgets: Budgets) {
    this.#options = options;
    this.#book = book;
    this.#budgets = budgets;
    this.#limit = new RateLimit({ ...options.config, elapsedMs: options.elapsedMs });
  }

  /** Reads from the store what the running day and month have spent of each budget. */
  static async open(options: UsageMeterOptions): Promise<UsageMeter> {
    const { store, clock, onWarning, config } = options;
    const stays = (tenant: string, { keyId }: UsageRow): boolean => hasBudget(config.budgets, tenant, keyId);
    const book = new UsageBook({ store, stays, onWarning });
    const budgets = await Budgets.open(config.budgets, clock, async ({ tenant, key }, from) => {
      let spent = 0;
      for await (const row of book.rows(tenant, from, dayOf(clock()))) {
        if (key === null || row.keyId === key) spent += row.input + row.output;
      }
      return spent;
    });
    return new UsageMeter(options, book, budgets);
  }

  /**
   * Takes a request and so many tokens of what the principal may use: all or nothing, in one turn. What is taken is
   * spoken for, so that however many ask at once, no more get in than there is room for what they asked with.
   * Throws BUDGET_EXHAUSTED, or RATE_LIMITED with `retry_after_s`.
   */
  admit(principal: Principal, tokens: number): Reservation {
    const asked = within(tokens);
    try {
      this.#budgets.check(principal, asked);
      this.#limit.check(principal.id, asked);
    } catch (error) {
      this.#options.observer.usageRefused((error as GatewayError).data?.reason as UsageRefusal);
      throw error;
    }
    this.#limit.take(principal.id, asked);
    const reservation: Reservation = { principal, tokens: asked };
    this.#open.set(reservation, this.#budgets.hold(principal, asked));
    return reservation;
  }

  /** Puts what a request took in the place of what it was let in with, and counts it. */
  settle(reservation: Reservation, { provider, model, usage }: ServedUsage): void {
    const [input, output] = [within(usage.inputTokens), within(usage.outputTokens)];
    if (!this.#close(reservation, input + output)) return;
    const { id, keyId, tenant } = reservation.principal;
    const count = { requests: 1, input, output, cachedInput: within(usage.cachedInputTokens ?? 0) };
    this.#book.add(tenant, { day: this.today, principal: id, keyId, provider, model, ...count });
    this.#options.observer.tokensUsed("input", input);
    this.#options.observer.tokensUsed("output", output);
  }

  /** Gives back the tokens of a request that no provider served. It stays a request of its minute. */
  release(reservation: Reservation): void {
    this.#close(reservation, 0);
  }

  /** Where the principal stands with its limits, for any answer to it. */
  headers(principal: Principal): Readonly<Record<string, string>> {
    return rateLimitHeaders(this.#limit.states(principal.id));
  }

  get today(): Day {
    return dayOf(this.#options.clock());
  }

  /** What a tenant used, everything settled included. Rejects where that cannot be written or read. */
  async page(tenant: string, query: UsageQuery): Promise<UsagePage> {
    await this.#book.flush();
    return reportUsage(this.#book.rows(tenant, query.from, query.to), query);
  }

  /** Writes what was counted. Warns where it cannot. */
  async close(): Promise<void> {
    await this.#book.close().catch((error) => {
      this.#options.onWarning("usage could not be written", { err: String(error) });
    });
  }

  #close(reservation: Reservation, spent: number): boolean {
    const hold = this.#open.get(reservation);
    if (hold === undefined) return false;
    this.#open.delete(reservation);
    this.#limit.correct(reservation.principal.id, spent - reservation.tokens);
    this.#budgets.settle(hold, spent);
    return true;
  }
}

function hasBudget(budgets: readonly BudgetConfig[], tenant: string, keyId: string | null): boolean {
  return budgets.some((budget) => budget.tenant === tenant && budget.key !== null && budget.key === keyId);
}

/** A count that is none would make every comparison false, and every limit none. */
function within(tokens: number): number {
  if (tokens >= 0) return Math.min(Math.ceil(tokens), maxTokens);
  throw new TypeError(`UsageMeter: expected a count of tokens, got ${tokens}`);
}
