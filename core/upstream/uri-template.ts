const longestUri = 8_192;

/**
 * Whether a URI could have been expanded from an RFC 6570 template: the literal parts occur in order, at the start and
 * at the end of the URI where the template has them there, and each expression stands for one character at least.
 * Linear in the URI's length. An answer is only ever used to choose between upstreams.
 */
export function matchesTemplate(uri: string, template: string): boolean {
  if (uri.length > longestUri || template.length > longestUri) return false;
  const literals = template.split(/\{[^{}]*\}/);
  const first = literals[0] as string;
  const last = literals.at(-1) as string;
  if (literals.length === 1) return uri === template;
  if (!uri.startsWith(first) || !uri.endsWith(last)) return false;
  let at = first.length;
  for (const literal of literals.slice(1, -1)) {
    const found = uri.indexOf(literal, at + 1);
    if (found === -1) return false;
    at = found + literal.length;
  }
  return uri.length - last.length > at;
}
