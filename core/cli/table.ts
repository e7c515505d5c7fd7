import { showText } from "../action/visible-text.ts";
import { print } from "./print.ts";

/** A column of a table: text, aligned left, or numbers, aligned right. */
export interface Column<T> {
  readonly title: string;
  readonly of: (row: T) => string | number;
  readonly isNumber?: true;
  /** True for text that the next command needs, such as ids: it is never cut. */
  readonly isWhole?: true;
  /** True where `of` returns printable text, whose hidden characters are escaped already. */
  readonly isPrintable?: true;
}

const gap = "  ";
const minTextWidth = 12;

/**
 * Prints a table no wider than the terminal, and whole where standard output is no terminal. `withTitles`: false for the
 * further pages of a list.
 */
export function printTable<T>(columns: readonly Column<T>[], rows: readonly T[], withTitles = true): void {
  const lines = renderTable(columns, rows, terminalWidth());
  for (const line of withTitles ? lines : lines.slice(1)) print(line);
}

/**
 * Renders a table: its titles, then a line a row. Unprintable characters are escaped. Where a line is longer than `width`,
 * texts are cut, the longest first, and end in `…`; numbers, whole columns and texts below 12 characters are never cut.
 */
export function renderTable<T>(
  columns: readonly Column<T>[],
  rows: readonly T[],
  width: number = Number.POSITIVE_INFINITY,
): readonly string[] {
  const cells = rows.map((row) => columns.map((column) => renderCell(column, row)));
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

function terminalWidth(): number {
  return (process.stdout.isTTY && process.stdout.columns) || Number.POSITIVE_INFINITY;
}

function renderCell<T>({ of, isPrintable }: Column<T>, row: T): string {
  const value = of(row);
  if (typeof value === "number") return value.toLocaleString("en-US");
  return isPrintable ? value : showText(value);
}

/** Shrinks the widest text columns until a line fits `width`. */
function shrink<T>(columns: readonly Column<T>[], widest: readonly number[], width: number): readonly number[] {
  const widths = [...widest];
  for (;;) {
    const excess = widths.reduce((sum, each) => sum + each + gap.length, -gap.length) - width;
    const cuttable = columns.map(({ isNumber, isWhole }, index) => (isNumber || isWhole ? 0 : (widths[index] ?? 0)));
    const max = Math.max(...cuttable);
    if (excess <= 0 || max <= minTextWidth) return widths;
    const next = Math.max(...cuttable.filter((each) => each < max), minTextWidth);
    widths[cuttable.indexOf(max)] = Math.max(next - 1, max - excess, minTextWidth);
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
