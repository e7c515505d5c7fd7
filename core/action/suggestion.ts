/** Longer input is not a typo, and would cost time. */
const maxWord = 64;

/** The known word nearest to `word`, if it is near enough to be what was meant. */
export function suggest(word: string, known: readonly string[]): string | undefined {
  const farthest = Math.max(1, Math.floor(word.length / 3));
  let nearest: string | undefined;
  let least = farthest + 1;
  for (const candidate of known) {
    const distance = editDistance(word, candidate, farthest);
    if (distance < least) [nearest, least] = [candidate, distance];
  }
  return nearest;
}

/** `; did you mean \`action\`?` where one of the known words is near, else nothing. */
export function didYouMean(word: string, known: Iterable<string>): string {
  const near = suggest(word.slice(0, maxWord), [...known]);
  return near === undefined ? "" : `; did you mean \`${near}\`?`;
}

/** Single-character edits and swaps of neighbours from `a` to `b`; anything above `maxDistance` may be returned as more. */
function editDistance(a: string, b: string, maxDistance: number): number {
  if (Math.abs(a.length - b.length) > maxDistance) return maxDistance + 1;
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      current.push(
        Math.min(
          cell(above, column) + 1,
          cell(current, column - 1) + 1,
          cell(above, column - 1) + (same ? 0 : 1),
          swapped ? cell(before, column - 2) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    [before, above] = [above, current];
  }
  return cell(above, b.length);
}

function cell(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
