import type { Context } from "koa";
import { GatewayError } from "../action/error.ts";
import type { Principal } from "../action/principal.ts";
import type { Ledger } from "../evidence/ledger.ts";
import type { Page } from "../operation/shape.ts";
import type { WebhookNotifier } from "./webhook-notifier.ts";

export interface WebhookParts {
  readonly ledger: Ledger;
  readonly notifier: WebhookNotifier;
}

/** Answers what the webhooks of the caller's tenant were never told, the latest first. */
export async function listDeadLetters(
  { notifier }: WebhookParts,
  ctx: Context,
  caller: Principal,
  page: Page,
): Promise<void> {
  ctx.body = await notifier.listDeadLetters(caller.tenant, page);
}

/** Has a dead letter delivered again. Throws NOT_FOUND for one that is not the caller's tenant's, or cannot be. */
export async function redeliver(
  { ledger, notifier }: WebhookParts,
  ctx: Context,
  caller: Principal,
  id: string,
): Promise<void> {
  if (!(await notifier.canRedeliver(caller.tenant, id))) throw absent();
  // Before anything is sent: who asked for it is known even if this process ends with it.
  await ledger.recordEvent(caller.tenant, "admin", {
    action: "webhook.redeliver",
    principal: caller.id,
    webhook_id: id,
  });
  if (!(await notifier.redeliver(caller.tenant, id))) throw absent();
  ctx.body = { id };
}

function absent(): GatewayError {
  return new GatewayError("NOT_FOUND", "no such dead letter, or its webhook is configured no more");
}
