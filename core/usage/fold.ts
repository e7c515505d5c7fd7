import { addRows, other, rowName, type UsageRow } from "./usage-row.ts";

/** The rows of one day by their names. */
export type DayRows = Map<string, UsageRow>;

/** Of what may be kept, the part that is kept when there is more: the next rows then find room. */
const keptShare = 0.9;

/**
 * Where there are more rows than `most`, counts those that used least together, as one named `other`. A row that `stays`
 * is never among them.
 */
export function foldRows(rows: DayRows, most: number, stays: (row: UsageRow) => boolean): void {
  if (rows.size <= most) return;
  const foldable = [...rows.values()].filter((row) => row.principal !== other && !stays(row));
  const excess = rows.size - Math.floor(most * keptShare);
  for (const row of foldable.sort((a, b) => weight(a) - weight(b)).slice(0, excess)) {
    const together: UsageRow = { ...row, principal: other, keyId: null, provider: other, model: other };
    rows.delete(rowName(row));
    rows.set(rowName(together), addRows(together, rows.get(rowName(together))));
  }
}

function weight({ requests, input, output }: UsageRow): number {
  return input + output + requests;
}
