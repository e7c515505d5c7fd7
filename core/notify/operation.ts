import { GatewayError } from "../action/error.ts";
import { Type } from "../config/type.ts";
import type { Ledger } from "../evidence/ledger.ts";
import type { AdminHandlers, AdminOperations } from "../operation/operation.ts";
import {
  anyObject,
  anyText,
  closed,
  deadLetterParameter,
  enumOf,
  jsonResponse,
  nullable,
  page,
  paging,
  time,
  wholeNumber,
} from "../operation/shape.ts";
import type { WebhookNotifier } from "./webhook-notifier.ts";

const deadLetter = Type.Object({
  id: anyText,
  webhook: anyText,
  type: anyText,
  time,
  given_up_at: time,
  reason: enumOf(["refused", "exhausted", "overflow", "removed"]),
  attempts: wholeNumber,
  status: nullable(wholeNumber),
  data: anyObject,
});

/** Notifications that no webhook accepted. */
export const notifyOperations = {
  listDeadLetters: {
    id: "admin.dead_letters",
    method: "GET",
    path: "/admin/v1/webhooks/dead-letters",
    access: "webhook.read",
    tag: "traffic",
    summary: "List the tenant's undelivered notifications, newest first",
    query: closed(paging),
    response: jsonResponse("A page of dead letters.", page(deadLetter)),
    errors: [],
  },
  redeliver: {
    id: "admin.redeliver",
    method: "POST",
    path: "/admin/v1/webhooks/dead-letters/:id/redeliver",
    access: "webhook.redeliver",
    tag: "traffic",
    summary: "Deliver a dead letter again",
    params: { id: deadLetterParameter },
    response: jsonResponse("Its id.", Type.Object({ id: anyText })),
    errors: ["EVIDENCE_UNAVAILABLE"],
  },
} as const satisfies AdminOperations;

interface NotifySources {
  readonly ledger: Ledger;
  readonly notifier: WebhookNotifier;
}

/** Handlers of dead letters. Responses are of the caller's tenant only. */
export function notifyHandlers({ ledger, notifier }: NotifySources): AdminHandlers<typeof notifyOperations> {
  return {
    listDeadLetters: ({ tenant }, { query }) => notifier.listDeadLetters(tenant, query),
    redeliver: async ({ tenant, id: principal }, { id }) => {
      if (!(await notifier.canRedeliver(tenant, id))) throw absent();
      // Recorded before anything is sent: the request survives a crash of this process.
      await ledger.recordEvent(tenant, "admin", { action: "webhook.redeliver", principal, webhook_id: id });
      if (!(await notifier.redeliver(tenant, id))) throw absent();
      return { id };
    },
  };
}

function absent(): GatewayError {
  return new GatewayError("NOT_FOUND", deadLetterParameter.absent);
}
