import { expect } from "chai";
import { type FormatName, formats } from "../../../core/config/format.ts";
import { growthOf, maxGrowth } from "../../support/duration.ts";

const examples: Readonly<Record<FormatName, { readonly fit: readonly string[]; readonly unfit: readonly string[] }>> = {
  name: {
    fit: ["a", "0", "acme-1.eu_x", "a".repeat(64)],
    unfit: ["", "A", "-a", "a b", "ä", "a/b", "a".repeat(65), "a\n"],
  },
  path: { fit: ["x", "./a b", "/ä"], unfit: ["", "a\0b", "a\nb", "a\u001b", "x".repeat(4097), "\ud800"] },
  argument: { fit: ["", "a\nb", "-y", "x".repeat(131_072)], unfit: ["a\0", "x".repeat(131_073), "\ud800"] },
  listen_host: {
    fit: ["127.0.0.1", "::", "localhost", "a.example"],
    unfit: ["", "*", "a b", "a:80", "[::1]", "-a", "a..b"],
  },
  allowed_host: {
    fit: ["localhost", "a.example:8080", "[::1]", "[::1]:80", "127.0.0.1:1"],
    unfit: [
      "",
      "*",
      "*.a.example",
      "A.example",
      "a:",
      "a:0",
      "a:65536",
      "::1",
      "a@b",
      "http://a",
      "a/b",
      "[x]",
      "a:80:80",
    ],
  },
  private_host: {
    fit: ["mcp.corp.example", "*.corp.example", "tools", "10.0.0.1", "fd00::1"],
    unfit: [
      "",
      "*",
      "*.",
      "*.example",
      "a.*.example",
      "*a.example",
      "*.10.0.0.1:80",
      "a:80",
      "[::1]",
      "http://a",
      "a/b",
    ],
  },
  origin: {
    fit: ["https://a.example", "http://localhost:3000", "http://[::1]:1", "vscode-webview://x"],
    unfit: [
      "",
      "*",
      "null",
      "a.example",
      "https://a.example/",
      "https://A.example",
      "https://*.a",
      "https://u@a",
      "https://",
    ],
  },
  oauth_url: {
    fit: ["https://a.example", "https://a.example/realms/b", "http://127.0.0.1:8000/mcp", "http://localhost:1"],
    unfit: [
      "",
      "a.example",
      "http://a.example",
      "http://localhost.example/",
      "https://u@a.example",
      "https://a.example/?x=1",
      "https://a.example/#x",
      'https://a.example/"',
      "https://a.example/\\",
      "https://a.example/`",
      "ftp://a.example",
    ],
  },
  scope: { fit: ["tools", "https://a.example/mcp:call"], unfit: ["", "a b", 'a"', "a\\", "ä", "x".repeat(257)] },
  claim: { fit: ["org", "https://a.example/tenant", "x".repeat(256)], unfit: ["", "a b", "ä", "x".repeat(257), "a\n"] },
  webhook_url: {
    fit: [
      "https://a.example/hook?x=1",
      "http://127.0.0.1:8000/",
      "http://[::1]/h",
      "http://localhost:1/",
      "http://127.9.9.9",
    ],
    unfit: [
      "",
      "http://a.example/hook",
      "http://10.0.0.1/hook",
      "http://localhost.example/",
      "http://127.0.0.1.example/",
      "http://[::ffff:7f00:1]/",
      "https://u@a",
      "http://u@localhost",
      "https://:p@a",
      "https://a#f",
      "ftp://localhost/",
      "https://a b",
    ],
  },
  url: {
    fit: ["https://a.example/mcp?x=1", "http://127.0.0.1:8000/"],
    unfit: [
      "",
      "a.example",
      "ftp://a",
      "file:///etc/passwd",
      "https://u@a",
      "https://:p@a",
      "https://a#f",
      "https://a#",
      "https://a b",
      " https://a",
      "https://ä.example",
      `https://a/${"x".repeat(4096)}`,
    ],
  },
  variable: { fit: ["A", "_A1", "PATH"], unfit: ["", "1A", "path", "A-B", "A=B", "A".repeat(129)] },
  process_variable: { fit: ["A", "http_proxy", "_"], unfit: ["", "1", "A=B", "A B", "ä", "A".repeat(129)] },
  header_name: { fit: ["X-Team", "a"], unfit: ["", "a b", "a:", "ä", "a\r\n", "x".repeat(129)] },
  header_value: {
    fit: ["", "a", "a b", "Bearer x", "x".repeat(4096)],
    unfit: [" a", "a ", "a\nb", "a\r", "ä", "\0", "x".repeat(4097)],
  },
  key_hash: {
    fit: [`sha256:${"0".repeat(64)}`],
    unfit: ["", "0".repeat(64), `sha256:${"A".repeat(64)}`, `sha256:${"0".repeat(63)}`, `sha512:${"0".repeat(64)}`],
  },
  public_key: { fit: ["MCowBQYDK2VwAyEA", "ab=="], unfit: ["", "-----BEGIN", "a b", "a===", "A".repeat(600)] },
  digest: { fit: [`sha256:${"0".repeat(64)}`], unfit: ["", "0".repeat(64), `sha256:${"A".repeat(64)}`] },
  instant: {
    fit: ["2026-12-31T00:00:00Z"],
    unfit: ["", "2026-12-31", "2026-13-31T00:00:00Z", "2026-12-31T00:00:00", "2026-12-31T00:00:00+01:00"],
  },
  identity_issuer: {
    fit: ["https://id.example", "a"],
    unfit: ["", "https://id.example ", "a`b", "ä", "a\n", "x".repeat(1025)],
  },
  identity_subject: {
    fit: ["https://ci.example/team@main", "ada@example.com", "spiffe://ci.example/a", "urn:a"],
    unfit: ["", "ada", ":a", "@a", "a:", "a b@c", "a@`", `a:${"x".repeat(1024)}`],
  },
  identity_prefix: {
    fit: ["https://ci.example/", "https://ci.example/team/", "spiffe://ci.example/a/"],
    unfit: [
      "",
      "/",
      "https://",
      "https:///",
      "https://ci.example",
      "https://ci.example/team",
      "https://ci.example/a/../",
      "https://CI.example/",
      "https://ci.example/?/",
      "https://ci.example/#/",
      "urn:a/",
      "ada@example.com/",
    ],
  },
  tool_prefix: { fit: ["", "fs_", "A.b-"], unfit: ["a b", "*", "ä", "a".repeat(65)] },
  tool_glob: { fit: ["*", "read_*", "a"], unfit: ["", "a b", "a?", "[a]", "ä", "a".repeat(129)] },
  action_glob: { fit: ["*", "resources/*", "notifications/message"], unfit: ["", "a b", "a?", "ä", "a".repeat(129)] },
  effect_key: { fit: ["mytool", "kubectl get --raw"], unfit: ["", "./a", "a  b", "a -x b"] },
  argument_place: {
    fit: ["command", "a/b", "to addresses", "/steps/*/command", "/", "/a~1b/~0", "//"],
    unfit: ["", "a\nb", "/a~2", "/a~", "/a\0", "a".repeat(257), `/${"a".repeat(257)}`, "/a".repeat(17)],
  },
  absolute_path: { fit: ["/", "/srv/a b"], unfit: ["", "srv", "./srv", "~/srv", "C:\\srv", "/a\nb"] },
  printable: { fit: ["a", " a b ", "ä — 漢", "a\n"], unfit: ["", "  ", "a\u200bb", "a\u202e", "a\nb"] },
  timestamp: {
    fit: ["2026-12-31T00:00:00Z", "2026-12-31T00:00:00.5+01:00"],
    unfit: ["", "2026-12-31", "2026-12-31T00:00:00", "2026-13-31T00:00:00Z"],
  },
  taint: { fit: ["a", "web-page", "x".repeat(64)], unfit: ["", "A", "1a", "a b", "a_b", "x".repeat(65)] },
  field_glob: {
    fit: ["write_file:content", "*:password", "read_*:", "a:b:c", "*:ä b"],
    unfit: ["", "password", ":password", "a b:c", "a:\n", `${"x".repeat(129)}:a`, `a:${"x".repeat(257)}`, "a:\ud800"],
  },
  rule_glob: {
    fit: ["baseline.read", "session-watch.*", "*", "a"],
    unfit: ["", "Baseline.read", "a b", "a/b", "ä", "x".repeat(129)],
  },
  model_name: {
    fit: ["m", "org/model-2:free", "mock:fail=503", "x".repeat(256)],
    unfit: ["", "a b", "ä", "a\n", "x".repeat(257)],
  },
  provider_key: {
    fit: ["sk-a_b.c", "x".repeat(512)],
    unfit: ["", "short", "Bearer sk-abcdef", "sk-abcdef\n", "sk-äbcdefg", "x".repeat(513)],
  },
  meta_key: { fit: ["a", "com.example/x"], unfit: ["", "a b", "ä", "x".repeat(257)] },
};

describe("formats", () => {
  for (const [name, { fit, unfit }] of Object.entries(examples) as [FormatName, (typeof examples)[FormatName]][]) {
    it(`${name}: tells fit from unfit`, () => {
      for (const value of fit) expect(formats[name].test(value), JSON.stringify(value)).to.equal(true);
      for (const value of unfit) expect(formats[name].test(value), JSON.stringify(value.slice(0, 80))).to.equal(false);
    });

    it(`${name}: answers hostile text in linear time`, async () => {
      for (const piece of ["a", "a.", "-", "a:", "[", " ", "\u0000"]) {
        const test = (text: string): boolean => formats[name].test(text);
        expect(await growthOf((count) => piece.repeat(count), test, 131_072)).to.be.below(maxGrowth);
      }
    });
  }
});
