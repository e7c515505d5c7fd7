import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, type JWK, type JWTPayload, SignJWT } from "jose";

/** A key pair of an issuer, with the id that tokens name it by. */
export interface IssuerKey {
  readonly kid: string;
  readonly alg: "RS256" | "ES256";
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

export function newIssuerKey(kid: string, alg: IssuerKey["alg"] = "ES256"): IssuerKey {
  const pair =
    alg === "RS256"
      ? generateKeyPairSync("rsa", { modulusLength: 2048 })
      : generateKeyPairSync("ec", { namedCurve: "P-256" });
  return { kid, alg, ...pair };
}

/** The public part of a key as an issuer publishes it. */
export async function publishedKey({ kid, alg, publicKey }: IssuerKey): Promise<JWK> {
  return { ...(await exportJWK(publicKey)), kid, alg, use: "sig" };
}

/** A token of these claims and this header, signed with `key`. */
export function signToken(
  key: IssuerKey,
  claims: JWTPayload,
  header: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const { kid, alg } = key;
  return new SignJWT(claims).setProtectedHeader({ alg, kid, typ: "at+jwt", ...header }).sign(key.privateKey);
}

/** Base64url of a value's JSON, for tokens that no library makes. */
export function encodePart(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** A server with the metadata and keys of an issuer, which does as it is told. */
export interface KeyServer {
  readonly issuer: string;
  readonly jwksUri: string;
  /** The number of requests for the keys so far. */
  readonly fetchCount: number;
  /** Publishes these keys from now on. */
  publish(keys: readonly JWK[]): void;
  /** Answers requests for the keys so from now on. */
  answerWith(answer: Answer): void;
  close(): Promise<void>;
}

export async function startKeyServer(): Promise<KeyServer> {
  let answer: Answer = jsonAnswer({ keys: [] });
  let fetchCount = 0;
  const server: Server = createServer((request, response) => {
    if (request.url === "/.well-known/openid-configuration") {
      jsonAnswer({ issuer, jwks_uri: `${issuer}/jwks` })(request, response);
      return;
    }
    fetchCount++;
    answer(request, response);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    issuer,
    jwksUri: `${issuer}/jwks`,
    get fetchCount() {
      return fetchCount;
    },
    publish: (keys) => {
      answer = jsonAnswer({ keys });
    },
    answerWith: (given) => {
      answer = given;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Answers with a value as JSON. */
export function jsonAnswer(value: unknown): Answer {
  return (_, response) => {
    response.setHeader("content-type", "application/json").end(JSON.stringify(value));
  };
}
