import { isJsonObject, type Json } from "../../kernel/json.ts";

/** Whether a value is of a kind; undefined is a member that is not there. */
export type Shape = (value: Json | undefined) => boolean;

export const text: Shape = (value) => typeof value === "string";

/** An integer from 0 to 2^53 − 1. */
export const count: Shape = (value) => isCount(value);

/** SHA-256 in lower-case hex. */
export const digest: Shape = (value) => isDigest(value);

/** RFC 3339, milliseconds, UTC. */
export const time: Shape = matching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

export function matching(pattern: RegExp): Shape {
  return (value) => typeof value === "string" && pattern.test(value);
}

export function exactly(expected: Json | undefined): Shape {
  return (value) => value === expected;
}

export function oneOf(...shapes: readonly Shape[]): Shape {
  return (value) => shapes.some((shape) => shape(value));
}

export function listOf(shape: Shape): Shape {
  return (value) => Array.isArray(value) && value.every(shape);
}

/** An object with at least these members. */
export function objectWith(members: Readonly<Record<string, Shape>>): Shape {
  const shapes = Object.entries(members);
  return (value) => isJsonObject(value) && shapes.every(([name, shape]) => shape(own(value, name)));
}

/** An object with these members and no other. */
export function closedObject(members: Readonly<Record<string, Shape>>): Shape {
  const shape = objectWith(members);
  return (value) => shape(value) && Object.keys(value as object).length === Object.keys(members).length;
}

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

export function isDigest(value: unknown): value is string {
  return typeof value === "string" && /^[0-9a-f]{64}$/.test(value);
}

function own(value: { readonly [member: string]: Json }, name: string): Json | undefined {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}
