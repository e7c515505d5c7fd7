import { expect } from "chai";
import { readUrl } from "../../../core/fact/url.ts";

describe("readUrl(text)", () => {
  const zoneOf = (url: string): string => readUrl(url).zone;

  it("returns the scheme, the host as a client connects to it, its port and its zone", () => {
    expect(readUrl("HTTPS://Docs.Example/a?b")).to.deep.equal({
      scheme: "https",
      host: "docs.example",
      zone: "name",
      port: 443,
      userinfo: false,
      odd: false,
    });
    expect(readUrl("http://user:secret@[2606:4700::1111]:8080/")).to.deep.equal({
      scheme: "http",
      host: "2606:4700::1111",
      address: "2606:4700::1111",
      zone: "public",
      port: 8080,
      userinfo: true,
      odd: false,
    });
  });

  it("reads letters of Latin-1 the same after many calls", () => {
    const zones = new Set<string>();
    for (let call = 0; call < 20_000; call++)
      zones.add(readUrl(`https://${call % 2 === 0 ? "bücher" : "books"}.example/`).zone);
    expect([...zones]).to.deep.equal(["name"]);
  });

  it("returns the plain form of an address, however it is written, and says that it is odd", () => {
    for (const host of ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "①②⑦.0.0.1", "127。0。0。1", "127.0.0.1."]) {
      const { address, zone, odd } = readUrl(`http://${host}/`);
      expect({ address, zone, odd }, host).to.deep.equal({ address: "127.0.0.1", zone: "loopback", odd: true });
    }
  });

  it("knows both ends of each block of the registries", () => {
    const ends: Readonly<Record<string, readonly string[]>> = {
      private: ["10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0", "192.168.255.255"],
      loopback: ["127.0.0.0", "127.255.255.255", "0.0.0.0", "[::1]", "[::]"],
      link_local: ["169.254.0.0", "169.254.255.255", "[fe80::]", "[febf:ffff::]"],
      metadata: ["169.254.169.254", "100.100.100.200", "168.63.129.16", "[fd00:ec2::254]"],
      reserved: [
        "0.255.255.255",
        "198.18.0.0",
        "198.19.255.255",
        "224.0.0.0",
        "255.255.255.255",
        "[2001:1ff::]",
        "[3fff:fff::]",
      ],
      public: [
        "9.255.255.255",
        "11.0.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "198.20.0.0",
        "[2001:200::]",
        "[3fff:1000::]",
      ],
    };
    for (const [zone, hosts] of Object.entries(ends)) {
      for (const host of hosts) expect(zoneOf(`http://${host}/`), host).to.equal(zone);
    }
    expect(
      ["100.64.0.0", "100.127.255.255", "[fc00::]", "[fdff::]"].map((host) => zoneOf(`http://${host}/`)),
    ).to.deep.equal(["private", "private", "private", "private"]);
  });

  it("reads the IPv4 address within an IPv6 address", () => {
    for (const host of [
      "::ffff:127.0.0.1",
      "64:ff9b::7f00:1",
      "2002:7f00:1::",
      "2001:0:1:2:3:4:80ff:fffe",
      "::127.0.0.1",
    ]) {
      const { zone, odd } = readUrl(`http://[${host}]/`);
      expect({ zone, odd }, host).to.deep.equal({ zone: "loopback", odd: true });
    }
  });

  it("gives names the zone that they say they lead to, and others `name`", () => {
    expect(zoneOf("http://a.localhost/")).to.equal("loopback");
    expect(zoneOf("http://metadata.google.internal/")).to.equal("metadata");
    expect(zoneOf("http://wiki/")).to.equal("private");
    expect(zoneOf("http://10.0.0.1.nip.io/")).to.equal("private");
    expect(zoneOf("http://8.8.8.8.nip.io/")).to.equal("public");
    expect(zoneOf("http://localhost.example/")).to.equal("name");
  });

  it("has the default port of a scheme, and 0 where there is none", () => {
    expect(["http://a.example", "gopher://a.example", "x://a.example"].map((url) => readUrl(url).port)).to.deep.equal([
      80, 70, 0,
    ]);
  });

  it("returns an empty scheme and the host that a client may take, for a text without scheme", () => {
    const { scheme, host, zone, odd } = readUrl("169.254.169.254/latest");
    expect({ scheme, host, zone, odd }).to.deep.equal({
      scheme: "",
      host: "169.254.169.254",
      zone: "metadata",
      odd: true,
    });
    expect(readUrl("no url at all").scheme).to.equal("");
  });

  it("does not read what is longer than 16 KiB", () => {
    expect(readUrl(`http://a.example/${"a".repeat(16_384)}`)).to.include({ scheme: "", zone: "reserved", odd: true });
  });
});
