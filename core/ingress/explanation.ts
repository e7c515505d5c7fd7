import type { Ledger } from "../evidence/ledger.ts";
import type { Explainer } from "../pipeline/explainer.ts";
import type { AdminHandlers } from "./api/handler.ts";

export interface ExplanationParts {
  readonly explainer: Explainer;
  readonly ledger: Pick<Ledger, "recordEvent">;
}

/**
 * The handler that says why something was decided in the caller's tenant. It shows values of arguments: that somebody
 * looked is on record before they are told.
 */
export function explanationHandlers({ explainer, ledger }: ExplanationParts): AdminHandlers<"admin.explain"> {
  return {
    "admin.explain": async (ctx, { tenant, id: principal }, asked) => {
      const explanation = await explainer.explain(tenant, asked.id);
      const { id: decision } = explanation;
      await ledger.recordEvent(tenant, "admin", { action: "decision.explain", principal, decision });
      ctx.body = explanation;
    },
  };
}
