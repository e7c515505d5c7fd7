import type { Approval } from "../../action/approval.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { JsonRpcRequest, JsonRpcResponse } from "../../action/json-rpc.ts";
import type { ApprovalStore } from "../../approval/approval-store.ts";
import { type Refusal, refusalMeta } from "../../http/refusal.ts";
import type { OpenRequest } from "./caller.ts";
import { continuationOf, ownQuestion } from "./request-meta.ts";
import type { McpSession } from "./session.ts";

/** Of a session: the questions of its upstreams need places too. */
const maxShown = 16;

export interface ReviewPageParts {
  /** Where people review, `{id}` for the approval's id; null: nobody is sent anywhere. */
  readonly reviewUrl: string | null;
  readonly book: ApprovalStore;
  readonly newId: () => string;
}

/**
 * The page where people review, shown to users whose client can open a URL. It is shown once for an approval, and what
 * the client answers grants nothing: a yes opens a page, a no says that nobody there waits for the review.
 */
export class ReviewPage {
  readonly #parts: ReviewPageParts;
  /** By the approval's id, from when it is shown until it is decided. Aborted where the client said no. */
  readonly #shown = new WeakMap<McpSession, Map<string, AbortController>>();

  constructor(parts: ReviewPageParts) {
    this.#parts = parts;
  }

  /**
   * Shows the page to the user of a call that is held, as far as the client can. The signal aborts, or has, when the
   * call is to be answered without waiting for the review: the user does not want to, or is to be asked by the answer.
   */
  show(open: OpenRequest, approval: Approval): AbortSignal | undefined {
    const { era, session } = open.caller;
    if (this.#parts.reviewUrl === null) return undefined;
    if (era.era === "modern") return answersAtOnce(open, approval.id) ? AbortSignal.abort() : undefined;
    return session !== null && opensUrls(session.owner.capabilities) ? this.#ask(session, open, approval) : undefined;
  }

  /** The answer that asks a stateless client to show the page; undefined where it is not to be asked, or was. */
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
    // Where the approval cannot be read, nobody needs to be told here: every call that asks about it is.
    void this.#follow(session, open, approval, refused)
      .catch(() => undefined)
      .finally(() => shown.delete(approval.id));
    return refused.signal;
  }

  /** From the question to the word that it is over, which is no part of any request. */
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
      (answer) => "result" in answer && refuses(answer.result) && refused.abort(),
      () => undefined, // over before it was answered, or no place for it
    );
    await this.#parts.book.decided(approval, session.ended);
    over.abort();
    if (session.ended.aborted || refused.signal.aborted) return;
    session.deliver({ jsonrpc: "2.0", method: "notifications/elicitation/complete", params: { elicitationId } });
  }
}

/** Whether a stateless call is to be answered at once: with the question, or because the user said no to it. */
function answersAtOnce(open: OpenRequest, id: string): boolean {
  if (!canAsk(open)) return false;
  const response = responseTo(open.request, id);
  return response === undefined || refuses(response);
}

/**
 * Whether an answer may ask instead of telling. What continues an interrupted call must not be interrupted in its turn:
 * the client would repeat it with our answer alone, and what the upstream had asked would be lost.
 */
function canAsk({ caller, request }: OpenRequest): boolean {
  const { era } = caller;
  return era.era === "modern" && opensUrls(era.clientCapabilities) && continuationOf(caller, request, []) === undefined;
}

function responseTo(request: JsonRpcRequest, id: string): Json | undefined {
  const responses = request.params?.inputResponses;
  const key = ownQuestion + id;
  return isJsonObject(responses) && Object.hasOwn(responses, key) ? responses[key] : undefined;
}

function opensUrls({ elicitation }: JsonObject): boolean {
  return isJsonObject(elicitation) && isJsonObject(elicitation.url);
}

function refuses(answer: Json): boolean {
  return isJsonObject(answer) && (answer.action === "decline" || answer.action === "cancel");
}
