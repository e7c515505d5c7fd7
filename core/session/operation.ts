import type { TSchema } from "@sinclair/typebox";
import { Type } from "../config/type.ts";
import { type AdminHandlers, type AdminOperations, smallBody } from "../operation/operation.ts";
import {
  anyText,
  closed,
  enumOf,
  jsonResponse,
  nonBlankText,
  nullable,
  page,
  paging,
  points,
  queryChoice,
  ref,
  sessionParameter,
  time,
  wholeNumber,
} from "../operation/shape.ts";
import { type SessionDetail, type SessionDirectory, type SessionView, sessionSorts } from "./session-directory.ts";
import type { SessionNames } from "./session-name.ts";
import type { SessionWatch } from "./session-watch.ts";

const label = { ...nullable(anyText), description: "null where it has none, or evidence stores none" };

const status = {
  session: anyText,
  label,
  state: enumOf(["active", "stopped"]),
  principal: anyText,
  risk: points,
  actions: wholeNumber,
  reviews: wholeNumber,
  tools: wholeNumber,
  last_at: time,
};

const pastAction = Type.Object({
  protocol: anyText,
  tool: anyText,
  target: anyText,
  capability: anyText,
  decision: ref("Decision"),
  dispatched: Type.Boolean(),
  at: time,
});

const damagedSession = Type.Object(
  { session: anyText, label, state: Type.Literal("damaged") },
  { description: "Its state cannot be read: it needs a reset." },
);

/** Components of the document. */
export const sessionSchemas: Readonly<Record<string, TSchema>> = {
  Session: Type.Union([Type.Object({ ...status, taints: Type.Array(anyText) }), damagedSession]),
  SessionDetail: Type.Object({
    ...status,
    taints: Type.Array(Type.Object({ name: anyText, target: anyText, tool: anyText, action: anyText, at: time })),
    history: Type.Array(pastAction),
  }),
};

const params = { id: sessionParameter };

/** The state of sessions. */
export const sessionOperations = {
  listSessions: {
    id: "admin.session_list",
    method: "GET",
    path: "/admin/v1/sessions",
    access: "session.read",
    tag: "sessions",
    summary: "List sessions with their current state, by highest risk or latest action",
    query: closed({ sort: queryChoice(sessionSorts, "risk"), ...paging }),
    response: jsonResponse(
      "A page of sessions, and the sums of forgotten ones.",
      page(ref("Session"), {
        forgotten: Type.Object({ sessions: wholeNumber, actions: wholeNumber, highest_risk: wholeNumber }),
      }),
    ),
    errors: [],
  },
  getSession: {
    id: "admin.session_state",
    method: "GET",
    path: "/admin/v1/sessions/:id",
    access: "session.read",
    tag: "sessions",
    summary: "Get the state of one session, with its latest actions",
    params,
    response: jsonResponse("The session.", ref("SessionDetail")),
    errors: ["SESSION_DAMAGED"],
  },
  resetSession: {
    id: "admin.session_reset",
    method: "POST",
    path: "/admin/v1/sessions/:id/reset",
    access: "session.kill",
    tag: "sessions",
    summary: "Reset the risk and taints of a session",
    params,
    body: {
      schema: closed({ reason: nonBlankText(1_024, "1 to 1024 characters: why") }),
      example: { reason: "the page it read is ours" },
      required: true,
      limits: smallBody,
    },
    response: jsonResponse("The state in force.", Type.Object({ session: anyText, state: Type.Literal("reset") })),
    errors: ["EVIDENCE_UNAVAILABLE"],
  },
} as const satisfies AdminOperations;

/** A session with its label; null where it has none, or evidence stores none. */
export type Labelled<Session extends SessionView | SessionDetail> = Session & { readonly label: string | null };

interface SessionSources {
  readonly sessionNames: SessionNames;
  readonly sessionDirectory: SessionDirectory;
  readonly sessionWatch: SessionWatch;
}

/** Handlers that return the state of sessions of the caller's tenant, and reset one. */
export function sessionHandlers({
  sessionNames,
  sessionDirectory,
  sessionWatch,
}: SessionSources): AdminHandlers<typeof sessionOperations> {
  async function labelled<Session extends SessionView | SessionDetail>(
    tenant: string,
    sessions: readonly Session[],
  ): Promise<readonly Labelled<Session>[]> {
    const ids = sessions.map(({ session }) => session);
    const labels = await sessionNames.labelsOf(tenant, ids);
    return sessions.map((session) => ({ ...session, label: labels.get(session.session) ?? null }));
  }

  return {
    listSessions: async ({ tenant }, { query }) => {
      const page = await sessionDirectory.list(tenant, query.sort, query.limit, query.cursor);
      return { ...page, items: await labelled(tenant, page.items) };
    },
    getSession: async ({ tenant }, { id }) => (await labelled(tenant, [sessionDirectory.show(tenant, id)]))[0],
    resetSession: async ({ tenant, id: by }, { id: session, body }) => {
      sessionDirectory.checkKnown(tenant, session);
      await sessionWatch.reset(tenant, session, by, body.reason);
      return { session, state: "reset" };
    },
  };
}
