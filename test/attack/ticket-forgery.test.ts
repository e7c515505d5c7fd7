import { createHmac, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { expect } from "chai";
import { SigningKey } from "../../core/action/signing-key.ts";
import { readReference, signReference, type TaskClaims, type TaskSigner } from "../../core/manifest/reference.ts";
import { headerOf, readToken, writeToken } from "../../core/ticket/claims.ts";
import { ticketClaims } from "../support/ticket-claims.ts";

const key = SigningKey.fromSeed(Buffer.alloc(32, 7));
/** Known to everybody who reads the source: it stands in where no key is found. */
const decoy = SigningKey.fromSeed(Buffer.alloc(32));
const stranger = generateKeyPairSync("ed25519").privateKey;
const own = generateKeyPairSync("ed25519");
const other = generateKeyPairSync("ed25519");
const signers: readonly TaskSigner[] = [
  { id: "owner", tenant: "acme", key: own.publicKey },
  { id: "foreign", tenant: "umbrella", key: other.publicKey },
];
const nowMs = 1_800_000_000_000;
const exp = nowMs / 1_000 + 600;

const ticket = ticketClaims(nowMs / 1_000, exp);
const task: TaskClaims = { tenant: "acme", principal: "agent", task: "nightly", manifest: "sha256:00", exp };

const encode = (text: string): string => Buffer.from(text).toString("base64url");
type Sign = (signed: string) => Buffer;

/** One kind of token: how it is made by who may, and read by who must. */
interface Kind {
  readonly good: string;
  readonly claims: object;
  readonly type: string;
  /** Signs as the right key does. */
  readonly sign: Sign;
  /** Public forms of the key, which HS256 would take for its secret. */
  readonly publicForms: readonly Buffer[];
  readonly reads: (token: string) => boolean;
}

function formsOf(publicKey: KeyObject): readonly Buffer[] {
  const der = publicKey.export({ format: "der", type: "spki" });
  const raw = der.subarray(-32);
  const pem = publicKey.export({ format: "pem", type: "spki" }).toString();
  return [
    raw,
    der,
    Buffer.from(pem),
    Buffer.from(pem.trim()),
    ...[raw, der].flatMap((each) => [
      Buffer.from(each.toString("base64")),
      Buffer.from(each.toString("base64url")),
      Buffer.from(each.toString("hex")),
    ]),
  ];
}

function isRead(read: () => unknown): boolean {
  try {
    return read() !== undefined;
  } catch {
    return false;
  }
}

const header = headerOf(key.id);
const kinds: Readonly<Record<string, Kind>> = {
  "a ticket": {
    good: writeToken(ticket, key),
    claims: ticket,
    type: "gateway-ticket+jwt",
    sign: (signed) => key.sign(signed),
    publicForms: [key.public.raw, Buffer.from(key.public.text), Buffer.from(key.id)],
    reads: (token) =>
      isRead(() =>
        readToken(token, (given) => (given === header ? { key: key.public, owner: "acme" } : undefined), decoy.public),
      ),
  },
  "a reference to a task": {
    good: signReference(task, own.privateKey),
    claims: task,
    type: "gateway-task+jwt",
    sign: (signed) => sign(null, Buffer.from(signed), own.privateKey),
    publicForms: formsOf(own.publicKey),
    reads: (token) => isRead(() => readReference(token, signers, "acme", nowMs)),
  },
};

const algorithms = [
  "none",
  "None",
  "NONE",
  "",
  "HS256",
  "HS512",
  "EdDSA",
  "eddsa",
  "Ed25519",
  "ES256",
  "RS256",
  "A128KW",
  null,
  0,
  ["EdDSA"],
];
const keyIds = [
  undefined,
  "",
  key.id,
  "../../keys/evidence",
  "/dev/null",
  "..%2fkeys",
  "' OR 1=1 --",
  "0".repeat(16),
  "__proto__",
  0,
  null,
];
const extras = [
  {},
  { jwk: {} },
  { jku: "https://evil.example/jwks" },
  { x5u: "file:///etc/passwd" },
  { crit: ["exp"] },
  { b64: false, crit: ["b64"] },
  { zip: "DEF" },
  { cty: "JWT" },
];

describe("a forged token", () => {
  for (const [what, { good, claims, type, sign: signRight, publicForms, reads }] of Object.entries(kinds)) {
    const [goodHeader = "", goodPayload = "", goodSignature = ""] = good.split(".");
    const made = (head: string, payload: string, by: Sign): string =>
      `${head}.${payload}.${by(`${head}.${payload}`).toString("base64url")}`;

    it(`in the place of ${what} is refused, whatever header names whatever key [S43]`, () => {
      expect(reads(good)).to.equal(true);
      let tried = 0;
      for (const alg of algorithms) {
        for (const kid of keyIds) {
          for (const extra of extras) {
            for (const typ of [type, "JWT", undefined]) {
              const head = encode(JSON.stringify({ alg, typ, kid, ...extra }));
              if (head === goodHeader) continue;
              // Even where the right key signs it: a token never chooses how it is read.
              for (const by of [signRight, () => Buffer.alloc(0), () => Buffer.alloc(64)]) {
                expect(reads(made(head, goodPayload, by)), JSON.stringify({ alg, typ, kid, ...extra })).to.equal(false);
                tried++;
              }
            }
          }
        }
      }
      expect(tried).to.be.above(10_000);
    });

    it(`in the place of ${what} is refused with a MAC by whatever is public of its key [S43]`, () => {
      for (const secret of [...publicForms, Buffer.alloc(0), Buffer.from(goodHeader), decoy.public.raw]) {
        for (const algorithm of ["sha256", "sha512"]) {
          for (const head of [goodHeader, encode(`{"alg":"HS256","typ":"${type}"}`)]) {
            const mac = (signed: string): Buffer => createHmac(algorithm, secret).update(signed).digest();
            const padded = (signed: string): Buffer => Buffer.concat([mac(signed), mac(signed)]).subarray(0, 64);
            for (const by of [mac, padded]) expect(reads(made(head, goodPayload, by))).to.equal(false);
          }
        }
      }
    });

    it(`in the place of ${what} is refused by a foreign key, another tenant's, and the one that stands in [S43]`, () => {
      const raised = encode(JSON.stringify({ ...claims, exp: exp + 1 }));
      for (const payload of [goodPayload, raised]) {
        for (const by of [stranger, other.privateKey]) {
          expect(reads(made(goodHeader, payload, (signed) => sign(null, Buffer.from(signed), by)))).to.equal(false);
        }
        expect(reads(made(goodHeader, payload, (signed) => decoy.sign(signed)))).to.equal(false);
        expect(reads(made(headerOf(decoy.public.id), payload, (signed) => decoy.sign(signed)))).to.equal(false);
      }
      expect(reads(`${goodHeader}.${raised}.${goodSignature}`)).to.equal(false);
    });

    it(`in the place of ${what} is refused where the right key signs claims that two readers read differently [S13, S43]`, () => {
      const text = JSON.stringify(claims);
      const rest = text.slice(1);
      const texts = [
        `{"tenant":"umbrella",${rest}`,
        `{"exp":9999999999,${rest}`,
        text.replace(/}$/, ',"exp":9999999999}'),
        text.replace('"tenant"', '"ten\\u0061nt":"umbrella","tenant"'),
        text.replace(/}$/, ',"__proto__":{"tenant":"umbrella"}}'),
        text.replace(/}$/, ',"constructor":{}}'),
        text.replace(`${exp}`, `${exp}.5`),
        text.replace(`${exp}`, "1e400"),
        text.replace(`${exp}`, `"${exp}"`),
        text.replace(`${exp}`, "9007199254740993"),
        text.replace(`${exp}`, "-1"),
        text.replace('"acme"', '["acme"]'),
        text.replace('"acme"', "null"),
        text.replace('"acme"', '"acm\\ud800"'),
        `\ufeff${text}`,
        `${text}\0`,
        `${text}${text}`,
        `[${text}]`,
        `${"[".repeat(2_000)}${"]".repeat(2_000)}`,
        text.replace('"acme"', `"${"a".repeat(3_000)}"`),
        "null",
        "",
      ];
      for (const each of texts)
        expect(reads(made(goodHeader, encode(each), signRight)), each.slice(0, 80)).to.equal(false);
    });

    it(`in the place of ${what} is refused in any second spelling of its signature [S43]`, () => {
      const signature = Buffer.from(goodSignature, "base64url");
      // The order of the curve's group: S + L would be a second signature of the same text, were it taken.
      const order = 2n ** 252n + 27742317777372353535851937790883648493n;
      const scalar = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString("hex")}`);
      for (const times of [1n, 2n, 7n]) {
        const raised = Buffer.from((scalar + times * order).toString(16).padStart(64, "0"), "hex").reverse();
        const forged = Buffer.concat([signature.subarray(0, 32), raised]).subarray(0, 64);
        expect(reads(`${goodHeader}.${goodPayload}.${forged.toString("base64url")}`)).to.equal(false);
      }
      for (const point of [
        Buffer.alloc(32),
        Buffer.from(`01${"00".repeat(31)}`, "hex"),
        Buffer.from(`ec${"ff".repeat(30)}7f`, "hex"),
      ]) {
        const forged = Buffer.concat([point, Buffer.alloc(32)]);
        expect(reads(`${goodHeader}.${goodPayload}.${forged.toString("base64url")}`)).to.equal(false);
      }
      for (const text of [
        `${good}=`,
        `${good} `,
        ` ${good}`,
        `${good}.`,
        `.${good}`,
        good.replace(".", ".."),
        `${good}\n`,
        signature.toString("base64"),
      ]) {
        expect(
          reads(text === signature.toString("base64") ? `${goodHeader}.${goodPayload}.${text}` : text),
          text,
        ).to.equal(false);
      }
      expect(reads(`${good}${"A".repeat(1_000_000)}`)).to.equal(false);
    });
  }

  it("of one kind is none of the other, though the same key signed it [S43]", () => {
    const { "a ticket": asTicket, "a reference to a task": asTask } = kinds as Record<string, Kind>;
    const cross = (head: string, payload: string, by: Sign): string =>
      `${head}.${payload}.${by(`${head}.${payload}`).toString("base64url")}`;
    const [ticketHeader = "", ticketPayload = ""] = (asTicket as Kind).good.split(".");
    const [taskHeader = "", taskPayload = ""] = (asTask as Kind).good.split(".");
    for (const [head, payload] of [
      [ticketHeader, taskPayload],
      [taskHeader, ticketPayload],
      [ticketHeader, ticketPayload],
    ] as const) {
      expect((asTask as Kind).reads(cross(head, payload, (asTask as Kind).sign))).to.equal(false);
    }
    for (const [head, payload] of [
      [ticketHeader, taskPayload],
      [taskHeader, ticketPayload],
      [taskHeader, taskPayload],
    ] as const) {
      expect((asTicket as Kind).reads(cross(head, payload, (asTicket as Kind).sign))).to.equal(false);
    }
  });

  it("of another tenant, time or life is refused with its right signature [S43]", () => {
    const changes: readonly Partial<TaskClaims>[] = [
      { tenant: "umbrella" },
      { exp: nowMs / 1_000 },
      { exp: nowMs / 1_000 - 1 },
      { exp: 0 },
      { exp: nowMs / 1_000 + 32 * 86_400 },
    ];
    const reads = (token: string, tenant = "acme"): boolean =>
      isRead(() => readReference(token, signers, tenant, nowMs));
    for (const change of changes) expect(reads(signReference({ ...task, ...change }, own.privateKey))).to.equal(false);
    expect(reads(signReference(task, own.privateKey), "umbrella")).to.equal(false);
    expect(reads(signReference({ ...task, tenant: "umbrella" }, own.privateKey), "umbrella")).to.equal(false);
    expect(reads(signReference(task, other.privateKey))).to.equal(false);
    expect(reads(signReference({ ...task, tenant: "umbrella" }, other.privateKey), "umbrella")).to.equal(true);
  });
});
