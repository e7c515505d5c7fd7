import { createHash } from "node:crypto";
import { expect } from "chai";
import type { ActionEnvelope } from "../../../core/action/envelope.ts";
import type { JsonObject } from "../../../core/action/json.ts";
import { SecretTrail } from "../../../core/session/secret-trail.ts";
import { newAction } from "../../support/ledger-world.ts";

const body = Array.from({ length: 24 }, (_, row) => createHash("sha384").update(`row ${row}`).digest("base64"));
const key = `-----BEGIN PRIVATE KEY-----\n${body.join("\n")}\n-----END PRIVATE KEY-----\n`;
const short = "ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R";

describe("SecretTrail", () => {
  let trail: SecretTrail;
  beforeEach(() => {
    trail = new SecretTrail();
    trail.learn({ content: [{ type: "text", text: `${key} and token=${short}` }] });
  });

  const facts = { hosts: ["evil.example"], paths: [], more: false, effect: "read" } as const;
  const count = (args: JsonObject, given: Partial<ActionEnvelope> = { facts }): number =>
    trail.count(newAction({ arguments: args, ...given }));

  const whole = body.join("");
  for (const [form, textOf] of [
    ["as it is", (text: string) => text],
    ["in base64", (text: string) => Buffer.from(text).toString("base64")],
    ["in base64 for URLs", (text: string) => Buffer.from(text).toString("base64url")],
    ["in hexadecimal digits", (text: string) => Buffer.from(text).toString("hex")],
    ["with percent-escapes", (text: string) => encodeURIComponent(text)],
  ] as const) {
    it(`adds pieces of 16 characters up, ${form}`, () => {
      const left = [0, 1, 2, 3, 4].map((at) => count({ d: textOf(whole.slice(500 + at * 16, 516 + at * 16)) }));
      expect(left[0]).to.be.within(9, 25);
      expect(left.at(-1)).to.be.at.least(60);
      expect(left).to.deep.equal(left.toSorted((one, other) => one - other));
    });
  }

  it("adds up what was cut out of the whole in base64", () => {
    const encoded = Buffer.from(whole).toString("base64");
    const left = [300, 345, 390].map((at) => count({ d: encoded.slice(at, at + 45) }));
    expect(left[0]).to.be.within(30, 55);
    expect(left[2]).to.be.above(100);
  });

  it("counts what is repeated once, and short secrets by their own length", () => {
    for (let turn = 0; turn < 5; turn++) expect(count({ d: short.slice(0, 12) })).to.equal(30);
    expect(count({ d: [short.slice(12, 24), { [short.slice(24)]: 1 }] })).to.equal(100);
  });

  it("counts nothing for what stays, for models, and for other random texts", () => {
    expect(count({ path: short }, { facts: { ...facts, hosts: [] } })).to.equal(0);
    expect(count({ text: short }, { protocol: "model" })).to.equal(0);
    for (let turn = 0; turn < 200; turn++) {
      const hash = createHash("sha512").update(`other ${turn}`);
      expect(count({ d: hash.copy().digest("base64"), h: hash.digest("hex") })).to.equal(0);
    }
    expect(count({ text: "-----BEGIN PRIVATE KEY----- is how a key begins" })).to.equal(0);
    expect(count({ d: short }, { facts: { ...facts, hosts: [], effect: "write" } })).to.equal(100);
  });

  it("takes names, paths and words of an answer for no secrets", () => {
    trail = new SecretTrail();
    trail.learn(
      "https://docs.acme.example/guide/version-2/getting-started DATABASE_CONNECTION_STRING customer_2026_report",
    );
    expect(trail.size).to.equal(0);
  });

  it("forgets the oldest of too many secrets, and has a bounded size", () => {
    for (let turn = 0; turn < 100; turn++) {
      trail.learn(
        Array.from({ length: 8 }, (_, row) => createHash("sha512").update(`${turn} ${row}`).digest("base64")),
      );
    }
    expect(trail.size).to.be.below(128 * 40_000);
    expect(count({ d: short })).to.equal(0);
    expect(count({ d: createHash("sha512").update("99 7").digest("base64") })).to.be.at.least(100);
  });
});
