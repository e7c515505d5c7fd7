import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from "graphql";
import { GatewayError } from "../../action/error.ts";
import type { JsonObject } from "../../action/json.ts";

/** What one query may ask for. */
export const queryBounds = { characters: 16_384, tokens: 2_000, depth: 8, fields: 200, cost: 10_000 } as const;

const usualLimit = 50;

/**
 * Throws JSON_BOUND for a query that asks for too much, before anything looks closer: fields inside one another, fields in
 * all, and their cost. A field costs one, as often as the pages above it may have items. Fragments count wherever they are
 * spread; one that spreads itself is INVALID_REQUEST, and so is one that is not there.
 */
export function checkCost(document: DocumentNode, variables: JsonObject): void {
  const fragments = new Map<string, FragmentDefinitionNode>();
  const operations: OperationDefinitionNode[] = [];
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
    else if (definition.kind === Kind.OPERATION_DEFINITION && definition.operation === "query")
      operations.push(definition);
    else throw new GatewayError("INVALID_REQUEST", "expected queries and fragments only");
  }
  const meter = new CostMeter(fragments, variables);
  for (const { selectionSet } of operations) meter.walk(selectionSet, 1, 1, []);
}

class CostMeter {
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #variables: JsonObject;
  #fields = 0;
  #cost = 0;

  constructor(fragments: ReadonlyMap<string, FragmentDefinitionNode>, variables: JsonObject) {
    this.#fragments = fragments;
    this.#variables = variables;
  }

  walk({ selections }: SelectionSetNode, depth: number, times: number, within: readonly string[]): void {
    if (depth > queryBounds.depth) throw tooMuch(`fields at most ${queryBounds.depth} deep`);
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) this.#field(selection, depth, times, within);
      else if (selection.kind === Kind.INLINE_FRAGMENT) this.walk(selection.selectionSet, depth, times, within);
      else this.#spread(selection.name.value, depth, times, within);
    }
  }

  #field(field: FieldNode, depth: number, times: number, within: readonly string[]): void {
    this.#fields++;
    this.#cost += times;
    if (this.#fields > queryBounds.fields) throw tooMuch(`at most ${queryBounds.fields} fields`);
    if (this.#cost > queryBounds.cost) throw tooMuch(`a cost of at most ${queryBounds.cost}; ask for less on a page`);
    if (field.selectionSet !== undefined) {
      this.walk(field.selectionSet, depth + 1, times * this.#itemsOf(field), within);
    }
  }

  #spread(name: string, depth: number, times: number, within: readonly string[]): void {
    const fragment = this.#fragments.get(name);
    if (fragment === undefined)
      throw new GatewayError("INVALID_REQUEST", "expected a fragment that is spread to be there");
    if (within.includes(name)) throw new GatewayError("INVALID_REQUEST", "expected no fragment to spread itself");
    this.walk(fragment.selectionSet, depth, times, [...within, name]);
  }

  /** How many items the field may have: as many as its page, where it has one. */
  #itemsOf({ name, arguments: args = [] }: FieldNode): number {
    const limit = args.find((each) => each.name.value === "limit")?.value;
    if (limit?.kind === Kind.INT) return Math.max(1, Number(limit.value));
    const said = limit?.kind === Kind.VARIABLE ? this.#variables[limit.name.value] : undefined;
    if (typeof said === "number") return Math.max(1, said);
    return pages.has(name.value) ? usualLimit : 1;
  }
}

const pages: ReadonlySet<string> = new Set([
  "decisions",
  "approvals",
  "sessions",
  "evidenceSessions",
  "records",
  "usage",
  "policies",
  "plugins",
  "history",
]);

function tooMuch(expected: string): GatewayError {
  return new GatewayError("JSON_BOUND", `expected ${expected}`);
}
