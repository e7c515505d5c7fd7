import { type FaultList, quoteInput } from "./fault.ts";
import type { Draft } from "./field.ts";
import { refuseRepeats } from "./repetition.ts";
import type { FileForm } from "./schema.ts";

type BudgetForm = FileForm["usage"]["budgets"][number];

/** The part of `checkRules` about what may be asked of models. */
export function checkUsage(draft: NonNullable<Draft<FileForm>>, faults: FaultList): void {
  const at = (index: number): string => `usage.budgets[${index}]`;
  const budgets = draft.usage?.budgets ?? [];
  refuseRepeats(
    budgets.map((budget) => (budget?.tenant === undefined ? undefined : `${budget.tenant}/${budget.key ?? "*"}`)),
    at,
    "one budget of each tenant and key",
    faults,
  );
  const known = callersOf(draft);
  budgets.forEach((budget, index) => {
    if (budget === undefined) return;
    checkLimit(budget, at(index), faults);
    if (known !== undefined) checkSpender(budget, known, at(index), faults);
  });
}

interface Caller {
  readonly tenant: string;
  readonly key: string;
}

/** Models are asked with a key alone. Undefined where one of the keys was a fault already. */
function callersOf({ keys }: NonNullable<Draft<FileForm>>): readonly Caller[] | undefined {
  const callers: Caller[] = [];
  for (const key of keys ?? [undefined]) {
    if (key?.id === undefined || key.tenant === undefined) return undefined;
    callers.push({ tenant: key.tenant, key: key.id });
  }
  return callers;
}

/** A budget of nobody is one of somebody misspelt, whose tokens nothing would bound. */
function checkSpender(
  { tenant, key }: NonNullable<Draft<BudgetForm>>,
  known: readonly Caller[],
  path: string,
  faults: FaultList,
): void {
  if (tenant === undefined || key === undefined) return;
  if (!known.some((caller) => caller.tenant === tenant)) {
    faults.add(`${path}.tenant`, `expected the tenant of a key, got ${quoteInput(tenant)}`);
  } else if (key !== null && !known.some((caller) => caller.tenant === tenant && caller.key === key)) {
    faults.add(`${path}.key`, `expected the id of a key of \`${tenant}\`, got ${quoteInput(key)}`);
  }
}

function checkLimit(budget: NonNullable<Draft<BudgetForm>>, path: string, faults: FaultList): void {
  if (budget.tokens_per_day !== null || budget.tokens_per_month !== null) return;
  faults.add(path, "expected `tokens_per_day` or `tokens_per_month`, got neither");
}
