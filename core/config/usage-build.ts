import type { UsageConfig } from "../kernel/usage-config.ts";
import type { FileForm } from "./schema.ts";

/** The part of `buildConfig` about what may be asked of models. */
export function buildUsage(form: FileForm["usage"]): UsageConfig {
  return {
    requestsPerMinute: form.requests_per_minute,
    tokensPerMinute: form.tokens_per_minute,
    budgets: form.budgets.map(({ tenant, key, tokens_per_day: tokensPerDay, tokens_per_month: tokensPerMonth }) => ({
      tenant,
      key,
      tokensPerDay,
      tokensPerMonth,
    })),
  };
}
