/** The first two lines of a table in Markdown. */
export function tableHead(columns: readonly string[]): string {
  return `${tableRow(columns)}|${"---|".repeat(columns.length)}\n`;
}

export function tableRow(cells: readonly (string | number)[]): string {
  return `| ${cells.join(" | ")} |\n`;
}
