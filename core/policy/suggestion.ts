const farthest = 2;

/** `; did you mean \`action\`?` where one of the known words is near, else nothing. */
export function didYouMean(word: string, known: Iterable<string>): string {
  let best: string | undefined;
  let distance = farthest + 1;
  for (const candidate of known) {
    const found = editDistance(word.slice(0, 64), candidate);
    if (found < distance && found < candidate.length) {
      distance = found;
      best = candidate;
    }
  }
  return best === undefined ? "" : `; did you mean \`${best}\`?`;
}

/** Levenshtein distance; both words are short. */
function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > farthest) return farthest + 1;
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
