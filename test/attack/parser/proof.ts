import { generateKeyPairSync } from "node:crypto";
import { expect } from "chai";
import { createLocalJWKSet } from "jose";
import { GatewayError } from "../../../core/action/error.ts";
import { SigningKey, VerifyingKey } from "../../../core/action/signing-key.ts";
import { evidenceRules } from "../../../core/compose/evidence-rules.ts";
import { verifyBundle } from "../../../core/evidence/bundle/verify.ts";
import { isSignedBy, parseCheckpoint, parseNote } from "../../../core/evidence/tree/checkpoint.ts";
import { AccessTokens } from "../../../core/identity/access-token.ts";
import { readReference, signReference } from "../../../core/manifest/reference.ts";
import { ModuleFault } from "../../../core/plugin/wasm/binary.ts";
import { meterModule } from "../../../core/plugin/wasm/meter.ts";
import { parseModule } from "../../../core/plugin/wasm/module-parser.ts";
import { headerOf, readToken, writeToken } from "../../../core/ticket/claims.ts";
import { bundleOf, checkpointOf } from "../../support/evidence-world.ts";
import { goodChain, goodWitness, trustedKeys } from "../../support/forgery.ts";
import { ticketClaims } from "../../support/ticket-claims.ts";
import { newIssuerKey, publishedKey, signToken } from "../../support/token-issuer.ts";
import { accepted, folder, reasonOf, refused, type Subject, unlessRefused } from "./subject.ts";

const signingKey = SigningKey.fromSeed(Buffer.alloc(32, 7));
const stranger = SigningKey.fromSeed(Buffer.alloc(32));
const nowSeconds = 1_800_000_000;

function readModule(input: Buffer): string {
  return unlessRefused(ModuleFault, () => {
    const { bytes } = meterModule(parseModule(input), 16);
    if (WebAssembly.validate(input)) expect(WebAssembly.validate(bytes)).to.equal(true);
    return WebAssembly.validate(bytes) ? accepted : "not valid";
  });
}

const goodBundle = bundleOf(goodChain);

function readBundle(input: Buffer): string {
  const keys = trustedKeys.map((text) => VerifyingKey.parse(text) as VerifyingKey);
  const trust = { keys, rules: evidenceRules, witness: goodWitness, nowMs: nowSeconds * 1_000 };
  const { verdict, first_bad: bad } = verifyBundle(input, trust);
  if (verdict === "invalid" || verdict === "incomplete") return `${verdict} ${bad?.reason} ${bad?.file}`;
  expect(input.equals(goodBundle)).to.equal(true);
  return accepted;
}

function readNote(input: Buffer): string {
  const text = input.toString("utf8");
  const note = parseNote(text);
  if (note === undefined) return refused;
  const lines = note.signatures.map(({ name, keyHash, signature }) => {
    return `— ${name} ${Buffer.concat([keyHash, signature]).toString("base64")}\n`;
  });
  expect(`${note.text}\n${lines.join("")}`).to.equal(text);
  const checkpoint = parseCheckpoint(text);
  const known = notes.find((each) => parseNote(each)?.text === note.text);
  const isOurs = trustedKeys.some((key) =>
    note.signatures.some(({ name }) => isSignedBy(note, { name, key: VerifyingKey.parse(key) as VerifyingKey })),
  );
  if (isOurs) expect(known).to.not.equal(undefined);
  return checkpoint === undefined ? "no checkpoint" : accepted;
}

const notes: readonly string[] = [1, 10, 17].map((size) => checkpointOf(goodChain, size));

const token = writeToken(ticketClaims(nowSeconds, nowSeconds + 600), signingKey);

function readTicket(input: Buffer): string {
  const text = input.toString("utf8");
  const find = (header: string): { key: VerifyingKey; owner: string } | undefined =>
    header === headerOf(signingKey.id) ? { key: signingKey.public, owner: "a" } : undefined;
  if (readToken(text, find, stranger.public) === undefined) return refused;
  expect(text).to.equal(token);
  return accepted;
}

const taskKeys = generateKeyPairSync("ed25519");
const claims = { tenant: "acme", principal: "agent", task: "nightly", manifest: "sha256:00", exp: nowSeconds + 600 };
const reference = signReference(claims, taskKeys.privateKey);

function readTask(input: Buffer): string {
  const text = input.toString("utf8");
  const signers = [{ id: "owner", tenant: "acme", key: taskKeys.publicKey }];
  return unlessRefused(GatewayError, () => {
    readReference(text, signers, "acme", nowSeconds * 1_000);
    expect(text).to.equal(reference);
    return accepted;
  });
}

const issuerKey = newIssuerKey("own");
const issuer = "https://login.example";
const audience = "https://gateway.example/mcp";
const tokenClaims = { iss: issuer, aud: audience, sub: "agent-7", exp: nowSeconds + 600 };
const accessToken = await signToken(issuerKey, tokenClaims);
const accessTokens = new AccessTokens({
  config: {
    issuer,
    audience,
    scopes: [],
    jwksUri: null,
    jwksCacheMs: 600_000,
    jwksRefetchMs: 10_000,
    algorithms: ["RS256", "ES256"],
    tokenType: "at+jwt",
    leewaySeconds: 30,
    tenant: "acme",
    tenantClaim: null,
    tenants: {},
    role: "viewer",
    roleClaim: null,
    roles: {},
  },
  keys: { find: createLocalJWKSet({ keys: [await publishedKey(issuerKey)] }) },
  clock: () => nowSeconds * 1_000,
});
const holder = await accessTokens.authenticate(accessToken);

/** `jose` reads a second spelling of the same bytes; whoever is found by one must be who the issuer named. */
async function readAccessToken(input: Buffer): Promise<string> {
  try {
    expect(await accessTokens.authenticate(input.toString("utf8"))).to.deep.equal(holder);
    return accepted;
  } catch (error) {
    return error instanceof GatewayError ? `${error.code} ${error.data?.reason}` : reasonOf(GatewayError, error);
  }
}

const compactWords = ["=", "==", ".", "..", "A", "-", "_", "+", "/", "\n", " ", "%2e", "é"];

/** Parsers of what is signed, digested or executed. */
export const proofSubjects: Readonly<Record<string, Subject>> = {
  "WebAssembly modules": {
    seeds: folder("plugins", "plugin.wasm"),
    words: ["\u0000asm", "\u0001", "\u000b", "\u007f"],
    price: 20,
    read: readModule,
  },
  "evidence bundles": {
    seeds: [goodBundle],
    words: ["\n", "\n\n", "\r\n", '"seq":1', "{}", ",", " ", "\u0000", "null"],
    price: 4,
    read: readBundle,
  },
  "notes of checkpoints": {
    seeds: notes.map((each) => Buffer.from(each)),
    words: ["\n\n", "\n", "— ", "- ", "+", "=", " ", "state ", "head ", "time ", "0", "\r", "\u2014"],
    read: readNote,
  },
  tickets: { seeds: [Buffer.from(token)], words: compactWords, price: 2, read: readTicket },
  "references to tasks": { seeds: [Buffer.from(reference)], words: compactWords, price: 2, read: readTask },
  "tokens of issuers": { seeds: [Buffer.from(accessToken)], words: compactWords, price: 20, read: readAccessToken },
};
