import { expect } from "chai";
import { withOutput } from "../../../core/action/envelope.ts";
import type { Json } from "../../../core/action/json.ts";
import { makeAction } from "../../support/action.ts";
import { checkedToken, publishedCredentials, shapeCount } from "../../support/detection/published-shape.ts";
import type { ImmediatePolicy } from "../../support/plugin-port.ts";
import { openSecretEgress } from "../../support/secret-egress.ts";

type Verdict = ReturnType<ImmediatePolicy["evaluate"]>;

/** What is no credential, though it begins or is named like one. */
const harmless: readonly string[] = [
  "secret_length = X25519.secret_length",
  "const password = getPassword();",
  "password = readPassword(request.headers2)",
  "token: string",
  "token_count: 1234567890123456",
  "tokenDigest: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  `${"sk-"}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`,
  `${"sk-ant-"}api03-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`,
  `${"sk-proj-"}YOUR_API_KEY_GOES_RIGHT_HERE_1234567890`,
  `${"glpat-"}your-token-goes-here-1234`,
  `${"ghp_"}${"x".repeat(36)}`,
  "YOUR_API_KEY",
  "api_key=<token>",
  "npm_config_registry npm_package_name hf_hub_download sk-spinner-circle re_compile_pattern_for_all_the_addresses",
  "token: 01890000-0000-7000-8000-000000000001",
  "secret: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
];

const token = checkedToken("ghp_", "q7Xv2LmP9sTz4KbW8nRd3HcY6fGj1A");

describe("secrets of published shapes", () => {
  let plugin: ImmediatePolicy;

  before(async () => {
    plugin = await openSecretEgress();
  });

  const rulesOf = (value: Json): readonly string[] =>
    plugin.evaluate(makeAction({ arguments: value })).findings.map(({ rule }) => rule);
  const answered = (output: Json, from: ImmediatePolicy = plugin): Verdict =>
    from.evaluate(withOutput(makeAction(), output));

  it("are found by the rule of their kind, sent or answered, at least sixty shapes of them", () => {
    expect(shapeCount).to.be.greaterThan(60);
    const missed = publishedCredentials().filter(({ kind, text }) => {
      const found = answered({ text: `a ${text}, b` }).redactions ?? [];
      const [one] = found;
      const isExact = found.length === 1 && one?.start === 2 && one.end === 2 + text.length;
      return !rulesOf({ text }).includes(`secret-egress.${kind}`) || (kind !== "private-key" && !isExact);
    });
    expect(missed.map(({ kind, text }) => [kind, text.length])).to.deep.equal([]);
  });

  it("pass where the settings ignore their kinds: each that is found can be named there", async () => {
    const ignore = [...new Set(publishedCredentials().map(({ kind }) => kind))];
    const ignoring = await openSecretEgress({ ignore });
    const found = publishedCredentials().filter(
      ({ text }) => ignoring.evaluate(makeAction({ arguments: { text } })).decision !== "abstain",
    );
    expect(found.map(({ kind }) => kind)).to.deep.equal([]);
  });

  for (const text of harmless) {
    it(`are not: ${text.slice(0, 48)}`, () => {
      expect(rulesOf({ text })).to.deep.equal([]);
      expect(answered({ text }).decision).to.equal("abstain");
    });
  }

  it("count with right check digits, whatever they look like, and with wrong ones unless they stand for something", () => {
    const made = "exampleexampleexampleexampleex";
    for (const [prefix, kind] of [
      ["ghp_", "github-token"],
      ["npm_", "npm-token"],
    ] as const) {
      const right = checkedToken(prefix, made);
      expect(rulesOf({ text: right })).to.deep.equal([`secret-egress.${kind}`]);
      expect(rulesOf({ text: `${right.slice(0, -1)}${right.endsWith("0") ? "1" : "0"}` })).to.deep.equal([]);
      expect(rulesOf({ text: checkedToken(prefix, "q7Xv2LmP9sTz4KbW8nRd3HcY6fGj1A") })).to.have.length(1);
    }
  });

  it("are redacted where they stand in an answer, also in JSON, in base64 and in a URL", () => {
    const texts = [
      `first ${token} last`,
      JSON.stringify({ note: `é\n${token}` }),
      `see ${Buffer.from(`it is ${token}, keep it`).toString("base64")} there`,
      `https://host.example/?q=a%20b%3A${token}`,
    ];
    for (const text of texts) {
      const { decision, redactions = [] } = answered({ content: [{ type: "text", text }] });
      expect(decision).to.equal("abstain");
      expect(redactions.map(({ pointer, replacement }) => [pointer, replacement])).to.deep.equal([
        ["/output/content/0/text", "[redacted]"],
      ]);
      const bytes = Buffer.from(text);
      const [one] = redactions;
      const left = Buffer.concat([bytes.subarray(0, one?.start), bytes.subarray(one?.end)]).toString();
      expect(left).not.to.include(token.slice(6, 18));
      expect(left.length).to.be.greaterThan(5);
    }
  });

  it("block an answer where nothing can be redacted: the name of a member, and an answer that is one text", () => {
    for (const output of [{ [token]: 1 }, token, { a: { [token]: { b: token } } }] as const) {
      const verdict = answered(output);
      expect(verdict.decision).to.equal("block");
      expect(JSON.stringify(verdict)).not.to.include(token);
    }
  });

  it("are marked, held, blocked or ignored in answers as the setting `output` says", async () => {
    const decisions = [];
    for (const output of ["mark", "review", "block", "ignore"]) {
      const { decision, findings, redactions } = answered({ a: token }, await openSecretEgress({ output }));
      decisions.push([output, decision, findings.length, redactions?.length ?? 0]);
    }
    expect(decisions).to.deep.equal([
      ["mark", "abstain", 1, 0],
      ["review", "review", 1, 0],
      ["block", "block", 1, 0],
      ["ignore", "abstain", 0, 0],
    ]);
  });

  it("are not told in an answer by a name alone, such as that of the next page", () => {
    expect(answered({ next_page_token: "q7Xv2LmP9sTz4KbW8nRd3HcY6fGj1AeU5oQi" }).decision).to.equal("abstain");
  });
});
