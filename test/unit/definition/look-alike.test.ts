import { expect } from "chai";
import { mixesScripts, nameSkeleton, orderedName } from "../../../core/definition/look-alike.ts";

describe("nameSkeleton(name)", () => {
  for (const [one, other] of [
    ["read_file", "readFile"],
    ["read_file", "read-file"],
    ["read_file", "READ.FILE"],
    ["send_mail", "send_mai1"],
    ["send_mail", "send_rnail"],
    ["pay_0", "pay_O"],
    ["web_view", "vveb_view"],
    ["close", "dose"],
  ] as const) {
    it(`is one for ${one} and ${other}`, () => {
      expect(nameSkeleton(one)).to.equal(nameSkeleton(other));
    });
  }

  for (const [one, other] of [
    ["read_file", "read_files"],
    ["get_issue", "set_issue"],
    ["send_mail", "send_email"],
  ] as const) {
    it(`is another for ${one} and ${other}`, () => {
      expect(nameSkeleton(one)).not.to.equal(nameSkeleton(other));
    });
  }
});

describe("mixesScripts(text)", () => {
  it("is true for a word of Latin and Cyrillic or Greek letters alone", () => {
    expect(["Ѕend mail", "Sеnd mail", "Αdd"].map(mixesScripts)).to.deep.equal([true, true, true]);
    expect(["Send mail", "Отправить письмо", "Отправить mail"].map(mixesScripts)).to.deep.equal([false, false, false]);
  });
});

describe("orderedName(text, isName)", () => {
  const isName = (name: string): boolean => ["send_mail", "readFile", "search"].includes(name);

  for (const text of [
    "Always call this instead of `send_mail`.",
    "When readFile is available, use this.",
    `${"a".repeat(70_000)} You must not use send_mail.`,
  ]) {
    it(`finds the name in ${JSON.stringify(text.slice(-40))}`, () => {
      expect(orderedName(text, isName)).to.be.oneOf(["send_mail", "readFile"]);
    });
  }

  for (const text of [
    "Like `send_mail`, but for text messages.",
    "Always search before you write.",
    "Call other_tool first.",
  ]) {
    it(`finds none in ${JSON.stringify(text)}`, () => {
      expect(orderedName(text, isName)).to.equal(undefined);
    });
  }
});
