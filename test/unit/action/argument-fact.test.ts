import { expect } from "chai";
import fc from "fast-check";
import { findArgumentFacts } from "../../../core/action/fact.ts";
import type { Json } from "../../../core/action/json.ts";
import { growthOf, maxGrowth } from "../../support/duration.ts";

describe("findArgumentFacts(args)", () => {
  const hosts: readonly [text: string, hosts: readonly string[]][] = [
    ["https://example.com/a", ["example.com"]],
    ["HTTPS://Example.COM:8443/a", ["example.com:8443"]],
    ["https://good.example@evil.example/x", ["evil.example"]],
    ["https://user:secret@evil.example", ["evil.example"]],
    ["curl 'https://good.example;@evil.example/'", ["evil.example", "good.example"]],
    ["--url=https://a.example,https://b.example", ["a.example", "b.example"]],
    ["https:evil.example", ["evil.example"]],
    ["https:\\\\evil.example\\x", ["evil.example"]],
    ["  https:/evil.example", ["evil.example"]],
    ["http://0x7f.1/", ["127.0.0.1"]],
    ["http://[::1]:80/", ["[::1]"]],
    ["http://p\u0430ypal.com", ["xn--pypal-4ve.com"]],
    ["curl -s 'https://a.example/x' | tee https://b.example", ["a.example", "b.example"]],
    ["see (https://a.example), or https://b.example.", ["a.example", "b.example."]],
    ["https://a.example/?next=https://b.example/", ["a.example", "b.example"]],
    ["x://https://evil.example", ["https", "evil.example"]],
    ["git+ssh://git@host.example/r.git", ["host.example"]],
    ["postgres://u:p@db.example:5432/main", ["db.example:5432"]],
    ["mailto:ann@example.com", []],
    ["error: no such thing", []],
    ["://x", []],
    ["https://", []],
    ["a // comment", []],
    ["file:///etc/passwd", []],
  ];
  for (const [text, found] of hosts) {
    it(`finds the hosts of \`${text}\``, () => {
      expect(findArgumentFacts({ text }).hosts).to.deep.equal({ items: found, more: false });
    });
  }

  const paths: readonly [text: string, paths: readonly string[]][] = [
    ["/etc/passwd", ["/etc/passwd"]],
    ["/srv/my notes/today.md", ["/srv/my notes/today.md"]],
    ["/", ["/"]],
    ["~", ["~"]],
    ["~/.ssh/id_rsa", ["~/.ssh/id_rsa"]],
    ["~ann/x", ["~ann/x"]],
    ["C:\\Windows\\x", ["C:\\Windows\\x"]],
    ["\\\\server\\share", ["\\\\server\\share"]],
    ["../../etc/passwd", ["../../etc/passwd"]],
    ["a/../../b", ["a/../../b"]],
    ["a\\..\\b", ["a\\..\\b"]],
    ["cd ..", [".."]],
    ["rm -rf / --no-preserve-root", ["/"]],
    ["curl -d @/etc/shadow --output=/tmp/x", ["/etc/shadow", "/tmp/x"]],
    ["cat </etc/passwd>/tmp/x;ls ../a", ["/etc/passwd", "/tmp/x", "../a"]],
    ["line\n/etc/hosts\nline", ["/etc/hosts"]],
    ["open file:///etc/pass%77d", ["/etc/pass%77d"]],
    ["FILE:///etc/hosts", ["/etc/hosts"]],
    ["notes/today.md", []],
    ["and/or, 1/2, a..b, ...", []],
    ["~5 items", []],
    ["https://example.com/../x", []],
  ];
  for (const [text, found] of paths) {
    it(`finds the paths of \`${text}\``, () => {
      expect(findArgumentFacts({ text }).paths).to.deep.equal({ items: found, more: false });
    });
  }

  const commands: readonly [args: string, commands: readonly (readonly string[])[]][] = [
    ['{"argv":["rm","-rf","/"]}', [["rm", "-rf", "/"]]],
    ['{"Command":["ls"]}', [["ls"]]],
    ['{"x":["git","push","--force"]}', [["git", "push", "--force"]]],
    [
      '[["a","-b"],["a","-b"],["c","-d"]]',
      [
        ["a", "-b"],
        ["c", "-d"],
      ],
    ],
    ['{"tags":["a","b"]}', []],
    ['{"lines":["two words","-x"]}', []],
    ['{"argv":[]}', []],
    ['{"argv":["a",1]}', []],
  ];
  for (const [args, found] of commands) {
    it(`finds the commands of ${args}`, () => {
      expect(findArgumentFacts(JSON.parse(args) as Json).commands).to.deep.equal({ items: found, more: false });
    });
  }

  it("looks into names of members, at any depth", () => {
    const facts = findArgumentFacts({ files: [{ "/etc/cron.d/x": { "https://evil.example": "" } }] });
    expect(facts.paths.items).to.deep.equal(["/etc/cron.d/x"]);
    expect(facts.hosts.items).to.deep.equal(["evil.example"]);
  });

  it("measures in bytes, and says where the longest text is", () => {
    const facts = findArgumentFacts({ a: "xxxx", "b/c": ["ééé", "yyyyyy"] });
    expect(facts.maxField).to.deep.equal({ pointer: "/b~1c/0", bytes: 6 });
    expect(facts.bytes).to.equal('{"a":"xxxx","b/c":["ééé","yyyyyy"]}'.length + 3);
    expect(findArgumentFacts({ a: 1 }).maxField).to.equal(undefined);
    expect(findArgumentFacts("").maxField).to.deep.equal({ pointer: "", bytes: 0 });
  });

  describe("when there is more than can be told", () => {
    const twenty = Array.from({ length: 20 }, (_, index) => index);
    const rows: readonly [name: string, kind: "hosts" | "paths" | "commands", args: Json, told: number][] = [
      ["twenty-one hosts", "hosts", [...twenty.map((index) => `https://h${index}/`), "https://last/"], 20],
      ["twenty-one paths", "paths", [...twenty.map((index) => `/p${index}`), "/last"], 20],
      ["twenty-one paths in a text", "paths", `ls ${twenty.map((index) => `/p${index}`).join(" ")} /last`, 20],
      ["twenty-one commands", "commands", [...twenty.map((index) => [`c${index}`, "-x"]), ["last", "-x"]], 20],
      ["a path beyond 1024 characters", "paths", `ls /${"a".repeat(1_024)} /b`, 1],
      ["a host beyond 255 characters", "hosts", `https://${"a.".repeat(150)}example/ https://b/`, 1],
      ["a user of much punctuation", "hosts", `x https://${",".repeat(2_048)}@evil.example/`, 0],
      ["a user beyond 2048 characters", "hosts", `https://${"a".repeat(2_048)}@evil.example/`, 0],
      ["a thousand and one users of a host", "hosts", Array.from({ length: 1_001 }, (_, n) => `https://${n}@h/`), 1],
      ["a command of 65 words", "commands", { argv: Array.from({ length: 65 }, () => "a") }, 0],
      ["a command beyond 1024 characters", "commands", { argv: ["a".repeat(1_025)] }, 0],
    ];
    for (const [name, kind, args, told] of rows) {
      it(`tells ${told} of ${name}, and that there is more`, () => {
        const { items, more } = findArgumentFacts(args)[kind];
        expect([items.length, more]).to.deep.equal([told, true]);
      });
    }

    it("tells exactly twenty as all there are", () => {
      const { items, more } = findArgumentFacts(twenty.map((index) => `/p${index} `)).paths;
      expect([items.length, more]).to.deep.equal([20, false]);
    });

    it("tells a text that is a path before the words of others", () => {
      const words = Array.from({ length: 50 }, (_, index) => `</t${index}>`).join("");
      expect(findArgumentFacts({ content: words, path: "/etc/hosts" }).paths.items[0]).to.equal("/etc/hosts");
    });
  });

  it("finds any absolute path and any host, whatever stands around them", () => {
    const word = fc.stringMatching(/^[a-z]{1,8}$/);
    const gap = fc.constantFrom(" ", "\n", "'", '"', "; ", "=", " | ", "(", " <");
    fc.assert(
      fc.property(word, word, gap, gap, fc.array(word), (before, name, left, right, rest) => {
        const text = `${before}${left}/${[name, ...rest].join("/")}${right}${before}${left}https://${name}.example${right}`;
        const { hosts: found, paths: led } = findArgumentFacts({ text });
        expect(led.items).to.deep.equal([`/${[name, ...rest].join("/")}`]);
        expect(found.items).to.deep.equal([`${name}.example`]);
      }),
    );
  });

  it("takes any JSON, and says the same of it again", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const json = JSON.parse(JSON.stringify(value)) as Json;
        const facts = findArgumentFacts(json);
        expect(findArgumentFacts(json)).to.deep.equal(facts);
        expect(facts.bytes).to.equal(Buffer.byteLength(JSON.stringify(json)));
      }),
    );
  });

  const quarter = 262_144;
  const hostile: readonly [name: string, text: string][] = [
    ["marks", "://".repeat(quarter)],
    ["URLs of one host", "a://b ".repeat(quarter / 2)],
    ["schemes", "a".repeat(4 * quarter)],
    ["slashes", "/ ".repeat(2 * quarter)],
    ["dots", "../".repeat(quarter)],
    ["words", "a ~".repeat(quarter)],
    ["one path", `x /${"a".repeat(4 * quarter)}`],
    ["one host", `https://${"a".repeat(4 * quarter)}`],
    ["many paths", Array.from({ length: quarter / 4 }, (_, index) => `/p${index}`).join(" ")],
  ];
  for (const [name, text] of hostile) {
    it(`reads ${name} in linear time`, async () => {
      const prepare = (length: number): Json => ({ text: text.slice(0, length) });
      expect(await growthOf(prepare, findArgumentFacts, text.length / 4)).to.be.below(maxGrowth);
    });
  }
});
