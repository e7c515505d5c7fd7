import type { ErrorCode } from "../../kernel/error.ts";
import type { JsonObject } from "../../kernel/json.ts";
import type { BodyLimits } from "../body.ts";
import type { AdminRouteId } from "../route.ts";

/** What an operation is about; operations of one subject stand together in the document. */
export const subjects = {
  approvals: "Actions that wait for people",
  evidence: "What is on record, and whether it is sound",
  sessions: "How sessions stand, and the kill switch",
  tickets: "Capability tickets",
  manifests: "What agents were sent to do",
  policy: "What judges actions, and what it says of one",
  traffic: "Upstreams, providers, webhooks and usage",
  resilience: "Backups",
  service: "The gateway itself",
} as const;
export type Subject = keyof typeof subjects;

/** A part of a path that names one thing. What cannot be the name of any is answered as an unknown one is. */
export interface PathParameter {
  readonly description: string;
  readonly schema: JsonObject;
  /** What is said of one that is not there: `no such ticket`. */
  readonly absent: string;
}

/** One parameter of a query. A list comes as one text with commas, or where it is `repeated` as one parameter an item. */
export interface QueryParameter {
  /** JSON Schema. Its `description` is a noun phrase: refusals go on with it after "expected … to be". */
  readonly schema: JsonObject;
  readonly required?: boolean;
  readonly repeated?: boolean;
}

export interface RequestBody {
  /** JSON Schema, closed; descriptions as those of a parameter. */
  readonly schema: JsonObject;
  /** A body that fits. */
  readonly example: JsonObject;
  /** False: none at all is as good as `{}`. */
  readonly required: boolean;
  /** Null: those of `limits` in the configuration. */
  readonly limits: BodyLimits | null;
}

export interface Answer {
  readonly status: 200 | 202;
  readonly description: string;
  /** The schema of each media type; null for one that is not JSON. */
  readonly content: Readonly<Record<string, JsonObject | null>>;
}

/** One operation of the admin port, as requests are checked by it and as the document tells it. */
export interface Operation {
  /** Unique, and a good name for a method of a client. */
  readonly name: string;
  readonly subject: Subject;
  readonly summary: string;
  readonly params?: Readonly<Record<string, PathParameter>>;
  readonly query?: Readonly<Record<string, QueryParameter>>;
  readonly body?: RequestBody;
  readonly answer: Answer;
  /** How it may refuse, beside what follows from its access, its parameters and its body. */
  readonly refusals: readonly ErrorCode[];
}

/** The operations of some routes; the compiler asks for each. */
export type Operations<Id extends AdminRouteId> = Readonly<Record<Id, Operation>>;

/** What people write to the admin port is small. */
export const smallBody: BodyLimits = {
  bytes: 65_536,
  json: { depth: 8, nodes: 64, stringLength: 65_536, reader: "exact" },
};
