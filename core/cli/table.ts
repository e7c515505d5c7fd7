import { showText } from "../policy/display.ts";
import { print } from "./print.ts";

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
