import type { Static, TObject, TSchema } from "@sinclair/typebox";
import { Ajv, type ValidateFunction } from "ajv";
import { sqlDialects } from "../../action/action-fact.ts";
import { type Capability, capabilities } from "../../action/capability.ts";
import { type DirectProtocol, directProtocols } from "../../action/envelope.ts";
import type { Json, JsonObject } from "../../action/json.ts";
import { Type } from "../../config/type.ts";
import { invalidParams } from "../../operation/fault.ts";
import { boundedText, closed, enumOf } from "../../operation/shape.ts";

/** An action that an agent will take by itself, if it may. */
export interface DirectAction {
  readonly protocol: DirectProtocol;
  readonly tool: string;
  readonly target: string;
  readonly arguments: JsonObject;
  /** The capability that the asker states; undefined where it states none. */
  readonly claimed: Capability | undefined;
  /** The capability where neither the operator nor the asker states one. */
  readonly usual: Capability;
  /** The time to wait for a review, in milliseconds; 0: not at all. */
  readonly waitMs: number;
}

/** The longest wait for a review that a request may ask for, in milliseconds. */
export const maxAskedWaitMs = 600_000;

const name = boundedText(1, 512, "a text of 1 to 512 characters");
const text = Type.String({ minLength: 1, description: "a text that is not empty" });
const folder = boundedText(1, 4_096, "a path of 1 to 4096 characters");
const details = Type.Unsafe<JsonObject>({ type: "object", description: "an object" });
const words = Type.Unsafe<string | readonly string[]>({
  type: ["string", "array"],
  items: { type: "string" },
  minLength: 1,
  minItems: 1,
  maxItems: 4_096,
  description: "a text that is not empty, or a list of 1 to 4096 texts",
});
const headers = Type.Unsafe<Readonly<Record<string, string>>>({
  type: "object",
  additionalProperties: { type: "string", description: "a text" },
  maxProperties: 128,
  description: "an object of at most 128 texts",
});

const statedAction = closed({
  protocol: enumOf(directProtocols),
  tool: name,
  target: name,
  capability: Type.Optional(enumOf(capabilities)),
  arguments: Type.Unsafe<JsonObject>({ type: "object", description: "an object" }),
  wait_ms: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: maxAskedWaitMs,
      description: `a whole number of milliseconds, 0 to ${maxAskedWaitMs}`,
    }),
  ),
});

type StatedAction = Static<typeof statedAction>;

/**
 * The arguments of each protocol by the names that facts are read from. `details` holds whatever else there is to say of the
 * action: rules and reviewers see it, facts do not.
 */
const argumentShapes: Readonly<Record<DirectProtocol, TSchema>> = {
  shell: closed({ command: words, cwd: Type.Optional(folder), details: Type.Optional(details) }),
  git: closed({ args: words, cwd: Type.Optional(folder), details: Type.Optional(details) }),
  sql: closed({
    statement: text,
    dialect: Type.Optional(enumOf(sqlDialects)),
    details: Type.Optional(details),
  }),
  http: closed({
    url: text,
    method: Type.Optional(
      Type.String({ pattern: "^[A-Z]{1,32}$", description: "a method of HTTP in capital letters" }),
    ),
    headers: Type.Optional(headers),
    body: Type.Optional(Type.Unsafe<Json>({})),
    details: Type.Optional(details),
  }),
  mcp: Type.Unsafe<JsonObject>({ type: "object", description: "an object" }),
};

const ajv = new Ajv({
  strict: true,
  allowUnionTypes: true,
  verbose: true,
  logger: false,
  validateSchema: false,
});
const isStated = ajv.compile<StatedAction>(statedAction);
const areArguments = Object.fromEntries(
  directProtocols.map((protocol) => [protocol, ajv.compile(argumentShapes[protocol] as TObject)]),
) as Readonly<Record<DirectProtocol, ValidateFunction>>;

/** Reads what an asker states. Throws INVALID_PARAMS that names the place, what was expected there and what came. */
export function readDirectAction(body: Json): DirectAction {
  if (!isStated(body)) throw invalidParams("body", isStated.errors?.[0]);
  const { protocol, tool, target, capability, wait_ms: waitMs = 0 } = body;
  checkArguments(protocol, body.arguments);
  return { protocol, tool, target, arguments: body.arguments, claimed: capability, usual: "execute", waitMs };
}

/** Throws INVALID_PARAMS unless the arguments of a direct action have the names and types of its protocol. */
export function checkArguments(protocol: DirectProtocol, args: JsonObject): void {
  const isFit = areArguments[protocol];
  if (!isFit(args)) throw invalidParams("arguments", isFit.errors?.[0]);
}
