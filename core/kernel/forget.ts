/** Lets go of the oldest until at most `most` are kept. Maps and sets keep the order of insertion: the first is the oldest. */
export function forgetOldest(kept: Map<string, unknown> | Set<string>, most: number): void {
  if (kept.size <= most) return; // nearly always, and some callers are on the road of every action
  for (const oldest of kept.keys()) {
    kept.delete(oldest);
    if (kept.size <= most) return;
  }
}
