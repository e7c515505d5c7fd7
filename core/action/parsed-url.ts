/** Returns the `hostname` of a URL as sockets take it: an IPv6 address without its brackets. */
export function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, "$1");
}

/**
 * Returns the URL that a text is; undefined where it is none. In place of `URL.canParse`: Node 20's misreads letters of
 * Latin-1, such as `ü`, once V8 optimizes its callers.
 */
export function parsedUrl(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}
