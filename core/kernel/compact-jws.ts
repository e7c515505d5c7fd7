/** The three parts of a JWS in its compact form (RFC 7515), none of them believed yet. */
export interface CompactJws {
  readonly header: string;
  readonly payload: string;
  /** What the signature is over: header and payload as they came. */
  readonly signed: string;
  /** As long as Ed25519 makes it. */
  readonly signature: Buffer;
}

const signatureBytes = 64;

/** Undefined for a text of more than `longest` characters, and for what cannot be a token with an Ed25519 signature. */
export function splitJws(token: string, longest: number): CompactJws | undefined {
  if (token.length > longest) return undefined;
  const [header, payload, last, ...more] = token.split(".");
  if (header === undefined || payload === undefined || last === undefined || more.length > 0) return undefined;
  const signature = decodeBase64url(last);
  if (signature?.length !== signatureBytes) return undefined;
  return { header, payload, signed: `${header}.${payload}`, signature };
}

export function encodeBase64url(text: string): string {
  return Buffer.from(text).toString("base64url");
}

/** The bytes of base64url in its one spelling, else undefined: a second spelling would be a second token. */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64url");
  return bytes.toString("base64url") === text ? bytes : undefined;
}
