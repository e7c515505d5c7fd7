import { InvalidArgumentError } from "commander";
import { GatewayError } from "../action/error.ts";
import { asciiJson } from "../action/json.ts";
import { showText } from "../action/visible-text.ts";
import { type AdminOptions, askJson } from "./admin-client.ts";
import { print, say } from "./print.ts";

/** One page of a list of the admin port. */
export interface Page<T> {
  readonly items: readonly T[];
  /** Where the next page begins; null after the last. */
  readonly next: string | null;
}

interface ListQuery {
  /** Parameters beside `limit` and `cursor`. */
  readonly query?: Readonly<Record<string, string>>;
  /** No page is asked for beyond so many items; all of them unless told. */
  readonly most?: number;
}

interface Listing<T> {
  readonly json?: true | undefined;
  /** One item for a person to read, without the end of its line. */
  readonly describe: (item: T) => string;
  /** No more are printed; that there are more is said. */
  readonly most?: number;
}

const maxPage = 500;
const maxPages = 10_000;

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
  for (let asked = 0; asked < maxPages; asked++) {
    const page = { limit: String(Math.min(left, maxPage)), ...query, ...(cursor === "" ? {} : { cursor }) };
    const answer = await askJson<P>(options, `${path}?${new URLSearchParams(page)}`);
    if (!isPage(answer)) throw new GatewayError("UPSTREAM_INVALID", `expected a page of a list at \`${path}\``);
    yield answer;
    left -= answer.items.length;
    if (answer.next === null || left <= 0) return;
    cursor = answer.next;
  }
  throw new GatewayError("UPSTREAM_INVALID", `expected the list at \`${path}\` to end within ${maxPages} pages`);
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

/** A column of a table: text to the left, or numbers, aligned at their last digit. */
export interface Column<T> {
  readonly title: string;
  readonly of: (row: T) => string | number;
  readonly isNumber?: true;
}

const gap = "  ";
const narrowestText = 12;

/**
 * A table's lines: its titles, then a line a row. What is not printable in a text is escaped. Where a line is longer than
 * `width`, texts are cut, the longest first, and end in `…`; numbers never are, nor a text below 12 characters.
 */
export function renderTable<T>(
  columns: readonly Column<T>[],
  rows: readonly T[],
  width: number = Number.POSITIVE_INFINITY,
): readonly string[] {
  const cells = rows.map((row) => columns.map((column) => cellOf(column, row)));
  const lines = [columns.map(({ title }) => title), ...cells];
  const widest = columns.map((_, index) => Math.max(...lines.map((line) => lengthOf(line[index]))));
  const widths = shrink(columns, widest, width);
  return lines.map((line) =>
    line
      .map((cell, index) => pad(cell, widths[index] ?? 0, columns[index]))
      .join(gap)
      .trimEnd(),
  );
}

/** Prints a table no wider than the terminal, and whole where there is none. */
export function printTable<T>(columns: readonly Column<T>[], rows: readonly T[]): void {
  for (const line of renderTable(columns, rows, terminalWidth())) print(line);
}

function terminalWidth(): number {
  return (process.stdout.isTTY && process.stdout.columns) || Number.POSITIVE_INFINITY;
}

function cellOf<T>({ of }: Column<T>, row: T): string {
  const value = of(row);
  return typeof value === "number" ? value.toLocaleString("en-US") : showText(value);
}

function shrink<T>(columns: readonly Column<T>[], widest: readonly number[], width: number): readonly number[] {
  const widths = [...widest];
  for (;;) {
    const excess = widths.reduce((sum, each) => sum + each + gap.length, -gap.length) - width;
    const cuttable = columns.map(({ isNumber }, index) => (isNumber ? 0 : (widths[index] ?? 0)));
    const most = Math.max(...cuttable);
    if (excess <= 0 || most <= narrowestText) return widths;
    const next = Math.max(...cuttable.filter((each) => each < most), narrowestText);
    widths[cuttable.indexOf(most)] = Math.max(next - 1, most - excess, narrowestText);
  }
}

function pad<T>(cell: string, width: number, column: Column<T> | undefined): string {
  const characters = Array.from(cell);
  const cut = characters.length > width ? `${characters.slice(0, width - 1).join("")}…` : cell;
  const space = " ".repeat(width - lengthOf(cut));
  return column?.isNumber ? space + cut : cut + space;
}

function lengthOf(cell: string | undefined): number {
  return Array.from(cell ?? "").length;
}

/** How many, as an argument. */
export function parseCount(text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 1 && count <= 1_000_000) return count;
  throw new InvalidArgumentError("expected a whole number from 1 to 1000000");
}
