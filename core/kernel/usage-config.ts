/** What one principal may ask of models in a minute, and what tenants and keys may spend on them. */
export interface UsageConfig {
  readonly requestsPerMinute: number;
  /** Input and output together. */
  readonly tokensPerMinute: number;
  readonly budgets: readonly BudgetConfig[];
}

/** Tokens, input and output together, in days and months of UTC; null: any number. */
export interface BudgetConfig {
  readonly tenant: string;
  /** The id of a key; null: all of the tenant. */
  readonly key: string | null;
  readonly tokensPerDay: number | null;
  readonly tokensPerMonth: number | null;
}
