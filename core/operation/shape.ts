import type {
  SchemaOptions,
  StringOptions,
  TInteger,
  TNull,
  TObject,
  TOptional,
  TProperties,
  TSchema,
  TString,
  TUnion,
  TUnsafe,
} from "@sinclair/typebox";
import { GatewayError } from "../action/error.ts";
import { Type } from "../config/type.ts";
import type { OperationResponse, PathParameter } from "./operation.ts";

/** An object of a request: unknown members are refused. */
export function closed<Properties extends TProperties>(properties: Properties): TObject<Properties> {
  return Type.Object(properties, { additionalProperties: false });
}

/** One of several words. */
export function enumOf<const Words extends readonly string[]>(
  words: Words,
  options: SchemaOptions = {},
): TUnsafe<Words[number]> {
  return Type.Unsafe({ type: "string", enum: words, ...options });
}

/** Text of `minimum` to `maximum` characters. */
export function boundedText(minimum: number, maximum: number, description: string): TString {
  return Type.String({ minLength: minimum, maxLength: maximum, description });
}

/** Text of at most `maximum` characters that is not blank. */
export function nonBlankText(maximum: number, description: string): TString {
  return Type.String({ maxLength: maximum, pattern: "\\S", description });
}

export function matching(pattern: string, description: string, options: StringOptions = {}): TString {
  return Type.String({ pattern, description, ...options });
}

export function nullable<Schema extends TSchema>(schema: Schema): TUnion<[Schema, TNull]> {
  return Type.Union([schema, Type.Null()]);
}

/** A reference to a schema among the document's components. */
export function ref(name: string): TUnsafe<unknown> {
  return Type.Unsafe({ $ref: `#/components/schemas/${name}` });
}

/** One page of a list. */
export function page(items: TSchema, more: TProperties = {}): TSchema {
  return Type.Object({ items: Type.Array(items), next: nextCursor, ...more });
}

/** A list that always comes whole. */
export function whole(items: TSchema): TSchema {
  return Type.Object({ items: Type.Array(items), next: Type.Null() });
}

/** A response of 200 in JSON. */
export function jsonResponse(description: string, schema: TSchema): OperationResponse {
  return { status: 200, description, content: { "application/json": schema } };
}

/** One of several words in a query; `usual` where it is left out. */
export function queryChoice<const Words extends readonly string[]>(
  words: Words,
  usual: Words[number],
): TUnsafe<Words[number]> {
  return enumOf(words, { description: listed(words), default: usual });
}

/** The same without a default. */
export function optionalQueryChoice<const Words extends readonly string[]>(
  words: Words,
): TOptional<TUnsafe<Words[number]>> {
  return Type.Optional(enumOf(words, { description: listed(words) }));
}

function listed(words: readonly string[]): string {
  return `one of ${words.map((word) => `\`${word}\``).join(", ")}`;
}

/** Some of several words, each once; all of them where it is left out. */
export function someOf<const Words extends readonly string[]>(
  words: Words,
  description: string,
): TUnsafe<readonly Words[number][]> {
  const items = { type: "string", enum: words };
  return Type.Unsafe({ type: "array", items, minItems: 1, uniqueItems: true, default: words, description });
}

const nextCursor: TSchema = Type.Union([Type.String(), Type.Null()], {
  description: "the cursor of the next page; null after the last",
});

export const anyText: TString = Type.String();
export const anyObject: TObject = Type.Object({}, { additionalProperties: true });
export const wholeNumber: TInteger = Type.Integer({ minimum: 0 });
export const points: TInteger = Type.Integer({ minimum: 0, maximum: 100, description: "0 to 100" });
export const time: TString = Type.String({ format: "date-time", description: "RFC 3339, UTC" });

/** The part of a list that a request asks for. */
export interface PageQuery {
  readonly limit: number;
  readonly cursor?: string;
}

const maxPage = 500;
const usualPage = 50;
const maxCursor = 512;
const cursorPattern = `^[\\x21-\\x7e]{1,${maxCursor}}$`;
const cursorShape = new RegExp(cursorPattern);
const cursorDescription = "the `next` of an earlier page";

const limit = Type.Integer({
  minimum: 1,
  maximum: maxPage,
  default: usualPage,
  description: `an integer from 1 to ${maxPage}: the items of a page`,
});

/** The query parameters of every list. */
export const paging = { limit, cursor: Type.Optional(matching(cursorPattern, cursorDescription)) };

/** The same for lists whose cursors are ids of approvals. */
export const approvalPaging = { limit, cursor: Type.Optional(matching("^apr_[0-9a-f]{32}$", cursorDescription)) };

/** A page as GraphQL asks for it. Throws INVALID_PARAMS. */
export function checkPage(limit: number, cursor: unknown): PageQuery {
  if (!Number.isInteger(limit) || limit < 1 || limit > maxPage) {
    throw new GatewayError("INVALID_PARAMS", `expected \`limit\` to be an integer from 1 to ${maxPage}`);
  }
  if (cursor === undefined) return { limit };
  if (typeof cursor !== "string" || !cursorShape.test(cursor)) {
    throw new GatewayError("INVALID_PARAMS", "expected `cursor` to be the `next` of an earlier page");
  }
  return { limit, cursor };
}

export const approvalParameter: PathParameter = idOf("approval", "^apr_[0-9a-f]{32}$");
export const decisionParameter: PathParameter = idOf(
  "decision",
  "^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
);
export const sessionParameter: PathParameter = {
  ...idOf("session", "^(?:session-v1-[0-9a-f]{4,64}|label:[\\x21-\\x7e]{1,128}|label64:[\\w-]{2,171})$"),
  description:
    "The session: its id, or the first digits of that, four at least, or `label:` and its label, or `label64:` and its label in base64url.",
  isSession: true,
};
export const ticketParameter: PathParameter = idOf("ticket", "^tkt_[0-9a-f]{32}$");
export const definitionParameter: PathParameter = idOf("definition", "^def_[0-9a-f]{32}$");
export const taskParameter: PathParameter = idOf("manifest", "^[a-z0-9][a-z0-9._-]{0,63}$");
export const deadLetterParameter: PathParameter = idOf(
  "dead letter",
  "^[A-Za-z0-9_-]{1,64}$",
  "no such dead letter, or its webhook is no longer configured",
);

function idOf(noun: string, pattern: string, absent: string = `no such ${noun}`): PathParameter {
  return { description: `The id of the ${noun}.`, schema: Type.String({ pattern }), absent };
}
