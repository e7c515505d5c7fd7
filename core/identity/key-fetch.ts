import type { JSONWebKeySet, JWK } from "jose";
import { type buildConnector, Client, type Dispatcher } from "undici";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { parsedUrl } from "../action/parsed-url.ts";
import { type JsonBounds, parseStrictJson } from "../action/strict-json.ts";
import type { HostSource } from "../egress/destination.ts";
import type { EgressGuard } from "../egress/egress-guard.ts";

/** The reason why the signing keys of an issuer could not be read. */
type KeyFetchFault = "unreachable" | "timeout" | "redirect" | "status" | "too_large" | "invalid";

/** A failed fetch. Its message contains nothing that the server sent. */
export class KeyFetchError extends Error {
  readonly fault: KeyFetchFault;
  /** That of the answer; undefined where there was none, or it was not its status that was wrong. */
  readonly status: number | undefined;

  constructor(fault: KeyFetchFault, message: string, status?: number) {
    super(message);
    this.name = "KeyFetchError";
    this.fault = fault;
    this.status = status;
  }
}

export interface KeyLocation {
  readonly issuer: string;
  /** Null: named by the issuer's metadata. */
  readonly jwksUri: string | null;
}

/** Time for all requests of one fetch together. */
const maxFetchMs = 5_000;
const maxBytes = 262_144;
const acceptJson = { accept: "application/json" };
const maxKeys = 100;
/** Base64url digits of an RSA modulus of 8,192 bits: what it takes to verify grows with its square. */
const maxModulus = 1_366;
const bounds: JsonBounds = { depth: 8, nodes: 10_000, stringLength: 65_536, reader: "tolerant" };

/**
 * Fetches the public signing keys of an issuer within 5 s, 256 KiB a response and 100 keys. No redirect is followed.
 * Symmetric keys and private members are left out. A host that the metadata alone names must be public. Rejects with
 * KeyFetchError.
 */
export async function fetchSigningKeys({ issuer, jwksUri }: KeyLocation, egress: EgressGuard): Promise<JSONWebKeySet> {
  const fetchFrom = issuerFetch(egress);
  const address = jwksUri ?? endpointOf(await fetchMetadata(issuer, fetchFrom), "jwks_uri", issuer);
  const { keys } = await fetchFrom(address, jwksUri === null ? sourceOf(address, issuer) : "configuration");
  if (!Array.isArray(keys) || keys.length > maxKeys) throw invalid(`expected \`keys\` to list at most ${maxKeys} keys`);
  return { keys: keys.flatMap(publicKey) };
}

/** Data that a request posts in place of asking for something. */
export interface PostedForm {
  readonly form: URLSearchParams;
  /** The `Authorization` header; null for none. */
  readonly authorization: string | null;
}

/** Fetches a JSON object from an issuer. `source`: who named the host. Rejects with KeyFetchError. */
export type IssuerFetch = (url: string, source?: HostSource, posted?: PostedForm) => Promise<JsonObject>;

/** Returns what fetches from an issuer: all requests together within 5 s, each answer within 256 KiB, without redirects. */
export function issuerFetch(egress: EgressGuard): IssuerFetch {
  const signal = AbortSignal.timeout(maxFetchMs);
  return (url, source = "configuration", posted) =>
    fetchObject(url, egress.connector(new URL(url), maxFetchMs, source), signal, posted);
}

/** Reads the metadata of OpenID Connect Discovery or, where there is none, of RFC 8414. */
export async function fetchMetadata(issuer: string, fetchFrom: IssuerFetch): Promise<JsonObject> {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, "");
  const metadata = await fetchFrom(`${origin}${path}/.well-known/openid-configuration`).catch((cause) => {
    if (!(cause instanceof KeyFetchError) || cause.fault !== "status") throw cause;
    return fetchFrom(`${origin}/.well-known/oauth-authorization-server${path}`);
  });
  // Metadata of another issuer would put that one's keys in place of the configured one's.
  if (metadata.issuer !== issuer) throw invalid("expected the metadata to name the configured issuer");
  return metadata;
}

/** Returns an address that the metadata of an issuer names, with the issuer's own scheme. Throws KeyFetchError. */
export function endpointOf(metadata: JsonObject, name: string, issuer: string): string {
  const address = metadata[name];
  const url = parsedUrl(String(address));
  if (typeof address !== "string" || url === undefined) throw invalid(`expected the metadata to name \`${name}\``);
  if (url.protocol !== new URL(issuer).protocol) throw invalid(`expected \`${name}\` to have the scheme of the issuer`);
  return address;
}

/** Returns who names the host of an address that stands in an issuer's metadata: the configuration, where it is the issuer's own. */
export function sourceOf(address: string, issuer: string): HostSource {
  return new URL(address).origin === new URL(issuer).origin ? "configuration" : "answer";
}

async function fetchObject(
  url: string,
  connect: buildConnector.connector,
  signal: AbortSignal,
  posted?: PostedForm,
): Promise<JsonObject> {
  const bytes = await fetchBytes(url, connect, signal, posted).catch((cause: unknown) => {
    if (cause instanceof KeyFetchError) throw cause;
    if (signal.aborted) throw new KeyFetchError("timeout", `expected an answer within ${maxFetchMs} ms`);
    const { code, name } = cause as NodeJS.ErrnoException;
    throw new KeyFetchError("unreachable", `the connection failed (${code ?? name})`);
  });
  const value = parseObject(bytes);
  if (!isJsonObject(value)) throw invalid("expected a JSON object");
  return value;
}

async function fetchBytes(
  url: string,
  connect: buildConnector.connector,
  signal: AbortSignal,
  posted?: PostedForm,
): Promise<Uint8Array> {
  const { origin, pathname, search } = new URL(url);
  // A connection of its own, closed afterwards: keys are fetched too rarely to keep one.
  const client = new Client(origin, { connect });
  try {
    const path = pathname + search;
    const request = posted === undefined ? ({ method: "GET", headers: acceptJson } as const) : postOf(posted);
    return await readBytes(await client.request({ path, ...request, signal, reset: true }));
  } finally {
    await client.destroy();
  }
}

function postOf({ form, authorization }: PostedForm): Pick<Dispatcher.RequestOptions, "method" | "headers" | "body"> {
  const type = { "content-type": "application/x-www-form-urlencoded" };
  const headers = { ...acceptJson, ...type, ...(authorization === null ? {} : { authorization }) };
  return { method: "POST", headers, body: form.toString() };
}

async function readBytes({ statusCode, body }: Dispatcher.ResponseData): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let size = 0;
  // Leaving the loop destroys the body, and with it the connection.
  for await (const chunk of body as AsyncIterable<Buffer>) {
    if (statusCode >= 300 && statusCode < 400) throw new KeyFetchError("redirect", "expected no redirect");
    if (statusCode !== 200) break;
    size += chunk.length;
    if (size > maxBytes) throw new KeyFetchError("too_large", `expected at most ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  if (statusCode >= 300 && statusCode < 400) throw new KeyFetchError("redirect", "expected no redirect");
  if (statusCode !== 200) throw new KeyFetchError("status", `expected HTTP 200, got ${statusCode}`, statusCode);
  return Buffer.concat(chunks, size);
}

function parseObject(bytes: Uint8Array): Json {
  try {
    return parseStrictJson(bytes, bounds);
  } catch {
    throw invalid("expected JSON within its bounds");
  }
}

const publicMembers = ["kty", "use", "key_ops", "alg", "kid", "crv", "n", "e", "x", "y"] as const;

/** The public part of an asymmetric key; nothing for any other. */
function publicKey(key: Json): readonly JWK[] {
  if (!isJsonObject(key) || !["RSA", "EC", "OKP"].includes(String(key.kty))) return [];
  if (typeof key.n === "string" && key.n.length > maxModulus) return [];
  return [
    Object.fromEntries(publicMembers.flatMap((name) => (key[name] === undefined ? [] : [[name, key[name]]]))) as JWK,
  ];
}

function invalid(message: string): KeyFetchError {
  return new KeyFetchError("invalid", message);
}
