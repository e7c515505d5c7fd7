import { expect } from "chai";
import { plainPath, WriteDomains } from "../../../core/manifest/plan.ts";

describe("plainPath(path)", () => {
  const spellings: Readonly<Record<string, string>> = {
    "/srv/app": "/srv/app",
    "/srv/app/": "/srv/app",
    "/srv//app/./x": "/srv/app/x",
    "/srv/app/../../etc/passwd": "/etc/passwd",
    "/../../etc": "/etc",
    "../x": "../x",
    "a/../../x": "../x",
    "~/notes/../x": "~/x",
    "~/../../etc": "../etc",
    "C:\\work\\..\\x": "C:/x",
    "\\\\srv\\app\\x": "//srv/app/x",
    "//srv/app": "//srv/app",
    "/": "/",
  };
  for (const [path, plain] of Object.entries(spellings)) {
    it(`is \`${plain}\` for \`${path}\``, () => {
      expect(plainPath(path)).to.equal(plain);
    });
  }
});

describe("WriteDomains", () => {
  const domains = new WriteDomains(["/srv/app/", "/var/log/*.log", "API.example.com", "*.internal:8443"]);

  for (const path of ["/srv/app", "/srv/app/x/y", "/srv/x/../app/y", "/var/log/a/b.log"]) {
    it(`has the path ${path}`, () => expect(domains.hasPath(path)).to.equal(true));
  }

  for (const path of [
    "/srv/application",
    "/srv",
    "/srv/app/../x",
    "//srv/app/x",
    "srv/app",
    "/SRV/app/x",
    "/var/log/x.log.gz",
    "/x/api.example.com",
    "/a.internal:8443",
    "~/srv/app",
  ]) {
    it(`has not the path ${path}`, () => expect(domains.hasPath(path)).to.equal(false));
  }

  for (const host of ["api.example.com", "db.internal:8443", "a.b.internal:8443"]) {
    it(`has the host ${host}`, () => expect(domains.hasHost(host)).to.equal(true));
  }

  for (const host of [
    "example.com",
    "api.example.com:8443",
    "xapi.example.com",
    "internal:8443",
    "db.internal",
    "srv",
  ]) {
    it(`has not the host ${host}`, () => expect(domains.hasHost(host)).to.equal(false));
  }

  it("has everything where `*` is among them, and nothing where there are none", () => {
    const [all, none] = [new WriteDomains(["*"]), new WriteDomains([])];
    expect([all.isAnywhere, all.hasHost("evil.example"), all.hasPath("../x")]).to.deep.equal([true, true, true]);
    expect([none.isAnywhere, none.hasHost("evil.example"), none.hasPath("/")]).to.deep.equal([false, false, false]);
  });

  it("has all absolute paths below `/`, and none that climbs", () => {
    const root = new WriteDomains(["/"]);
    expect(["/", "/etc/passwd", "../x", "~/x"].map((path) => root.hasPath(path))).to.deep.equal([
      true,
      true,
      false,
      false,
    ]);
  });
});
