import { type HeaderList, send, type WireResponse } from "../../support/wire.ts";

/** The view of `GET /console/session` for who has signed in. */
export interface SessionView {
  readonly authenticated: boolean;
  readonly by: string;
  readonly principal: Readonly<Record<"id" | "tenant" | "role" | "name", string>>;
  readonly csrf: string;
  readonly signed_in_at: string;
  readonly recent_until: string;
  readonly expires_at: string;
  readonly sign_out: boolean;
}

/** What a browser does for a page of the console: it keeps cookies, sends them, and says where a request comes from. */
export class Browser {
  readonly cookies = new Map<string, string>();
  /** Added to every request, as by a proxy. */
  headers: HeaderList;
  readonly #url: string;
  readonly #origin: string;
  csrf = "";

  /** `origin`: the address that the person typed, where a proxy ends TLS there. */
  constructor(url: string, headers: HeaderList = [], origin: string = url) {
    this.#url = url;
    this.#origin = origin;
    this.headers = [["host", new URL(origin).host], ...headers];
  }

  get cookie(): HeaderList {
    if (this.cookies.size === 0) return [];
    return [["cookie", [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ")]];
  }

  /** Sends a request with these headers beside its own, those of the same name in place of them; undefined: none of that name. */
  async ask(
    target: string,
    headers: Readonly<Record<string, string | undefined>> = {},
    method = "GET",
    body = "",
  ): Promise<WireResponse> {
    const own = { "sec-fetch-site": "same-origin", ...Object.fromEntries([...this.headers, ...this.cookie]) };
    const sent = Object.entries({ ...own, ...headers }).filter(([, value]) => value !== undefined);
    const response = await send(this.#url, { target, method, body, headers: sent as [string, string][] });
    for (const line of response.headers.get("set-cookie")?.split(", ") ?? []) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (line.includes("Max-Age=0")) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return response;
  }

  /** Changes something as the page does; `headers` as in `ask`. Returns status and, of a refusal, its code. */
  async change(
    target: string,
    headers: Readonly<Record<string, string | undefined>> = {},
    body: object = {},
  ): Promise<string> {
    const own = { "content-type": "application/json", origin: this.#origin, "x-csrf-token": this.csrf };
    const { status, body: text } = await this.ask(target, { ...own, ...headers }, "POST", JSON.stringify(body));
    const { code } = JSON.parse(text) as { readonly code?: string };
    return code === undefined ? String(status) : `${status} ${code}`;
  }

  /** Reads who is signed in, and keeps the CSRF token as the page does. */
  async session(): Promise<SessionView> {
    const { body } = await this.ask("/console/session");
    const session = JSON.parse(body) as SessionView;
    this.csrf = session.csrf ?? "";
    return session;
  }
}
