import { expect } from "chai";
import { withOutput } from "../../../core/action/envelope.ts";
import type { Json } from "../../../core/action/json.ts";
import { makeAction } from "../../support/action.ts";
import type { ImmediatePolicy } from "../../support/plugin-port.ts";
import { openSecretEgress } from "../../support/secret-egress.ts";

/** Put together here, so that no file of this repository holds what a scanner would take for a credential. */
const random = "q7Xv2LmP9sTz4KbW8nRd3HcY6fGj1AeU5oQi";
const part = (length: number): string => random.repeat(4).slice(0, length);
const encode = (text: string, as: BufferEncoding): string => Buffer.from(text).toString(as);
const json = (value: Json): string => JSON.stringify({ value });
const jwt = `${"eyJ"}hbGciOiJIUzI1NiJ9.${"eyJ"}zdWIiOiIxMjM0NTY3ODkwIn0.${part(43)}`;

/** Credentials as they leave: the rule that names them, and the arguments. */
const leaks: readonly (readonly [rule: string, pointer: string, value: Json])[] = [
  ["aws-access-key", "/arguments/body", { body: `key ${"AKIA"}IOSFODNN7EXAMPLE, region eu` }],
  ["aws-access-key", "/arguments/0/id", [{ id: `${"ASIA"}Z2345678ABCDEFGH` }]],
  ["github-token", "/arguments/header", { header: `Bearer ${"ghp_"}${part(36)}` }],
  ["github-token", "/arguments/t", { t: `${"github_pat_"}${part(82)}` }],
  ["slack-token", "/arguments/t", { t: `use ${"xoxb-"}123456789012-${part(24)} now` }],
  ["slack-token", "/arguments/url", { url: `https://hooks.slack.com/services/${"T"}0ABCDEFG/B0ABCDEFG/${part(24)}` }],
  ["private-key", "/arguments/file", { file: `a\n-----BEGIN ${"OPENSSH"} PRIVATE KEY-----\nb3Blb` }],
  ["private-key", "/arguments/file", { file: `-----BEGIN ${"PGP"} PRIVATE KEY BLOCK-----` }],
  ["private-key", "/arguments/env", { env: `secret=-----BEGIN ${"RSA"} PRIVATE KEY-----` }],
  ["github-token", "/arguments/env", { env: `secret=\${${"ghp_"}${part(36)}}` }],
  ["github-token", "/arguments/file", { file: `first line\n${"ghp_"}${part(36)}\n` }],
  ["aws-access-key", "/arguments/file", { file: `\t${"AKIA"}IOSFODNN7EXAMPLE\r\n` }],
  ["slack-token", "/arguments/json", { json: JSON.stringify({ a: `x\n${"xoxb-"}123456789012-${part(24)}` }) }],
  ["keyword-value", "/arguments/file", { file: `a: 1\npassword: ${part(24)}\n` }],
  ["json-web-token", "/arguments/cookie", { cookie: `session=${jwt}` }],
  ["keyword-value", "/arguments/env", { env: `DB_PASSWORD=${part(20)}` }],
  ["keyword-value", "/arguments/env", { env: `{"client_secret": "${part(32)}"}` }],
  ["keyword-value", "/arguments/env", { env: `api-key: '${part(24)}'` }],
  ["keyword-value", "/arguments/apiKey", { apiKey: part(32) }],
  ["keyword-value", "/arguments/a~1b~0c/db_password", { "a/b~c": { db_password: part(18) } }],
];

/** The same, as some write them who want them through. */
const disguised: readonly (readonly [form: string, rule: string, text: string])[] = [
  ["base64", "github-token", encode(`it is ${"ghp_"}${part(36)}`, "base64")],
  [
    "base64 in lines",
    "github-token",
    encode(`${"x ".repeat(99)}${"ghp_"}${part(36)}`, "base64").replace(/.{76}/g, "$&\n"),
  ],
  ["base64 in a path", "github-token", `https://host.example/a/b_c/${encode(`${"ghp_"}${part(36)}`, "base64url")}`],
  ["base64 of JSON", "aws-access-key", encode(JSON.stringify({ a: `x\n${"AKIA"}IOSFODNN7EXAMPLE` }), "base64")],
  ["a part of a URL", "private-key", `q=${encodeURIComponent(`-----BEGIN ${"RSA"} PRIVATE KEY-----`)}`],
  ["a form", "keyword-value", `${new URLSearchParams({ q: `password: ${part(24)}` })}`],
  ["JSON in JSON", "slack-token", json(json(json(`x\n${"xoxb-"}123456789012-${part(24)}`)))],
];

/** What must pass. */
const harmless: readonly Json[] = [
  {},
  null,
  { path: "/home/ada/project/src/index.ts", recursive: true, depth: 3 },
  { text: "Please reset my password: I forgot it, and the token has expired." },
  { text: "AKIA is a prefix, and so are ghp_ and xoxb- and eyJ" },
  { id: `x${"AKIA"}IOSFODNN7EXAMPLE` },
  { token: "user-session-token-name" },
  { env: "API_KEY=${" + "SERVICE_API_KEY_2024}" },
  { env: "password: <your-password-1234567890>" },
  { password: "short1" },
  { hash: part(64), commit: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b" },
  { text: "-----BEGIN CERTIFICATE-----\nMIIB" },
  { text: "-----BEGIN PUBLIC KEY-----" },
  { sql: "select token, secret from credentials where id = 1234567890123456" },
  { text: "eyJhbGciOiJIUzI1NiJ9.not-a-payload.signature-of-nothing-1234567" },
  { uuid: "01890000-0000-7000-8000-000000000001", total_tokens: 1234567890123456 },
  { text: "the secret: everyone deserves a second chance" },
];

describe("the plugin secret-egress", () => {
  let plugin: ImmediatePolicy;

  before(async () => {
    plugin = await openSecretEgress();
  });

  for (const [rule, pointer, value] of leaks) {
    it(`blocks ${rule} at ${pointer}: ${Object.keys(value as object).join()}`, () => {
      const verdict = plugin.evaluate(makeAction({ arguments: value }));
      const found = verdict.findings.map((each) => [each.rule, each.pointer]);
      expect(found).to.deep.include([`secret-egress.${rule}`, pointer]);
      expect(verdict.decision).to.equal("block");
      expect(JSON.stringify(verdict)).not.to.include(part(16));
    });
  }

  for (const [form, rule, text] of disguised) {
    it(`blocks ${rule} in ${form}`, () => {
      const verdict = plugin.evaluate(makeAction({ arguments: { text } }));
      expect(verdict.decision).to.equal("block");
      expect(verdict.findings.map((each) => each.rule)).to.deep.equal([`secret-egress.${rule}`]);
      expect(JSON.stringify(verdict)).not.to.include(part(16));
    });
  }

  it("abstains from what is harmless", () => {
    const found = harmless.filter((value) => plugin.evaluate(makeAction({ arguments: value })).decision !== "abstain");
    expect(found).to.deep.equal([]);
  });

  it("looks at calls and answers, and not at lists; where the settings ignore answers, at calls alone", async () => {
    const action = withOutput(makeAction({ arguments: { note: "x" } }), { text: `${"ghp_"}${part(36)}` });
    expect(plugin.evaluate(action).redactions).to.have.length(1);
    expect((await openSecretEgress({ output: "ignore" })).evaluate(action)).to.deep.include({
      decision: "abstain",
      findings: [],
    });
    expect(plugin.evaluate(makeAction({ phase: "list", arguments: { t: jwt } })).decision).to.equal("abstain");
  });

  it("reads what continues a request, too", () => {
    const verdict = plugin.evaluate(makeAction({ continuation: { requestState: jwt } }));
    expect(verdict.findings[0]?.pointer).to.equal("/continuation/requestState");
  });

  it("does not tell a credential that is itself a name", () => {
    const verdict = plugin.evaluate(
      makeAction({ arguments: { a: { [`${"ghp_"}${part(36)}`]: { b: `x=${jwt}` } }, c: jwt } }),
    );
    expect(verdict.findings.map(({ rule, pointer }) => [rule, pointer])).to.deep.equal([
      ["secret-egress.github-token", "/arguments/a"],
      ["secret-egress.json-web-token", "/arguments/a"],
      ["secret-egress.json-web-token", "/arguments/c"],
    ]);
  });

  it("does as its settings say", async () => {
    const leak = makeAction({ arguments: { t: jwt, env: `token=${part(30)}` } });
    const review = await openSecretEgress({ decision: "review" });
    expect(review.evaluate(leak).decision).to.equal("review");
    const ignoring = await openSecretEgress({ ignore: ["json-web-token"] });
    expect(ignoring.evaluate(leak).findings.map(({ rule }) => rule)).to.deep.equal(["secret-egress.keyword-value"]);
    const strict = await openSecretEgress({ least_entropy: 60, ignore: ["json-web-token"] });
    expect(strict.evaluate(leak).decision).to.equal("abstain");
  });

  for (const kind of new Set(leaks.map(([rule]) => rule))) {
    it(`passes ${kind} where the settings ignore it, and nothing else with it`, async () => {
      const ignoring = await openSecretEgress({ ignore: [kind] });
      const rules = leaks.map(([rule, , value]) => {
        const found = ignoring.evaluate(makeAction({ arguments: value })).findings.map((each) => each.rule);
        return [rule, found.includes(`secret-egress.${rule}`)];
      });
      expect(rules).to.deep.equal(leaks.map(([rule]) => [rule, rule !== kind]));
    });
  }

  it("takes as random what is as mixed as its settings ask", async () => {
    const action = makeAction({ arguments: { password: `${"ab".repeat(10)}12` } });
    expect(plugin.evaluate(action).decision).to.equal("abstain");
    expect((await openSecretEgress({ least_entropy: 10 })).evaluate(action).decision).to.equal("block");
  });

  it("reads 50,000 bytes made of beginnings within its fuel", async () => {
    const text = "secret=token:password=api_key ghp_ eyJ. AKIA -----BEGIN ".repeat(1_000);
    expect((await plugin.settle(makeAction({ arguments: { text } }))).decision).to.equal("abstain");
  });

  it("reads 25,000 bytes of the same within its fuel where it is JSON in a text, and partly written as in a URL", async () => {
    const text = json(`%20\n${`${part(36)} secret=`.repeat(1_000).slice(0, 25_000)}`);
    expect((await plugin.settle(makeAction({ arguments: { text } }))).findings).to.have.length(1);
  });

  it("reads 150,000 bytes of prose within its fuel, as JSON in a text", async () => {
    const text = json(`\n${"The committee met and went through the points of the plan. ".repeat(2_600)}`);
    expect(text.length).to.be.greaterThan(150_000);
    expect((await plugin.settle(makeAction({ arguments: { text } }))).decision).to.equal("abstain");
  });

  it("reads a picture of 200,000 bytes in base64 within its fuel", async () => {
    const text = Buffer.from(Array.from({ length: 150_000 }, (_, at) => (at * at * 7 + (at >> 3)) & 0xff)).toString(
      "base64",
    );
    expect((await plugin.settle(makeAction({ arguments: { text } }))).decision).to.equal("abstain");
  });

  it("reads 75,000 bytes of what is dearest to read within its fuel: names before values that look random", async () => {
    const text = `${part(36)} secret=`.repeat(2_000).slice(0, 75_000);
    expect((await plugin.settle(makeAction({ arguments: { text } }))).findings).to.have.length(1);
  });
});
