import { expect } from "chai";
import { findNamedValues, maxNamedValues, widerValues } from "../../../core/fact/named-value.ts";

function namedIn(text: string): readonly string[] {
  const found = new Set<string>();
  findNamedValues(text, found);
  return [...found];
}

describe("findNamedValues(text, found)", () => {
  for (const [value, spellings] of [
    [
      "to:drop@evil.example",
      [
        "Write to drop@evil.example.",
        "Drop <DROP@Evil.Example>",
        "mailto:drop@evil.example?subject=x",
        "drop%40evil%2eexample",
        "drop [at] evil [dot] example",
        "drop(at)evil(dot)example",
        "drop&#64;evil&#x2e;example",
        "dr\u200bop@ev\u00adil.example",
        "ｄｒｏｐ＠ｅｖｉｌ．ｅｘａｍｐｌｅ",
        '{"to":"drop\\u0040evil.example"}',
        "First.\\ndrop@evil.example",
        "--to=drop@evil.example",
        "**drop@evil.example**",
        "[mail](mailto:drop@evil.example)",
        "drop@evil.example.",
      ],
    ],
    [
      "net:evil.example/drop",
      [
        "https://evil.example/drop",
        "HTTPS://EVIL.example:8443/drop?d=1#x",
        "https://user@evil.example./drop/",
        "hxxps://evil[.]example/drop",
        "evil.example/drop",
        "https:\\/\\/evil.example\\/drop",
        "https://evil.example/a/../drop",
        "git@evil.example:drop.git",
        '<a href="https://evil.example/drop">here</a>',
        "?next=https://evil.example/drop",
      ],
    ],
    ["net:xn--bcher-kva.example", ["https://bücher.example", "https://XN--BCHER-KVA.example", "bu\u0308cher.example"]],
    ["net:198.51.100.7", ["http://198.51.100.7/x", "http://0xC6336407/x", "http://3325256711", "198.51.100.7"]],
    ["net:2001:db8::1", ["http://[2001:db8::1]:80/x", "http://[2001:0DB8:0:0::1]/"]],
    [
      "to:DE89370400440532013000",
      [
        "DE89 3704 0044 0532 0130 00",
        "DE89370400440532013000",
        "de89370400440532013000",
        "to DE89-3704-0044-0532-0130-00!",
      ],
    ],
    ["to:DE89370400440532013000", ["pay DE89 3704 0044 0532 0130 00 EUR 90"]],
    ["to:493012345678", ["+49 30 12345678", "0049 30 12345678", "+49 (30) 1234-5678"]],
    ["to:99887766554433", ["9988 7766 5544 33", "account 99887766554433."]],
    ["to:0x52908400098527886e0f7030069857d2e4169ee7", ["0x52908400098527886E0F7030069857D2E4169EE7"]],
    ["to:mallory_ext", ["ask @mallory_ext", "@Mallory_Ext"]],
    ["to:external-partners", ["post in #external-partners"]],
    [
      "path:/~/.bashrc",
      ["~/.bashrc", "/home/ada/.bashrc", "/root/.bashrc", "file:///home/ada/.bashrc", "/home/ada/x/../.bashrc"],
    ],
    [
      "path:.github/workflows/x.yml",
      [".github/workflows/x.yml", "/workspace/.github/workflows/x.yml", "app/.github/workflows/x.yml"],
    ],
    [
      "path:/etc/cron.d/x",
      ["cp x /etc/cron.d/x", "--out=/etc/cron.d/x", "scp x host.example:/etc/cron.d/x", "/ETC//cron.d/./x"],
    ],
    ["path:/c:/new/x.txt", ["C:\\new\\x.txt", "c:/new/x.txt"]],
  ] as const) {
    it(`finds ${value} however it is spelt (${spellings.length})`, () => {
      for (const text of spellings) expect(namedIn(text), text).to.include(value);
    });
  }

  for (const text of [
    "Nothing is named here, and/or there, at 12:00 on 2026-11-23 (3.14159265).",
    "src/app.ts, console.log and README.md; see issue #12 and user.name",
    'a [guide](/docs/setup) and <a href="/about/us">us</a>',
    "version 1.2345678 of v2.20261123",
    "</div> // a comment",
  ]) {
    it(`finds nothing in \`${text}\``, () => expect(namedIn(text)).to.deep.equal([]));
  }

  it("adds no more values than it may", () => {
    const text = Array.from({ length: 3_000 }, (_, index) => `a${index}@evil.example`).join(" ");
    const found = new Set<string>();
    for (let turn = 0; turn < 3; turn++) findNamedValues(text.replaceAll("@evil", `@evil${turn}`), found);
    expect(found.size).to.be.within(maxNamedValues, maxNamedValues + 2);
  });

  it("takes processor time that grows with the text, whatever it is made of", () => {
    const units = [
      "@",
      "a@",
      "://",
      "http://a",
      "/",
      "~/",
      "..",
      "1",
      "1 ",
      "AA11 ",
      "[",
      "&#",
      "\\u0040",
      "%40",
      "#a",
      "=a@b.c",
      "a.b.",
    ];
    for (const unit of [...units, "[at]", "[dot] ", "-", "+1-"]) {
      const [short, long] = [4_096, 65_536].map((size) => cpuOf(unit.repeat(size / unit.length)));
      expect(long, unit).to.be.below(400_000 + 64 * (short ?? 0));
    }
  });
});

/** Microseconds. */
function cpuOf(text: string): number {
  const before = process.cpuUsage();
  namedIn(text);
  return process.cpuUsage(before).user;
}

describe("widerValues(value)", () => {
  for (const [value, wider] of [
    ["net:a.evil.example/x/y", ["net:a.evil.example/x", "net:a.evil.example", "net:evil.example"]],
    ["net:198.51.100.7/x", ["net:198.51.100.7"]],
    ["to:ada@mail.evil.example", ["net:mail.evil.example", "net:evil.example"]],
    ["to:DE89370400440532013000", []],
    ["path:/~/.ssh/config", ["path:.ssh/config", "path:/~/.ssh"]],
    ["path:/srv/a/b", ["path:/srv/a"]],
    ["path:.env", []],
  ] as const) {
    it(`goes from ${value} up`, () => expect(widerValues(value)).to.deep.equal([value, ...wider]));
  }
});
