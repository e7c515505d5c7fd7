/** What an expression of Prometheus's asks for: a series, and the labels it selects by. */
export interface Selection {
  readonly metric: string;
  readonly labels: readonly string[];
}

const keywords: ReadonlySet<string> = new Set("and or unless offset bool by on without ignoring".split(" "));
const grouping = /\b(by|on|without|ignoring)\s*\([^)]*\)/g;
const selector = /\b([a-z_]\w*)\b(?!\s*\()(?:\{([^}]*)\})?/g;

/** The series that an expression asks for, in its order. Made for the expressions of this repository. */
export function selectionsOf(expression: string): readonly Selection[] {
  const bare = expression.replace(grouping, " ").replace(/\[[^\]]*\]|\b\d+\w*\b/g, " ");
  return [...bare.matchAll(selector)]
    .filter(([, name = ""]) => !keywords.has(name))
    .map(([, metric = "", matchers = ""]) => ({
      metric,
      labels: [...matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = ""]) => label),
    }));
}
