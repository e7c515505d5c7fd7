import type { TObject } from "@sinclair/typebox";
import { definitionFindings } from "../action/envelope.ts";
import type { ErrorCode } from "../action/error.ts";
import { Type } from "../config/type.ts";
import { type AdminHandlers, type AdminOperations, smallBody } from "../operation/operation.ts";
import {
  anyObject,
  anyText,
  boundedText,
  closed,
  definitionParameter,
  enumOf,
  jsonResponse,
  nullable,
  page,
  paging,
  queryChoice,
  ref,
  time,
  wholeNumber,
} from "../operation/shape.ts";
import type { DefinitionReviews } from "./definition-reviews.ts";
import { type ReviewHead, reviewStates } from "./entry.ts";

/** A review as the admin port returns it. */
export interface DefinitionReviewView extends Omit<ReviewHead, "state" | "denied"> {
  readonly tenant: string;
  readonly state: ReviewHead["state"] | "approved";
}

const place = Type.Object({ upstream: anyText, tool: anyText });

/** Components of the document. */
export const definitionSchemas: Readonly<Record<string, TObject>> = {
  DefinitionReview: Type.Object({
    tenant: anyText,
    id: anyText,
    state: enumOf([...reviewStates, "approved"]),
    upstream: anyText,
    tool: anyText,
    exposed_name: anyText,
    digest: anyText,
    reasons: Type.Array(Type.Object({ finding: enumOf(definitionFindings), text: anyText })),
    compared_with: nullable(place),
    replaces: Type.Array(anyText, { description: "pinned tools that the upstream no longer lists" }),
    seen_by: anyText,
    seen_key_id: anyText,
    seen_at: time,
    reviewer: Type.Optional(anyText),
    reviewed_at: Type.Optional(time),
    comment: Type.Optional(anyText),
  }),
};

const change = Type.Object({
  pointer: anyText,
  kind: enumOf(["added", "removed", "changed"]),
  before: Type.Optional(Type.Unknown()),
  after: Type.Optional(Type.Unknown()),
});

const comparison = Type.Object({
  review: ref("DefinitionReview"),
  before: nullable({ ...anyObject, description: "the pinned definition; null where there is none to compare with" }),
  after: { ...anyObject, description: "the withheld definition, whole" },
  changes: Type.Array(change),
  omitted: wholeNumber,
});

const params = { id: definitionParameter };
const body = {
  schema: closed({ comment: Type.Optional(boundedText(0, 1_000, "a text of at most 1000 characters")) }),
  example: { comment: "the release notes name this change" },
  required: false,
  limits: smallBody,
};
const reviewed = jsonResponse("The definition after the review.", Type.Object({ review: ref("DefinitionReview") }));
const reviewErrors: readonly ErrorCode[] = ["DEFINITION_STATE", "EVIDENCE_UNAVAILABLE"];

/** Review of tool definitions that are withheld. */
export const definitionOperations = {
  listDefinitions: {
    id: "admin.definitions",
    method: "GET",
    path: "/admin/v1/definitions",
    access: "upstream.read",
    tag: "definitions",
    summary: "List tool definitions that are withheld from agents, by id",
    query: closed({ state: queryChoice(reviewStates, "pending"), ...paging }),
    response: jsonResponse("A page of withheld definitions.", page(ref("DefinitionReview"))),
    errors: [],
  },
  getDefinition: {
    id: "admin.definition",
    method: "GET",
    path: "/admin/v1/definitions/:id",
    access: "upstream.read",
    tag: "definitions",
    summary: "Get a withheld definition, whole, and how it differs from the pinned one",
    params,
    response: jsonResponse("Both definitions and the changes.", comparison),
    errors: [],
  },
  approveDefinition: {
    id: "admin.definition_approve",
    method: "POST",
    path: "/admin/v1/definitions/:id/approve",
    access: "approval.review",
    tag: "definitions",
    summary: "Pin a withheld definition, so that agents are shown it; the reviewer is the holder of the key",
    params,
    body,
    response: reviewed,
    errors: ["APPROVAL_SELF_REVIEW", ...reviewErrors],
  },
  denyDefinition: {
    id: "admin.definition_deny",
    method: "POST",
    path: "/admin/v1/definitions/:id/deny",
    access: "approval.review",
    tag: "definitions",
    summary: "Deny a withheld definition; it stays withheld",
    params,
    body,
    response: reviewed,
    errors: reviewErrors,
  },
} as const satisfies AdminOperations;

interface DefinitionSources {
  readonly definitionReviews: DefinitionReviews;
}

/** Handlers of definitions. Responses are of the caller's tenant only; the reviewer is the holder of the key. */
export function definitionHandlers({
  definitionReviews: reviews,
}: DefinitionSources): AdminHandlers<typeof definitionOperations> {
  return {
    listDefinitions: async ({ tenant }, { query: { state, limit, cursor } }) => {
      const { items, next } = await reviews.list(tenant, state, limit, cursor);
      return { items: items.map((each) => viewReview(tenant, each)), next };
    },
    getDefinition: async ({ tenant }, { id }) => {
      const { review, ...compared } = await reviews.compare(tenant, id);
      return { review: viewReview(tenant, review), ...compared };
    },
    approveDefinition: async (caller, { id, body: { comment } }) => {
      const approved = await reviews.approve(id, caller, comment);
      return { review: viewReview(caller.tenant, approved, "approved") };
    },
    denyDefinition: async (caller, { id, body: { comment } }) => ({
      review: viewReview(caller.tenant, await reviews.deny(id, caller, comment)),
    }),
  };
}

function viewReview(
  tenant: string,
  { denied: _, ...head }: ReviewHead,
  state: DefinitionReviewView["state"] = head.state,
): DefinitionReviewView {
  return { tenant, ...head, state };
}
