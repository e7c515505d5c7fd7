import { expect } from "chai";
import { isOnThisMachine, parseReference } from "../../../core/distribution/reference.ts";

const digest = `sha256:${"0a".repeat(32)}`;

describe("parseReference(text)", () => {
  it("reads registry, repository and version", () => {
    const read = (text: string): readonly unknown[] => {
      const found = parseReference(text);
      return [found?.origin.href, found?.repository, found?.version, found?.isDigest];
    };
    expect(read("oci://r.example/a/b-c:1.0.0")).to.deep.equal(["https://r.example/", "a/b-c", "1.0.0", false]);
    expect(read("oci://r.example:5000/a")).to.deep.equal(["https://r.example:5000/", "a", "latest", false]);
    expect(read(`oci://r.example/a@${digest}`)).to.deep.equal(["https://r.example/", "a", digest, true]);
    expect(read("oci://localhost:5000/a:b")).to.deep.equal(["http://localhost:5000/", "a", "b", false]);
    expect(read("oci://[::1]:5000/a:b")).to.deep.equal(["http://[::1]:5000/", "a", "b", false]);
  });

  const others = [
    "r.example/a:1",
    "https://r.example/a:1",
    "oci://r.example",
    "oci://r.example/",
    "oci://r.example/A:1",
    "oci://r.example/a/../b:1",
    "oci://r.example/a//b:1",
    "oci://r.example/a:1?x=y",
    "oci://r.example/a:1#x",
    "oci://user:secret@r.example/a:1",
    "oci://R.example/a:1",
    "oci://127.1/a:1",
    "oci://r.example:99999/a:1",
    "oci://r.example/a:",
    `oci://r.example/a:${"1".repeat(129)}`,
    "oci://r.example/a@sha256:abc",
    `oci://r.example/a:1@${digest}`,
    `oci://r.example/a@${digest.toUpperCase()}`,
    `oci://r.example/${"a".repeat(256)}:1`,
  ];
  for (const text of others) {
    it(`refuses ${text.slice(0, 60)}`, () => {
      expect(parseReference(text)).to.equal(undefined);
    });
  }
});

describe("isOnThisMachine(url)", () => {
  it("is true for addresses of this machine, and for no name in which one is written", () => {
    const hosts = ["localhost", "127.0.0.1", "127.9.9.9", "[::1]"];
    const other = ["127.0.0.1.example", "127-0-0-1.example", "localhost.example", "10.0.0.1", "0.0.0.0.example"];
    expect(hosts.filter((host) => !isOnThisMachine(new URL(`http://${host}/`)))).to.deep.equal([]);
    expect(other.filter((host) => isOnThisMachine(new URL(`http://${host}/`)))).to.deep.equal([]);
  });
});
