/**
 * The cookie that names a console session. Not readable by scripts, never sent with a request that another site caused, and
 * where the page is on https only sent there, to this very host (`__Host-`). It ends with the browser; the gateway ends its
 * session sooner.
 */
export class ConsoleCookie {
  readonly #name: string;
  readonly #attributes: string;

  /** `sameSite`: `Lax` for a cookie that has to come back with a navigation from another site. */
  constructor(name: string, isSecure: boolean, sameSite: "Strict" | "Lax" = "Strict") {
    this.#name = isSecure ? `__Host-${name}` : name;
    this.#attributes = `Path=/; HttpOnly; SameSite=${sameSite}${isSecure ? "; Secure" : ""}`;
  }

  /** Returns the value that a request carries; undefined where it has none, or two that differ. */
  read(rawHeaders: readonly string[]): string | undefined {
    const values = new Set<string>();
    for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
      if (rawHeaders[index]?.toLowerCase() !== "cookie") continue;
      for (const pair of (rawHeaders[index + 1] ?? "").split(";")) {
        const at = pair.indexOf("=");
        if (at !== -1 && pair.slice(0, at).trim() === this.#name) values.add(pair.slice(at + 1).trim());
      }
    }
    const [value] = values;
    return values.size === 1 ? value : undefined;
  }

  /** Returns the `Set-Cookie` header that makes a browser send `value`. */
  set(value: string): string {
    return `${this.#name}=${value}; ${this.#attributes}`;
  }

  /** Returns the `Set-Cookie` header that makes a browser forget it. */
  clear(): string {
    return `${this.#name}=; Max-Age=0; ${this.#attributes}`;
  }
}
