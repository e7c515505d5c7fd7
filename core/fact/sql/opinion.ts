import { type ActionEffect, type SqlDialect, strictestEffect } from "../../action/action-fact.ts";
import { sqlFunctionEffect } from "./function-effect.ts";

/** One statement, as one reader sees it. */
export interface SqlOpinion {
  readonly kind: string;
  readonly effect: ActionEffect;
  readonly read: ReadonlySet<string>;
  readonly written: ReadonlySet<string>;
  readonly functions: ReadonlySet<string>;
  readonly hasWhere: boolean;
  readonly whereIsConstant: boolean;
  readonly into: boolean;
  readonly locking: boolean;
}

/** Collects what a walk over one statement finds. Its effect only grows. */
export class OpinionDraft {
  kind = "unknown";
  effect: ActionEffect = "read";
  into = false;
  locking = false;
  readonly read = new Set<string>();
  readonly written = new Set<string>();
  readonly functions = new Set<string>();
  readonly #dialect: SqlDialect;
  /** Conditions of the parts that change rows, and of the statement itself. */
  readonly #changes: Condition[] = [];
  #main: Condition = { isThere: false, isConstant: false };

  constructor(dialect: SqlDialect) {
    this.#dialect = dialect;
  }

  raise(effect: ActionEffect): void {
    this.effect = strictestEffect([this.effect, effect]);
  }

  addFunction(name: string): void {
    this.functions.add(name);
    this.raise(sqlFunctionEffect(name, this.#dialect));
  }

  addWrite(table: string, effect: ActionEffect = "write"): void {
    this.written.add(table);
    this.raise(effect);
  }

  lock(): void {
    this.locking = true;
    this.raise("write");
  }

  /** The condition of the outermost statement. */
  setCondition(isThere: boolean, isConstant: boolean): void {
    this.#main = { isThere, isConstant };
  }

  /** The condition of a part that changes or deletes rows, wherever it stands. */
  addChange(isThere: boolean, isConstant: boolean): void {
    this.#changes.push({ isThere, isConstant });
  }

  finish(): SqlOpinion {
    const conditions = this.#changes.length > 0 ? this.#changes : [this.#main];
    return {
      kind: this.kind,
      effect: this.effect,
      read: this.read,
      written: this.written,
      functions: this.functions,
      hasWhere: conditions.every(({ isThere }) => isThere),
      whereIsConstant: conditions.some(({ isConstant }) => isConstant),
      into: this.into,
      locking: this.locking,
    };
  }
}

interface Condition {
  readonly isThere: boolean;
  readonly isConstant: boolean;
}

/** Joins the parts of a name; a part in which a dot or a blank is no separator gets quotes. */
export function joinName(parts: readonly string[]): string {
  return parts.map((part) => (/^[\p{L}\p{M}\p{N}_$#@]+$/u.test(part) ? part : `"${part}"`)).join(".");
}
