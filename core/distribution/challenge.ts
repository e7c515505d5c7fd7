/** One way to authenticate that a registry offers. */
export type AuthChallenge =
  | { readonly scheme: "basic" }
  | {
      readonly scheme: "bearer";
      readonly realm: string;
      readonly service: string | undefined;
      readonly scope: string | undefined;
    };

const maxHeader = 8_192;
const parameter = /\b(realm|service|scope)="([^"\\]*)"/gi;

/**
 * Reads the header `www-authenticate` of a registry, as RFC 9110 and the distribution specification write it. Prefers a
 * bearer token; returns undefined where neither it nor basic authentication is offered.
 */
export function readChallenge(header: string | readonly string[] | undefined): AuthChallenge | undefined {
  const texts = (typeof header === "string" ? [header] : (header ?? [])).filter((text) => text.length <= maxHeader);
  const bearer = texts.find((text) => /^bearer /i.test(text));
  if (bearer !== undefined) {
    const found = new Map(
      Array.from(bearer.matchAll(parameter), ([, name = "", value = ""]) => [name.toLowerCase(), value]),
    );
    const realm = found.get("realm");
    if (realm !== undefined)
      return { scheme: "bearer", realm, service: found.get("service"), scope: found.get("scope") };
  }
  return texts.some((text) => /^basic\b/i.test(text)) ? { scheme: "basic" } : undefined;
}
