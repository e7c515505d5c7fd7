import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { readReference, signReference, type TaskClaims, type TaskSigner } from "../../../core/manifest/reference.ts";

const now = Date.parse("2026-05-01T10:00:00Z");
const own = generateKeyPairSync("ed25519");
const foreign = generateKeyPairSync("ed25519");
const claims: TaskClaims = {
  tenant: "acme",
  principal: "agent",
  task: "nightly",
  manifest: `sha256:${"ab".repeat(32)}`,
  exp: now / 1_000 + 60,
};
const signers: readonly TaskSigner[] = [
  { id: "theirs", tenant: "umbrella", key: foreign.publicKey },
  { id: "ops", tenant: "acme", key: own.publicKey },
];

describe("readReference(token, signers, tenant, now)", () => {
  const good = signReference(claims, own.privateKey);

  it("says what it claims and who signed it", () => {
    expect(readReference(good, signers, "acme", now)).to.deep.equal({ claims, signer: "ops" });
  });

  it("is a JWS whose header every reader of such tokens knows", () => {
    const [header = "", payload = ""] = good.split(".").map((part) => Buffer.from(part, "base64url").toString("utf8"));
    expect(JSON.parse(header)).to.deep.equal({ alg: "EdDSA", typ: "gateway-task+jwt" });
    expect(JSON.parse(payload)).to.deep.equal(claims);
  });

  it("counts until its second, and for at most 31 days", () => {
    const at = (exp: number): string => codeOf(signReference({ ...claims, exp }, own.privateKey));
    const second = now / 1_000;
    expect([second, second + 1, second + 31 * 86_400, second + 31 * 86_400 + 1].map(at)).to.deep.equal([
      "TASK_REFERENCE",
      "none",
      "none",
      "TASK_REFERENCE",
    ]);
  });

  it("trusts a signer for its own tenant alone", () => {
    const theirs = signReference({ ...claims, tenant: "umbrella" }, foreign.privateKey);
    expect(codeOf(theirs, "umbrella")).to.equal("none");
    expect(codeOf(theirs)).to.equal("TASK_REFERENCE");
    expect(codeOf(signReference(claims, foreign.privateKey))).to.equal("TASK_REFERENCE");
    expect(codeOf(signReference({ ...claims, tenant: "umbrella" }, own.privateKey))).to.equal("TASK_REFERENCE");
    expect(codeOf(good, "umbrella")).to.equal("TASK_REFERENCE");
  });

  it("refuses a change of any one character", () => {
    for (let at = 0; at < good.length; at += 1) {
      const other = good[at] === "A" ? "B" : "A";
      expect(codeOf(good.slice(0, at) + other + good.slice(at + 1)), `character ${at}`).to.equal("TASK_REFERENCE");
    }
  });

  it("refuses every other header, though its signature is good", () => {
    const [, payload] = good.split(".");
    const headers = ["none", "HS256", "ES256"].map((alg) => ({ alg, typ: "gateway-task+jwt" }));
    for (const header of [
      ...headers,
      { alg: "EdDSA" },
      { typ: "gateway-task+jwt", alg: "EdDSA" },
      { alg: "EdDSA", typ: "gateway-task+jwt", kid: "x" },
    ]) {
      const signed = `${Buffer.from(JSON.stringify(header)).toString("base64url")}.${payload}`;
      const spki = own.publicKey.export({ format: "der", type: "spki" });
      const signatures = [
        sign(null, Buffer.from(signed), own.privateKey),
        createHmac("sha256", spki).update(signed).digest(),
        Buffer.alloc(0),
      ];
      for (const signature of signatures) {
        expect(codeOf(`${signed}.${signature.toString("base64url")}`), JSON.stringify(header)).to.equal(
          "TASK_REFERENCE",
        );
      }
    }
  });

  const payloads: Readonly<Record<string, string>> = {
    "no JSON": "{",
    "no object": "[]",
    "a claim twice": JSON.stringify(claims).replace("{", '{"task":"daily",'),
    "a claim too many": JSON.stringify({ ...claims, nbf: 1 }),
    "a claim too few": JSON.stringify({ ...claims, task: undefined }),
    "a claim of another type": JSON.stringify({ ...claims, task: 7 }),
    "a fraction of a second": JSON.stringify({ ...claims, exp: claims.exp + 0.5 }),
    "a time that is a text": JSON.stringify({ ...claims, exp: String(claims.exp) }),
    "an object in a claim": JSON.stringify({ ...claims, task: { name: "nightly" } }),
  };
  for (const [what, payload] of Object.entries(payloads)) {
    it(`refuses ${what}, though its signature is good`, () => {
      const signed = `${good.split(".")[0]}.${Buffer.from(payload).toString("base64url")}`;
      const signature = sign(null, Buffer.from(signed), own.privateKey).toString("base64url");
      expect(codeOf(`${signed}.${signature}`)).to.equal("TASK_REFERENCE");
    });
  }

  it("refuses other shapes, second spellings and what is too long, and repeats nothing of them", () => {
    const long = signReference({ ...claims, task: "t".repeat(4_000) }, own.privateKey);
    const padded = `${good}==`;
    for (const token of [
      "",
      ".",
      "..",
      `${good}.`,
      `${good}.x`,
      padded,
      ` ${good}`,
      `${good}\n`,
      long,
      "secret-text",
    ]) {
      expect(codeOf(token), token.slice(0, 32)).to.equal("TASK_REFERENCE");
    }
    expect(() => readReference("secret-text", signers, "acme", now))
      .to.throw(GatewayError)
      .that.satisfies((error: Error) => !error.message.includes("secret"));
  });

  function codeOf(token: string, tenant = "acme"): string {
    try {
      readReference(token, signers, tenant, now);
      return "none";
    } catch (error) {
      return GatewayError.from(error).code;
    }
  }
});
