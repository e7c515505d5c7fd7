import type { GatewayError } from "../action/error.ts";
import { parsedUrl } from "../action/parsed-url.ts";
import { quoteForeign } from "./file-name.ts";
import type { HttpExchange, HttpQuestion, HttpReply } from "./http-exchange.ts";
import { isOnThisMachine } from "./reference.ts";

const maxRedirects = 3;

/**
 * Follows the redirects of a first reply, three at most: registries hand content out elsewhere. No credentials go along, so
 * the content's digest has to be checked. Throws what `refuse` makes of a fault.
 */
export async function followRedirects(
  http: HttpExchange,
  start: URL,
  first: HttpReply,
  question: Pick<HttpQuestion, "headers" | "maxBytes">,
  refuse: (fault: string) => GatewayError,
): Promise<HttpReply> {
  let [url, reply] = [start, first];
  for (let count = 0; isRedirect(reply); count++) {
    const next = parsedUrl(reply.headers.location ?? "", url.href);
    if (count === maxRedirects) throw refuse(`expected at most ${maxRedirects} redirects, got more`);
    if (next === undefined || !isSecure(next, start))
      throw refuse(`expected a redirect to https, got ${quoteForeign(next?.origin)}`);
    [url, reply] = [next, await http.send({ ...question, url: next, method: "GET" })];
  }
  return reply;
}

/** Returns whether a URL may be asked: plain http is for this machine, and only where the registry itself is on it. */
export function isSecure(url: URL, registry: URL): boolean {
  if (url.username !== "" || url.password !== "") return false;
  return url.protocol === "https:" || (url.protocol === "http:" && isOnThisMachine(url) && isOnThisMachine(registry));
}

function isRedirect({ status }: HttpReply): boolean {
  return status === 301 || status === 302 || status === 303 || status === 307 || status === 308;
}
