import type { JsonObject } from "../action/json.ts";
import type { FormatName } from "./format.ts";

/** What one key of the file may hold. Validation and the reference are both made from it. */
export type Field =
  | BooleanField
  | IntegerField
  | StringField
  | ChoiceField
  | ListField
  | MapField
  | ObjectField
  | JsonField;

interface CommonField {
  readonly description: string;
  /** Must be given. A field that is neither required nor an object has a default; null says: absent. */
  readonly required?: true;
  readonly default?: unknown;
  /** Only where the sibling `key` has one of `values`; elsewhere giving it is a fault. */
  readonly only?: { readonly key: string; readonly values: readonly string[] };
}

interface BooleanField extends CommonField {
  readonly type: "boolean";
}

export interface IntegerField extends CommonField {
  readonly type: "integer";
  readonly min: number;
  readonly max: number;
}

export interface StringField extends CommonField {
  readonly type: "string";
  readonly format: FormatName;
}

export interface ChoiceField extends CommonField {
  readonly type: "choice";
  readonly values: readonly string[];
}

export interface ListField extends CommonField {
  readonly type: "list";
  readonly of: Field;
  /** Set where an empty list could be read as "everyone": what to do instead. */
  readonly whenEmpty?: string;
}

/** Keys of the operator's choosing. */
export interface MapField extends CommonField {
  readonly type: "map";
  readonly key: FormatName;
  readonly of: Field;
}

export interface ObjectField extends CommonField {
  readonly type: "object";
  readonly fields: Readonly<Record<string, Field>>;
}

/** A JSON object that someone else checks. */
interface JsonField extends CommonField {
  readonly type: "json";
}

/** The checked value of a field, as the file spells it, defaults filled in. */
export type Form<F> = F extends { readonly default: null } | { readonly only: unknown } ? Value<F> | null : Value<F>;

type Value<F> = F extends { readonly type: "boolean" }
  ? boolean
  : F extends { readonly type: "integer" }
    ? number
    : F extends { readonly type: "string" }
      ? string
      : F extends { readonly type: "choice"; readonly values: readonly (infer V)[] }
        ? V
        : F extends { readonly type: "list"; readonly of: infer Item }
          ? readonly Form<Item>[]
          : F extends { readonly type: "map"; readonly of: infer Item }
            ? Readonly<Record<string, Form<Item>>>
            : F extends { readonly type: "object"; readonly fields: infer Fields }
              ? { readonly [Key in keyof Fields]: Form<Fields[Key]> }
              : F extends { readonly type: "json" }
                ? JsonObject
                : never;

/** A form with holes: what is undefined was a fault, and no later rule may judge it. */
export type Draft<T> = T extends string | number | boolean | null
  ? T | undefined
  : T extends readonly (infer Item)[]
    ? readonly Draft<Item>[] | undefined
    : { readonly [Key in keyof T]: Draft<T[Key]> } | undefined;
