import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import type { Principal } from "../action/principal.ts";
import type { BudgetConfig } from "../config/peer-config.ts";
import { type Day, dayOf, nextPeriod, type PeriodUnit, periodOf } from "./usage-row.ts";

/** Whose tokens one limit counts. */
type Spender = Pick<Principal, "tenant" | "keyId">;

/** Tokens that are spoken for until their request is settled. */
export interface Hold {
  readonly spender: Spender;
  readonly tokens: number;
  readonly day: Day;
}

/** One limit of one budget, and what is spent of it in the period that is running. */
interface Account {
  readonly tenant: string;
  readonly key: string | null;
  readonly unit: PeriodUnit;
  readonly limit: number;
  period: string;
  /** What is held included. */
  spent: number;
}

/** What the running period of each budget has seen so far: `from` is its first day. */
type SpentSince = (spender: { readonly tenant: string; readonly key: string | null }, from: Day) => Promise<number>;

/**
 * Tokens a day and a month, for tenants and keys. What is held counts as spent, so that however many ask at once, no
 * more is let in than fits. The day never goes back: setting the clock back does not give anything back.
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

  /** Asks `spentSince` for what each budget has spent already, under this process or another. */
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

  /** Throws BUDGET_EXHAUSTED where so many tokens do not fit into every budget; takes nothing. */
  check(spender: Spender, tokens: number): void {
    const day = this.#roll();
    for (const account of this.#accounts) {
      if (counts(account, spender) && account.spent + Math.max(tokens, 1) > account.limit) {
        throw exhausted(account, Date.parse(nextPeriod(account.unit, day)) - this.#clock());
      }
    }
  }

  hold(spender: Spender, tokens: number): Hold {
    const day = this.#roll();
    for (const account of this.#accounts) if (counts(account, spender)) account.spent += tokens;
    return { spender, tokens, day };
  }

  /** Puts what was spent in the place of what was held. It counts in the period that it ends in. */
  settle({ spender, tokens: held, day }: Hold, spent: number): void {
    this.#roll();
    for (const account of this.#accounts) {
      if (!counts(account, spender)) continue;
      account.spent += account.period === periodOf(account.unit, day) ? spent - held : spent;
    }
  }

  /** Begins the periods that the clock has come to. */
  #roll(): Day {
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

function counts({ tenant, key }: Account, spender: Spender): boolean {
  return tenant === spender.tenant && (key === null || key === spender.keyId);
}

function exhausted({ key, unit, limit, spent }: Account, resetMs: number): GatewayError {
  const whose = key === null ? "this tenant" : "this key";
  const remaining = Math.max(0, limit - spent);
  const resetS = Math.max(0, Math.ceil(resetMs / 1_000));
  return new GatewayError(
    "BUDGET_EXHAUSTED",
    `expected at most ${limit} tokens a ${unit} of ${whose}, of which ${remaining} are left`,
    { data: { reason: "budget", unit, limit, remaining, reset_s: resetS } },
  );
}
