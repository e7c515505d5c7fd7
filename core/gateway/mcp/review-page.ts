import type { Approval } from "../../action/approval.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { JsonRpcRequest, JsonRpcResponse } from "../../action/json-rpc.ts";
import type { ApprovalStore } from "../../approval/approval-store.ts";
import { type Refusal, refusalMeta } from "../../http/refusal.ts";
import type { OpenRequest } from "./caller.ts";
import { continuationOf, ownQuestion } from "./method.ts";
import type { McpSession } from "./session.ts";

/** Pages shown at once in a session: the questions of its upstreams need places too. */
const maxShown = 16;

export interface ReviewPageParts {
  /** The URL of the review page, with `{id}` for the approval's id; null: no page is shown. */
  readonly reviewUrl: string | null;
  readonly book: ApprovalStore;
  readonly newId: () => string;
}

/**
 * Shows the review page to users whose client can open URLs, once for each approval. The response of the client grants
 * nothing: yes opens the page, no ends the wait.
 */
export class ReviewPage {
  readonly #parts: ReviewPageParts;
  /** By approval id, while shown and undecided. Aborted where the client declined. */
  readonly #shown = new WeakMap<McpSession, Map<string, AbortController>>();

  constructor(parts: ReviewPageParts) {
    this.#parts = parts;
  }

  /**
   * Shows the page to the user of a held call, where the client can. The returned signal aborts, or has aborted, when the
   * call is to be answered without waiting: the user declined, or the response itself asks.
   */
  show(open: OpenRequest, approval: Approval): AbortSignal | undefined {
    const { era, session } = open.caller;
    if (this.#parts.reviewUrl === null) return undefined;
    if (era.era === "modern") return answersAtOnce(open, approval.id) ? AbortSignal.abort() : undefined;
    return session !== null && opensUrls(session.owner.capabilities) ? this.#ask(session, open, approval) : undefined;
  }

  /** The response that asks a stateless client to show the page; undefined where it cannot, or was asked already. */
  ask(open: OpenRequest, refusal: Refusal): JsonRpcResponse | undefined {
    const review = refusal.kind === "refused" ? refusal.review : null;
    if (this.#parts.reviewUrl === null || review?.kind !== "held" || review.approval.state !== "pending")
      return undefined;
    const { id } = review.approval;
    if (!canAsk(open) || responseTo(open.request, id) !== undefined) return undefined;
    const inputRequests = { [ownQuestion + id]: { method: "elicitation/create", params: this.#page(review.approval) } };
    const result = { resultType: "input_required", inputRequests, _meta: refusalMeta(refusal) };
    return { jsonrpc: "2.0", id: open.request.id, result };
  }

  #page({ id, action }: Approval): JsonObject {
    const message = `\`${action.tool}\` on \`${action.target}\` waits for review (${id}). Open the page where it is reviewed?`;
    return { mode: "url", message, url: (this.#parts.reviewUrl ?? "").replaceAll("{id}", id) };
  }

  #ask(session: McpSession, open: OpenRequest, approval: Approval): AbortSignal | undefined {
    const shown = this.#shown.get(session) ?? new Map<string, AbortController>();
    const known = shown.get(approval.id);
    if (known !== undefined) return known.signal;
    if (shown.size >= maxShown || !session.reads(open.reply)) return undefined;
    const refused = new AbortController();
    this.#shown.set(session, shown.set(approval.id, refused));
    // An approval that cannot be read is reported by every call that asks about it.
    void this.#follow(session, open, approval, refused)
      .catch(() => undefined)
      .finally(() => shown.delete(approval.id));
    return refused.signal;
  }

  /** Asks the client, and notifies it when the approval is decided. */
  async #follow(
    session: McpSession,
    { reply }: OpenRequest,
    approval: Approval,
    refused: AbortController,
  ): Promise<void> {
    const elicitationId = this.#parts.newId();
    const over = new AbortController();
    const params = { ...this.#page(approval), elicitationId };
    session.ask({ jsonrpc: "2.0", id: 0, method: "elicitation/create", params }, over.signal, reply).then(
      (answer) => "result" in answer && isDeclined(answer.result) && refused.abort(),
      () => undefined, // over before it was answered, or no place for it
    );
    await this.#parts.book.decided(approval, session.ended);
    over.abort();
    if (session.ended.aborted || refused.signal.aborted) return;
    session.deliver({ jsonrpc: "2.0", method: "notifications/elicitation/complete", params: { elicitationId } });
  }
}

/** True where a stateless call is answered at once: with the question, or because the user declined. */
function answersAtOnce(open: OpenRequest, id: string): boolean {
  if (!canAsk(open)) return false;
  const response = responseTo(open.request, id);
  return response === undefined || isDeclined(response);
}

/**
 * True where the response may ask the client. A call that continues an interrupted one must not be interrupted again: the
 * client would repeat it with the response to us alone, and what the upstream had asked for would be lost.
 */
function canAsk({ caller: { era }, request }: OpenRequest): boolean {
  if (era.era !== "modern" || !opensUrls(era.clientCapabilities)) return false;
  return continuationOf(era.era, request.params) === undefined;
}

function responseTo(request: JsonRpcRequest, id: string): Json | undefined {
  const responses = request.params?.inputResponses;
  const key = ownQuestion + id;
  return isJsonObject(responses) && Object.hasOwn(responses, key) ? responses[key] : undefined;
}

function opensUrls({ elicitation }: JsonObject): boolean {
  return isJsonObject(elicitation) && isJsonObject(elicitation.url);
}

function isDeclined(answer: Json): boolean {
  return isJsonObject(answer) && (answer.action === "decline" || answer.action === "cancel");
}
