import { expect } from "chai";
import { readAddress } from "../../../core/fact/address.ts";

describe("readAddress(text)", () => {
  const plainOf = (text: string): string => readAddress(text).plain;

  it("reads mail addresses without name, quotes and letter case, and keeps tags", () => {
    for (const text of [
      "bob@good.example",
      "Bob@GOOD.example",
      "Bob <bob@good.example>",
      '"bob"@good.example',
      "mailto:bob@good.example",
    ]) {
      expect(readAddress(text), text).to.deep.equal({ kind: "mail", plain: "bob@good.example", odd: false });
    }
    expect(plainOf("bob+tag@good.example")).to.equal("bob+tag@good.example");
    expect(plainOf("bob@münchen.example")).to.equal(plainOf("bob@xn--mnchen-3ya.example"));
  });

  it("reads the address that mail goes to, and says where people read another", () => {
    for (const text of ['"a@good.example" <b@evil.example>', "a@good.example <b@evil.example>"]) {
      expect(readAddress(text), text).to.deep.equal({ kind: "mail", plain: "b@evil.example", odd: true });
    }
    expect(readAddress('"a@good.example"@evil.example')).to.include({
      plain: '"a@good.example"@evil.example',
      odd: true,
    });
    expect(readAddress("b(a@good.example)@evil.example")).to.include({ plain: "b@evil.example", odd: true });
  });

  it("says that a text is odd which names several, hides something or is sent on", () => {
    for (const text of [
      "a@good.example, b@evil.example",
      "a@good.example;b@evil.example",
      "a@good.example b@evil.example",
      "team: a@good.example, b@evil.example;",
      "<@evil.example:a@good.example>",
      "a%evil.example@good.example",
      "evil.example!a@good.example",
      "a@good.example\r\nBcc: b@evil.example",
      "a\u200b@good.example",
      "\u0430dmin@good.example",
      "a@g\u043e\u043ed.example",
      "mailto:a@good.example?cc=b@evil.example",
      "=?utf-8?q?a?=@good.example",
      "a@good.example.",
      "a@[127.0.0.1]",
      "a@",
      "@",
      "",
      "a".repeat(2_000),
    ]) {
      expect(readAddress(text).odd, text).to.equal(true);
    }
  });

  it("reads account numbers, handles and telephone numbers, so that equal ones are equal texts", () => {
    const equal = [
      ["account", "DE89 3704 0044 0532 0130 00", "de89370400440532013000", "DE89370400440532013000"],
      ["account", "1234-5678-90", "1234567890"],
      ["account", "0xABCDEF0123456789abcdef0123456789ABCDEF01", "0xabcdef0123456789abcdef0123456789abcdef01"],
      ["handle", "@Bob", "@bob"],
      ["handle", "@Bob@Social.example", "@bob@social.example"],
      ["phone", "+49 30 1234-567", "tel:+49301234567", "+49301234567"],
      ["other", "U024BE7LH", "U024BE7LH"],
    ];
    for (const [kind, ...texts] of equal) {
      const read = texts.map(readAddress);
      expect(new Set(read.map(({ plain }) => plain)).size, texts.join()).to.equal(1);
      for (const each of read) expect(each).to.include({ kind, odd: false });
    }
    expect(plainOf("DE89370400440532013000")).to.equal("DE89370400440532013000");
  });
});
