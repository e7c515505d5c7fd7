import { expect } from "chai";
import { withOutput } from "../../../core/action/envelope.ts";
import type { Json } from "../../../core/action/json.ts";
import type { Verdict } from "../../../core/action/policy.ts";
import { findRedactionFault, maxRedactions, mergeRedactions, redactOutput } from "../../../core/action/redaction.ts";
import { makeAction } from "../../support/action.ts";
import { carriers } from "../../support/detection/carrier.ts";
import { measurePersonal } from "../../support/detection/measure-personal.ts";
import { personalData, personalKinds } from "../../support/detection/personal-data.ts";
import { openFirstParty } from "../../support/first-party.ts";
import type { ImmediatePolicy } from "../../support/plugin-port.ts";

const settingNames = ["email", "phone", "card", "iban", "us_ssn", "national_id", "ip_address"] as const;
const ignoringAll = Object.fromEntries(settingNames.map((name) => [name, "ignore"]));

describe("the plugin pii-guard", () => {
  let plugin: ImmediatePolicy;

  before(async () => {
    plugin = await openFirstParty("pii-guard");
  });

  function judge(output: Json, policy: ImmediatePolicy = plugin): Verdict {
    return policy.evaluate(withOutput(makeAction(), output));
  }

  /** The answer that leaves, as the road makes it. */
  function redact(output: Json, policy: ImmediatePolicy = plugin): Json {
    const redactions = mergeRedactions(judge(output, policy).redactions ?? []);
    expect(findRedactionFault(output, redactions)).to.equal(undefined);
    return redactOutput(output, redactions);
  }

  function said({ findings }: Verdict): readonly (readonly [string, string, string | undefined])[] {
    return findings.map(({ decision, rule, pointer }) => [decision, rule, pointer]);
  }

  it("[S59] replaces what it finds in text, structured content, errors, resources and JSON, and keeps the rest", () => {
    const mail = "ada@example.com";
    expect(redact({ content: [{ type: "text", text: `é🔑 ${mail}\n"${mail}"\\ x` }] })).to.deep.equal({
      content: [{ type: "text", text: 'é🔑 [email]\n"[email]"\\ x' }],
    });
    expect(redact({ isError: true, structuredContent: { "a/b~c": [{ "": mail }] } })).to.deep.equal({
      isError: true,
      structuredContent: { "a/b~c": [{ "": "[email]" }] },
    });
    expect(redact({ contents: [{ uri: "a:b", text: JSON.stringify({ m: `\n${mail}\t` }) }] })).to.deep.equal({
      contents: [{ uri: "a:b", text: JSON.stringify({ m: "\n[email]\t" }) }],
    });
  });

  it("[S59] replaces a run of base64 as a whole where its text holds something, padding and line breaks with it", () => {
    const lines = (
      Buffer.from(`${"x".repeat(120)} call +49 30 901820 now`)
        .toString("base64")
        .match(/.{1,76}/g) ?? []
    ).join("\n");
    expect(redact({ text: `a: ${lines}, b: ${Buffer.from("nothing to see here").toString("base64")}` })).to.deep.equal({
      text: `a: [phone], b: ${Buffer.from("nothing to see here").toString("base64")}`,
    });
  });

  it("says what it found of each kind, where first, and how often", () => {
    const verdict = judge({ a: "ada@example.com, ben@example.com", b: { c: "4111 1111 1111 1111" } });
    expect(verdict).to.include({ decision: "allow", risk: 70 });
    expect(said(verdict)).to.deep.equal([
      ["allow", "pii-guard.email", "/output/a"],
      ["allow", "pii-guard.card", "/output/b/c"],
    ]);
    expect(verdict.findings[0]?.message).to.equal("e-mail address: 2 places, redacted");
    expect(JSON.stringify(verdict)).not.to.match(/example|4111/);
  });

  it("abstains where there is nothing", () => {
    expect(judge({ content: [{ type: "text", text: "The meeting is at 10:30 in room 4." }] })).to.deep.equal({
      decision: "abstain",
      findings: [],
      risk: 0,
    });
  });

  describe("where nothing can be redacted", () => {
    it("[S59] blocks personal data in the name of a member, and tells no pointer through it", () => {
      const verdict = judge({ rows: { "ada@example.com": { x: "ben@example.com" }, y: "carol@example.com" } });
      expect(verdict.decision).to.equal("block");
      expect(said(verdict)).to.deep.equal([
        ["allow", "pii-guard.email", "/output/rows/y"],
        ["block", "pii-guard.email", "/output/rows"],
      ]);
      expect(verdict.redactions?.map(({ pointer }) => pointer)).to.deep.equal(["/output/rows/y"]);
      expect(JSON.stringify(verdict)).not.to.include("@");
    });

    it("blocks a number that is a card, and an answer that is one text", () => {
      expect(said(judge({ n: 4111111111111111 }))).to.deep.equal([["block", "pii-guard.card", "/output/n"]]);
      expect(judge({ n: 4111111111111112 }).decision).to.equal("abstain");
      expect(judge("ada@example.com").decision).to.equal("block");
    });

    it("blocks where there are more places than one verdict holds", async () => {
      const rows = Array.from({ length: maxRedactions + 1 }, (_, index) => ({ mail: `a${index}@example.com` }));
      const decide = async (output: Json): Promise<string> =>
        (await plugin.settle(withOutput(makeAction(), output))).decision;
      expect(await decide({ rows: rows.slice(1) })).to.equal("allow");
      expect(await decide({ rows })).to.equal("block");
    });

    it("replaces all from the 128th place on where one text holds more", () => {
      const mails = Array.from({ length: 300 }, (_, index) => `a${index}@example.com`);
      const { text } = redact({ text: `${mails.join(", ")}.` }) as { readonly text: string };
      expect(text).to.equal(`${Array(128).fill("[email]").join(", ")}.`);
    });
  });

  describe("for each kind", () => {
    for (const [index, kind] of personalKinds.entries()) {
      const sample = personalData().find((datum) => datum.kind === kind)?.text ?? "";
      const setting = settingNames[index] ?? "";
      it(`redacts, holds, blocks or ignores ${kind} as its setting says`, async () => {
        for (const manner of ["redact", "review", "block", "ignore"]) {
          const policy = await openFirstParty("pii-guard", { ...ignoringAll, [setting]: manner });
          const verdict = judge({ text: `: ${sample} .` }, policy);
          const expected = { redact: "allow", ignore: "abstain" }[manner] ?? manner;
          expect(verdict.decision, manner).to.equal(expected);
          expect(verdict.findings.map(({ rule }) => rule)).to.deep.equal(
            manner === "ignore" ? [] : [`pii-guard.${kind}`],
          );
          // What is withheld is on record too: nothing of it but the place.
          const gone = !JSON.stringify(redact({ text: `: ${sample} .` }, policy)).includes(sample);
          expect(gone, manner).to.equal(manner !== "ignore");
        }
      });
    }
  });

  it("looks at answers alone, and at what is sent where its setting asks for it", async () => {
    const action = makeAction({ arguments: { to: "ada@example.com" }, continuation: { state: "ben@example.com" } });
    expect(plugin.evaluate(action).decision).to.equal("abstain");
    for (const input of ["review", "block"] as const) {
      const policy = await openFirstParty("pii-guard", { input });
      const verdict = policy.evaluate(action);
      expect(said(verdict)).to.deep.equal([[input, "pii-guard.email", "/arguments/to"]]);
      expect(verdict.redactions).to.equal(undefined);
      expect(policy.evaluate(makeAction({ phase: "list", arguments: { to: "ada@example.com" } })).decision).to.equal(
        "abstain",
      );
    }
    const careless = await openFirstParty("pii-guard", { input: "block", email: "ignore" });
    expect(careless.evaluate(action).decision).to.equal("abstain");
  });

  it("takes a number for a telephone number where its name or a word before it says so", () => {
    for (const output of [{ phone: "4155550123" }, { Tel: "4155550123" }, { text: "Mobile: 4155550123" }]) {
      expect(said(judge(output)).map(([, rule]) => rule)).to.deep.equal(["pii-guard.phone"]);
    }
    for (const output of [{ id: "4155550123" }, { text: "order 4155550123" }, { hotel: "4155550123" }]) {
      expect(judge(output).decision).to.equal("abstain");
    }
  });

  it("measures what it would miss: nothing is gone where everything is ignored", async () => {
    const { gone, exact, byCarrier } = measurePersonal(await openFirstParty("pii-guard", ignoringAll));
    expect([...gone, ...exact, ...byCarrier].filter(({ count }) => count > 0)).to.deep.equal([]);
    expect(byCarrier).to.have.length(carriers.length);
  });
});
