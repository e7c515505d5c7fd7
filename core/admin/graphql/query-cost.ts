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
 * cost. A field or a fragment costs one, times the items of the pages above it, and a report 1,000. Fragments count wherever
 * they are spread; INVALID_REQUEST for one that spreads itself, is not defined once, or is spread nowhere.
 */
export function checkCost(document: DocumentNode, variables: JsonObject): void {
  const fragments = new Map<string, FragmentDefinitionNode>();
  const operations: OperationDefinitionNode[] = [];
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) addFragment(fragments, definition);
    else if (definition.kind === Kind.OPERATION_DEFINITION && definition.operation === "query")
      operations.push(definition);
    else throw new GatewayError("INVALID_REQUEST", "expected queries and fragments only");
  }
  const meter = new CostMeter(fragments);
  for (const operation of operations) meter.countOperation(operation, variables);
  // Validation would compare all its fields with each other.
  if (!meter.hasCountedAll) throw new GatewayError("INVALID_REQUEST", "expected every fragment to be spread");
}

function addFragment(fragments: Map<string, FragmentDefinitionNode>, fragment: FragmentDefinitionNode): void {
  const { value: name } = fragment.name;
  if (fragments.has(name)) throw new GatewayError("INVALID_REQUEST", "expected every fragment to be defined once");
  fragments.set(name, fragment);
}

class CostMeter {
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #counted = new Set<string>();
  #limits: ReadonlyMap<string, number> = new Map();
  #fields = 0;
  #cost = 0;

  constructor(fragments: ReadonlyMap<string, FragmentDefinitionNode>) {
    this.#fragments = fragments;
  }

  get hasCountedAll(): boolean {
    return this.#counted.size === this.#fragments.size;
  }

  countOperation({ variableDefinitions = [], selectionSet }: OperationDefinitionNode, variables: JsonObject): void {
    this.#limits = new Map(
      variableDefinitions.flatMap(({ variable: { name }, defaultValue }): (readonly [string, number])[] => {
        const usual = defaultValue?.kind === Kind.INT ? Number(defaultValue.value) : undefined;
        const value = Object.hasOwn(variables, name.value) ? variables[name.value] : usual;
        return typeof value === "number" ? [[name.value, value]] : [];
      }),
    );
    this.#walk(selectionSet, 1, 1, []);
  }

  #walk({ selections }: SelectionSetNode, depth: number, times: number, within: readonly string[]): void {
    if (depth > queryBounds.depth) throw overBound(`fields at most ${queryBounds.depth} deep`);
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) this.#field(selection, depth, times, within);
      else if (selection.kind === Kind.INLINE_FRAGMENT) this.#walk(selection.selectionSet, depth, times, within);
      else this.#spread(selection.name.value, depth, times, within);
    }
  }

  #field(field: FieldNode, depth: number, times: number, within: readonly string[]): void {
    this.#fields++;
    if (this.#fields > queryBounds.fields) throw overBound(`at most ${queryBounds.fields} fields`);
    this.#charge(times * (reports.has(field.name.value) ? reportCost : 1));
    if (field.selectionSet !== undefined) {
      this.#walk(field.selectionSet, depth + 1, times * this.#itemsOf(field), within);
    }
  }

  #spread(name: string, depth: number, times: number, within: readonly string[]): void {
    const fragment = this.#fragments.get(name);
    if (fragment === undefined)
      throw new GatewayError("INVALID_REQUEST", "expected every spread fragment to be defined");
    if (within.includes(name)) throw new GatewayError("INVALID_REQUEST", "expected no fragment to spread itself");
    this.#charge(times);
    this.#counted.add(name);
    this.#walk(fragment.selectionSet, depth, times, [...within, name]);
  }

  #charge(cost: number): void {
    this.#cost += cost;
    if (this.#cost > queryBounds.cost) throw overBound(`a cost of at most ${queryBounds.cost}; ask for less on a page`);
  }

  /** The maximum number of items of the field. */
  #itemsOf({ name, arguments: args = [] }: FieldNode): number {
    const limit = args.find((each) => each.name.value === "limit")?.value;
    if (limit?.kind === Kind.INT) return Math.max(1, Number(limit.value));
    const given = limit?.kind === Kind.VARIABLE ? this.#limits.get(limit.name.value) : undefined;
    if (given !== undefined) return Math.max(1, given);
    return pages.has(name.value) ? usualLimit : 1;
  }
}

/** Fields that read everything of their period, however little of it is asked for. */
const reports: ReadonlySet<string> = new Set(["usage"]);
const reportCost = 1_000;

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
