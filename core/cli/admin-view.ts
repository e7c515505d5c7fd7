import type { Command } from "commander";
import { GatewayError } from "../action/error.ts";
import { asciiJson } from "../action/json.ts";
import type { AdminOperation } from "../operation/operation.ts";
import { callAdmin, fetchPages, fetchWhole, pathParameters } from "./admin-client.ts";
import { print, say } from "./print.ts";
import { type Column, printTable } from "./table.ts";

/** Calls an operation and prints its answer. */
export type View = (call: AdminCall) => Promise<void>;

export interface AdminCall {
  readonly operation: AdminOperation;
  /** By the names of the operation's parameters and body members. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly admin: string;
  /** ` --admin <url>` where the command line has it: what commands printed as the next step need, too. */
  readonly adminFlag: string;
  readonly json: boolean;
  /** At most so many items of a list. */
  readonly limit: number | undefined;
  readonly hints: Readonly<Record<number, string>>;
}

/** Prints a list of any length, page by page, each as it comes: as a table below one line of titles, or as printable JSON. */
export function listView<T>(columns: readonly Column<T>[]): View {
  return async (call) => {
    let left = call.limit ?? Number.POSITIVE_INFINITY;
    let isFirst = true;
    // One more than is printed shows whether there are more.
    for await (const { items } of fetchPages<T>(call, call.operation, call.values, left + 1)) {
      const shown = items.slice(0, left);
      if (call.json) for (const item of shown) print(asciiJson(item));
      else if (shown.length > 0) printTable(columns, shown, isFirst);
      else if (isFirst) say("none");
      if (shown.length < items.length) return say("there are more; raise `--limit` to list them");
      left -= shown.length;
      isFirst = false;
    }
  };
}

/** Prints a list that comes whole as a table, and below it what `remarks` has to say of each item, a line each. */
export function tableView<T>(columns: readonly Column<T>[], remarks: (item: T) => readonly string[] = () => []): View {
  return async (call) => {
    const items = await fetchWhole<T>(call, call.operation);
    if (call.json) for (const item of items) print(asciiJson(item));
    else if (items.length === 0) say("none");
    else {
      printTable(columns, items);
      for (const remark of items.flatMap(remarks)) print(remark);
    }
  };
}

/** The parts of an answer that are printed. */
interface Rendered {
  /** Printed with `--json`; the whole answer where it is left out. */
  readonly json?: object;
  /** Printed without `--json`. */
  readonly text?: string;
  /** Printed on standard error in either case. */
  readonly notes?: readonly string[];
}

/** Prints the answer of an operation that returns one object. */
export function answerView<T extends object>(render: (answer: T, call: AdminCall) => Rendered): View {
  return async (call) => {
    const answer = await callAdmin<T>(call, call.operation, call.values).catch((cause) => addHint(cause, call));
    const { json = answer, text, notes = [] } = render(answer, call);
    if (call.json) print(asciiJson(json));
    else if (text !== undefined) print(text);
    for (const note of notes) say(note);
  };
}

/** Adds the next command to type to a refusal whose status has a hint. */
function addHint(cause: unknown, { hints, values }: AdminCall): never {
  const { code, detail, data } = GatewayError.from(cause);
  const hint = hints[Number(data?.status)]?.replace("{id}", String(values.id));
  if (hint === undefined) throw cause;
  throw new GatewayError(code, detail === undefined ? hint : `${detail}; ${hint}`, { cause, data: { ...data } });
}

/** Reads a call from what commander passes to an action: the arguments, then the options, then the command. */
export function readCall(
  {
    operation,
    parameters,
    hints,
  }: Pick<AdminCall, "operation" | "hints"> & { readonly parameters: Readonly<Record<string, string>> },
  given: readonly unknown[],
): AdminCall {
  const { admin, json, limit, ...options } = given.at(-2) as Readonly<Record<string, unknown>>;
  const command = given.at(-1) as Command;
  const names = pathParameters(operation);
  const fromOptions = Object.entries(options).map(
    ([name, value]) => [parameters[name] ?? snakeCase(name), value] as const,
  );
  return {
    operation,
    values: Object.fromEntries([...names.map((name, at) => [name, given[at]] as const), ...fromOptions]),
    admin: String(admin),
    adminFlag: command.getOptionValueSource("admin") === "cli" ? ` --admin ${admin}` : "",
    json: json === true,
    limit: limit as number | undefined,
    hints,
  };
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
