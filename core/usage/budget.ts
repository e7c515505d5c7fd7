import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import type { Principal } from "../action/principal.ts";
import type { BudgetConfig } from "../config/gateway-config.ts";
import { type Day, dayOf, nextPeriod, type PeriodUnit, periodOf } from "./usage-row.ts";

/** The principal whose tokens are counted. */
type Spender = Pick<Principal, "tenant" | "keyId">;

/** Tokens that are reserved until their request is settled. */
export interface TokenHold {
  readonly spender: Spender;
  readonly tokens: number;
  readonly day: Day;
}

/** One limit of one budget, and the tokens spent in its current period. */
interface Account {
  readonly tenant: string;
  readonly key: string | null;
  readonly unit: PeriodUnit;
  readonly limit: number;
  period: string;
  /** Held tokens included. */
  spent: number;
}

/** One limit of one budget, and how much of it is spent in the current period, tokens that requests hold included. */
export interface BudgetStatus extends Pick<Account, "key" | "limit" | "spent" | "unit"> {
  /** The instant at which the next period begins: RFC 3339, UTC. */
  readonly resets_at: string;
}

/** Sums the tokens spent since a day, that day included. */
type SpentSince = (spender: { readonly tenant: string; readonly key: string | null }, from: Day) => Promise<number>;

/**
 * Limits of tokens a day and a month, for tenants and keys. Held tokens count as spent, so that concurrent requests never
 * get more than the budget has. The day never goes back: setting the clock back returns nothing.
 */
export class Budgets {
  readonly #clock: Clock;
  readonly #accounts: readonly Account[];
  #day: Day;

  private constructor(accounts: readonly Account[], day: Day, clock: Clock) {
    this.#accounts = accounts;
    this.#day = day;
    this.#clock = clock;
  }

  /** Opens the budgets with what `spentSince` returns for their current periods. */
  static async open(configs: readonly BudgetConfig[], clock: Clock, spentSince: SpentSince): Promise<Budgets> {
    const day = dayOf(clock());
    const accounts: Account[] = [];
    for (const { tenant, key, tokensPerDay, tokensPerMonth } of configs) {
      const limits = [["day", tokensPerDay] as const, ["month", tokensPerMonth] as const];
      for (const [unit, limit] of limits) {
        if (limit === null) continue;
        const spent = await spentSince({ tenant, key }, unit === "day" ? day : `${day.slice(0, 7)}-01`);
        accounts.push({ tenant, key, unit, limit, period: periodOf(unit, day), spent });
      }
    }
    return new Budgets(accounts, day, clock);
  }

  /** Throws BUDGET_EXHAUSTED where the tokens do not fit into every budget of the spender. Changes nothing. */
  check(spender: Spender, tokens: number): void {
    const day = this.#startPeriods();
    for (const account of this.#accounts) {
      if (isSpentBy(account, spender) && account.spent + Math.max(tokens, 1) > account.limit) {
        throw exhausted(account, Date.parse(nextPeriod(account.unit, day)) - this.#clock());
      }
    }
  }

  /** True where a budget applies to the spender. */
  bounds(spender: Spender): boolean {
    return this.#accounts.some((account) => isSpentBy(account, spender));
  }

  /** Lists the limits of a tenant and of its keys, in the order of the configuration. */
  list(tenant: string): readonly BudgetStatus[] {
    const day = this.#startPeriods();
    return this.#accounts
      .filter((account) => account.tenant === tenant)
      .map(({ key, unit, limit, spent }) => {
        return { key, unit, limit, spent, resets_at: new Date(nextPeriod(unit, day)).toISOString() };
      });
  }

  hold(spender: Spender, tokens: number): TokenHold {
    const day = this.#startPeriods();
    for (const account of this.#accounts) if (isSpentBy(account, spender)) account.spent += tokens;
    return { spender, tokens, day };
  }

  /** Replaces held tokens by the tokens spent. They count in the period in which the request ends. */
  settle({ spender, tokens: held, day }: TokenHold, spent: number): void {
    this.#startPeriods();
    for (const account of this.#accounts) {
      if (!isSpentBy(account, spender)) continue;
      account.spent += account.period === periodOf(account.unit, day) ? spent - held : spent;
    }
  }

  /** Starts new periods where the clock has reached them. Returns the current day. */
  #startPeriods(): Day {
    const day = dayOf(this.#clock());
    if (day <= this.#day) return this.#day;
    this.#day = day;
    for (const account of this.#accounts) {
      const period = periodOf(account.unit, day);
      if (period === account.period) continue;
      account.period = period;
      account.spent = 0;
    }
    return day;
  }
}

function isSpentBy({ tenant, key }: Account, spender: Spender): boolean {
  return tenant === spender.tenant && (key === null || key === spender.keyId);
}

function exhausted({ key, unit, limit, spent }: Account, resetMs: number): GatewayError {
  const owner = key === null ? "this tenant" : "this key";
  const remaining = Math.max(0, limit - spent);
  const resetS = Math.max(0, Math.ceil(resetMs / 1_000));
  return new GatewayError(
    "BUDGET_EXHAUSTED",
    `expected at most ${limit} tokens a ${unit} of ${owner}, of which ${remaining} are left`,
    { data: { reason: "budget", unit, limit, remaining, reset_s: resetS } },
  );
}
