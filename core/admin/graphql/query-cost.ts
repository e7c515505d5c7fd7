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
import { queryBounds } from "../api/service.ts";

const usualLimit = 50;

/**
 * Throws JSON_BOUND for a query over a limit, before anything else reads it: the depth of fields, their number and their
 * cost. A field costs one, times the items of the pages above it. Fragments count wherever they are spread; INVALID_REQUEST
 * for one that spreads itself or does not exist.
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
    if (depth > queryBounds.depth) throw overBound(`fields at most ${queryBounds.depth} deep`);
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) this.#field(selection, depth, times, within);
      else if (selection.kind === Kind.INLINE_FRAGMENT) this.walk(selection.selectionSet, depth, times, within);
      else this.#spread(selection.name.value, depth, times, within);
    }
  }

  #field(field: FieldNode, depth: number, times: number, within: readonly string[]): void {
    this.#fields++;
    this.#cost += times;
    if (this.#fields > queryBounds.fields) throw overBound(`at most ${queryBounds.fields} fields`);
    if (this.#cost > queryBounds.cost) throw overBound(`a cost of at most ${queryBounds.cost}; ask for less on a page`);
    if (field.selectionSet !== undefined) {
      this.walk(field.selectionSet, depth + 1, times * this.#itemsOf(field), within);
    }
  }

  #spread(name: string, depth: number, times: number, within: readonly string[]): void {
    const fragment = this.#fragments.get(name);
    if (fragment === undefined)
      throw new GatewayError("INVALID_REQUEST", "expected every spread fragment to be defined");
    if (within.includes(name)) throw new GatewayError("INVALID_REQUEST", "expected no fragment to spread itself");
    this.walk(fragment.selectionSet, depth, times, [...within, name]);
  }

  /** The maximum number of items of the field. */
  #itemsOf({ name, arguments: args = [] }: FieldNode): number {
    const limit = args.find((each) => each.name.value === "limit")?.value;
    if (limit?.kind === Kind.INT) return Math.max(1, Number(limit.value));
    const given = limit?.kind === Kind.VARIABLE ? this.#variables[limit.name.value] : undefined;
    if (typeof given === "number") return Math.max(1, given);
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

function overBound(expected: string): GatewayError {
  return new GatewayError("JSON_BOUND", `expected ${expected}`);
}
