import { asciiJson } from "../kernel/ascii-json.ts";
import { GatewayError } from "../kernel/error.ts";
import { type AdminOptions, askJson } from "./admin-client.ts";
import { print, say } from "./print.ts";
import { type Column, printTable } from "./table.ts";

/** One page of a list of the admin port. */
export interface Page<T> {
  readonly items: readonly T[];
  /** Where the next page begins; null after the last. */
  readonly next: string | null;
}

export interface ListQuery {
  /** Parameters beside `limit` and `cursor`. */
  readonly query?: Readonly<Record<string, string>>;
  /** No page is asked for beyond so many items; all of them unless told. */
  readonly most?: number;
}

export interface Listing<T> {
  readonly json?: true | undefined;
  /** One item for a person to read, without the end of its line. */
  readonly describe: (item: T) => string;
  /** No more are printed; that there are more is said. */
  readonly most?: number;
}

const largestPage = 500;
const mostPages = 10_000;

/**
 * The pages of a list, each asked for when it is wanted. Throws as `askJson` does, and UPSTREAM_INVALID where an answer is
 * no page, or the list does not end: at most 10,000 pages are asked for.
 */
export async function* askPages<T, P extends Page<T> = Page<T>>(
  options: AdminOptions,
  path: string,
  { query = {}, most = Number.POSITIVE_INFINITY }: ListQuery = {},
): AsyncGenerator<P> {
  let [left, cursor] = [most, ""];
  for (let asked = 0; asked < mostPages; asked++) {
    const page = { limit: String(Math.min(left, largestPage)), ...query, ...(cursor === "" ? {} : { cursor }) };
    const answer = await askJson<P>(options, `${path}?${new URLSearchParams(page)}`);
    if (!isPage(answer)) throw new GatewayError("UPSTREAM_INVALID", `expected a page of a list at \`${path}\``);
    yield answer;
    left -= answer.items.length;
    if (answer.next === null || left <= 0) return;
    cursor = answer.next;
  }
  throw new GatewayError("UPSTREAM_INVALID", `expected the list at \`${path}\` to end within ${mostPages} pages`);
}

/** The same, item by item. */
export async function* askItems<T>(options: AdminOptions, path: string, query: ListQuery = {}): AsyncGenerator<T> {
  for await (const { items } of askPages<T>(options, path, query)) yield* items;
}

/** Prints a list of the admin port, an item a line: for a person, or as printable JSON. Throws as `askPages` does. */
export async function printList<T>(
  options: AdminOptions,
  path: string,
  { json, describe, most = Number.POSITIVE_INFINITY, ...more }: Listing<T> & Pick<ListQuery, "query">,
): Promise<void> {
  let left = most;
  // One more than is printed tells whether there are more.
  for await (const item of askItems<T>(options, path, { ...more, most: most + 1 })) {
    if (left-- <= 0) return say("there are more; `--limit` says how many are listed");
    print(json ? asciiJson(item) : describe(item));
  }
}

/** A list that the admin port tells in one page, because it is as long as the configuration. Throws as `askPages` does. */
export async function askWhole<T>(options: AdminOptions, path: string): Promise<readonly T[]> {
  const answer = await askJson<Page<T>>(options, path);
  if (isPage(answer) && answer.next === null) return answer.items;
  throw new GatewayError("UPSTREAM_INVALID", `expected a whole list at \`${path}\``);
}

/** Prints such a list as a table, or an item a line as printable JSON. */
export async function printWhole<T>(
  options: AdminOptions,
  path: string,
  { json, columns }: { readonly json?: true | undefined; readonly columns: readonly Column<T>[] },
): Promise<void> {
  const items = await askWhole<T>(options, path);
  if (json) for (const item of items) print(asciiJson(item));
  else if (items.length === 0) say("none");
  else printTable(columns, items);
}

function isPage(answer: unknown): boolean {
  const { items, next } = (answer ?? {}) as { readonly items?: unknown; readonly next?: unknown };
  return Array.isArray(items) && (next === null || (typeof next === "string" && next !== ""));
}
