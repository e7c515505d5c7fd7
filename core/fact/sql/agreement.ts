import { type ActionEffect, strictestEffect } from "../../action/action-fact.ts";
import type { SqlOpinion } from "./opinion.ts";

/** Kinds that readers call by several names. */
const sameKinds: Readonly<Record<string, string>> = {
  replace: "insert",
  end: "commit",
  start: "begin",
  desc: "explain",
  describe: "explain",
  revoke: "grant",
  reset: "set",
  analyze: "vacuum",
};

/**
 * Returns true where two readers found the same statements: as many, of the same kinds, and with the same tables written.
 * A reader that does not name the tables of a statement has an empty set for it, which agrees with any that writes.
 */
export function doAgree(one: readonly SqlOpinion[], other: readonly SqlOpinion[]): boolean {
  return one.length === other.length && one.every((each, at) => isSame(each, other[at]));
}

function isSame(one: SqlOpinion, other: SqlOpinion | undefined): boolean {
  if (other === undefined || plainKind(one.kind) !== plainKind(other.kind)) return false;
  return isWithin(other.written, one.written);
}

function plainKind(kind: string): string {
  return sameKinds[kind] ?? kind;
}

function isWithin(part: ReadonlySet<string>, whole: ReadonlySet<string>): boolean {
  return [...part].every((each) => whole.has(each));
}

/** The strictest effect of all statements. */
export function effectOf(opinions: readonly SqlOpinion[]): ActionEffect {
  return strictestEffect(opinions.map(({ effect }) => effect));
}
