import type { ErrorCode } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import { killReasons, killScopes } from "../kill/kill.ts";
import { type AdminHandlers, type Operations, type RequestBody, smallBody } from "../operation/operation.ts";
import { choice, paging, sessionId } from "../operation/request.ts";
import {
  answers,
  anyText,
  closed,
  constant,
  count,
  flag,
  list,
  nullable,
  object,
  oneOf,
  page,
  points,
  ref,
  text,
  texts,
  time,
  words,
} from "../operation/shape.ts";
import { type SessionDirectory, sessionSorts } from "./session-directory.ts";
import type { SessionWatch } from "./session-watch.ts";

type SessionRouteId =
  | "admin.session_list"
  | "admin.session_state"
  | "admin.session_reset"
  | "admin.killed"
  | "admin.kill"
  | "admin.release"
  | "admin.kills"
  | "admin.kill_scope"
  | "admin.release_scope";

const standing = {
  session: anyText,
  state: oneOf(["active", "stopped"]),
  principal: anyText,
  risk: points,
  actions: count,
  reviews: count,
  tools: count,
  last_at: time,
};

const past = {
  protocol: anyText,
  tool: anyText,
  target: anyText,
  capability: anyText,
  decision: ref("Decision"),
  dispatched: flag,
  at: time,
};

const kill = {
  reason: oneOf(killReasons),
  by: nullable(anyText),
  note: nullable(anyText),
  killed_at: anyText,
};

/** What the answers about sessions are made of. */
export const sessionSchemas: Readonly<Record<string, JsonObject>> = {
  Session: {
    anyOf: [
      object({ ...standing, taints: texts }),
      object({ session: anyText, state: constant("damaged") }, [], {
        description: "Nothing else is known of it: it needs a reset.",
      }),
    ],
  },
  SessionDetail: object({
    ...standing,
    taints: list(object({ name: anyText, target: anyText, tool: anyText, action: anyText, at: time })),
    history: list(object(past)),
  }),
  Kill: object({ scope: oneOf(killScopes), subject: nullable(anyText), ...kill }),
};

const params = { id: sessionId };
const reason = words(1_024, "1 to 1024 characters: why");
const note = words(1_024, "1 to 1024 characters: why, for whoever asks later");
const scope = oneOf(killScopes, { description: `one of ${killScopes.join(", ")}` });
const subject = text(1, 256, "the id of the session or principal; left out for a tenant and the gateway");
const whole: readonly ErrorCode[] = ["SESSION_STATE", "EVIDENCE_UNAVAILABLE"];

function needs(example: JsonObject, schema: JsonObject, required: boolean): RequestBody {
  return { schema, example, required, limits: smallBody };
}

function done(state: string): ReturnType<typeof answers> {
  return answers("What is in force now.", object({ session: anyText, state: constant(state) }));
}

function doneTo(state: string): ReturnType<typeof answers> {
  const told = { scope: oneOf(killScopes), subject: nullable(anyText), state: constant(state) };
  return answers("What is in force now.", object(told));
}

/** How sessions stand, and what stops them. */
export const sessionOperations: Operations<SessionRouteId> = {
  "admin.session_list": {
    name: "listSessions",
    subject: "sessions",
    summary: "The sessions as they stand now, those with the highest risk, or those that acted last, first",
    query: { sort: choice(sessionSorts, "risk"), ...paging },
    answer: answers(
      "A page of sessions, and a sum of those forgotten.",
      page(ref("Session"), { forgotten: object({ sessions: count, actions: count, highest_risk: count }) }),
    ),
    refusals: [],
  },
  "admin.session_state": {
    name: "getSession",
    subject: "sessions",
    summary: "How one session stands, with its last actions",
    params,
    answer: answers("The session.", ref("SessionDetail")),
    refusals: ["SESSION_STATE"],
  },
  "admin.session_reset": {
    name: "resetSession",
    subject: "sessions",
    summary: "Takes risk and taints from a session, because somebody trusts it again",
    params,
    body: needs({ reason: "the page it read is ours" }, closed({ reason }), true),
    answer: done("reset"),
    refusals: ["EVIDENCE_UNAVAILABLE"],
  },
  "admin.killed": {
    name: "listKilledSessions",
    subject: "sessions",
    summary: "The sessions that stand stopped",
    query: paging,
    answer: answers("A page of sessions.", page(object({ session: anyText, ...kill }))),
    refusals: [],
  },
  "admin.kill": {
    name: "killSession",
    subject: "sessions",
    summary: "Stops a session: nothing of it is let through until it is released",
    params,
    body: needs({ note: "it reads what it should not" }, closed({ note }, ["note"]), false),
    answer: done("killed"),
    refusals: whole,
  },
  "admin.release": {
    name: "releaseSession",
    subject: "sessions",
    summary: "Lets a stopped session go on",
    params,
    body: needs({ reason: "it was looked at" }, closed({ reason }), true),
    answer: done("released"),
    refusals: whole,
  },
  "admin.kills": {
    name: "listKills",
    subject: "sessions",
    summary: "All that stands stopped: sessions, principals, the tenant",
    query: paging,
    answer: answers("A page of kills.", page(ref("Kill"))),
    refusals: [],
  },
  "admin.kill_scope": {
    name: "kill",
    subject: "sessions",
    summary: "Stops a session, a principal, the tenant or the whole gateway",
    body: needs({ scope: "tenant", note: "an incident" }, closed({ scope, subject, note }, ["subject", "note"]), true),
    answer: doneTo("killed"),
    refusals: ["NOT_FOUND", "ROLE_FORBIDDEN", ...whole],
  },
  "admin.release_scope": {
    name: "release",
    subject: "sessions",
    summary: "Lets what was stopped go on",
    body: needs({ scope: "tenant", reason: "it is over" }, closed({ scope, subject, reason }, ["subject"]), true),
    answer: doneTo("released"),
    refusals: ["NOT_FOUND", "ROLE_FORBIDDEN", ...whole],
  },
};

export interface SessionAdminParts {
  readonly sessionDirectory: SessionDirectory;
  readonly sessionWatch: SessionWatch;
}

/** Handlers that tell how sessions of the caller's tenant stand, and take risk and taints from one. */
export function sessionAdminHandlers({
  sessionDirectory: directory,
  sessionWatch: watch,
}: SessionAdminParts): AdminHandlers<"admin.session_list" | "admin.session_state" | "admin.session_reset"> {
  return {
    "admin.session_list": async (ctx, { tenant }, { query }) => {
      ctx.body = await directory.list(tenant, query.sort, query.limit, query.cursor);
    },
    "admin.session_state": async (ctx, { tenant }, { id }) => {
      ctx.body = directory.show(tenant, id);
    },
    "admin.session_reset": async (ctx, { tenant, id: by }, { id: session, body }) => {
      directory.checkKnown(tenant, session);
      await watch.reset(tenant, session, by, body.reason);
      ctx.body = { session, state: "reset" };
    },
  };
}
