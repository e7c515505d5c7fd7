import { generateKeyPairSync } from "node:crypto";
import { expect } from "chai";
import { fetchSigningKeys, KeyFetchError } from "../../../core/identity/key-fetch.ts";
import { egress } from "../../support/egress.ts";
import { jsonAnswer, type KeyServer, newIssuerKey, publishedKey, startKeyServer } from "../../support/token-issuer.ts";

const canary = "canary-of-the-key-server";

describe("fetchSigningKeys({issuer, jwksUri}, egress)", () => {
  let server: KeyServer;
  beforeEach(async () => {
    server = await startKeyServer();
  });
  afterEach(() => server.close());

  /** The fault of a fetch; nothing that the server said is part of it. */
  async function faultOf(jwksUri: string | null = server.jwksUri, issuer: string = server.issuer): Promise<string> {
    const cause = await fetchSigningKeys({ issuer, jwksUri }, egress).catch((error: unknown) => error);
    if (!(cause instanceof KeyFetchError)) throw new Error("expected a KeyFetchError");
    expect(cause.message).not.to.contain(canary);
    return cause.fault;
  }

  it("reads the keys of a given address, and of the one that the issuer's metadata names", async () => {
    server.publish([await publishedKey(newIssuerKey("a"))]);
    for (const jwksUri of [server.jwksUri, null]) {
      const { keys } = await fetchSigningKeys({ issuer: server.issuer, jwksUri }, egress);
      expect(keys.map(({ kid }) => kid)).to.deep.equal(["a"]);
    }
  });

  it("takes public members of asymmetric keys only", async () => {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const jwk = { ...privateKey.export({ format: "jwk" }), kid: "private", x5u: "http://127.0.0.1:1/" };
    server.publish([
      jwk,
      { kty: "oct", k: "c2VjcmV0", kid: "shared" },
      { kty: "RSA", kid: "wide", n: "A".repeat(1_367), e: "AQAB" },
    ]);
    const { keys } = await fetchSigningKeys(server, egress);
    expect(keys.map((key) => [key.kid, Object.keys(key).sort()])).to.deep.equal([
      ["private", ["crv", "kid", "kty", "x", "y"]],
    ]);
  });

  it("follows no redirect", async () => {
    server.answerWith((request, response) => {
      if (request.url === "/elsewhere") jsonAnswer({ keys: [] })(request, response);
      else response.writeHead(302, { location: `${server.issuer}/elsewhere` }).end();
    });
    expect([await faultOf(), server.fetchCount]).to.deep.equal(["redirect", 1]);
  });

  it("stops reading at 256 KiB", async () => {
    let sent = 0;
    server.answerWith((_, response) => {
      const write = (): void => {
        while (!response.destroyed && sent < 64 * 1_048_576) {
          sent += 65_536;
          if (!response.write(`"${canary.padEnd(65_534, "x")}"`)) return;
        }
        response.end();
      };
      response.on("drain", write);
      write();
    });
    expect(await faultOf()).to.equal("too_large");
    expect(sent).to.be.below(32 * 1_048_576);
  });

  it("waits 5 s for a server that never ends, and for one that never answers", async () => {
    server.answerWith((_, response) => {
      response.write('{"keys":[');
    });
    const stuck = faultOf();
    const silent = await startKeyServer();
    silent.answerWith(() => undefined);
    try {
      expect(await Promise.all([stuck, faultOf(silent.jwksUri)])).to.deep.equal(["timeout", "timeout"]);
    } finally {
      await silent.close();
    }
  });

  it("refuses what is no key set", async () => {
    const faults: string[] = [];
    for (const body of [
      "",
      canary,
      "[]",
      "{}",
      '{"keys":{}}',
      '{"keys":[],"keys":[]}',
      `{"keys":${"[".repeat(100)}${"]".repeat(100)}}`,
    ]) {
      server.answerWith((_, response) => void response.end(body));
      faults.push(await faultOf());
    }
    server.publish(Array.from({ length: 101 }, (_, index) => ({ kty: "EC", kid: `${index}` })));
    expect(new Set([...faults, await faultOf()])).to.deep.equal(new Set(["invalid"]));
    server.answerWith((_, response) => void response.writeHead(500).end(canary));
    expect(await faultOf()).to.equal("status");
  });

  it("reports a server that is not there", async () => {
    const gone = await startKeyServer();
    await gone.close();
    expect(await faultOf(gone.jwksUri)).to.equal("unreachable");
  });

  describe("metadata", () => {
    it("of another issuer is refused", async () => {
      expect(await faultOf(null, `${server.issuer}/`)).to.equal("invalid");
    });

    it("of RFC 8414 is read where there is none of OpenID Connect", async () => {
      const issuer = `${server.issuer}/team`;
      server.answerWith((request, response) => {
        if (request.url === "/.well-known/oauth-authorization-server/team") {
          jsonAnswer({ issuer, jwks_uri: `${server.issuer}/team/keys` })(request, response);
        } else if (request.url === "/team/keys") jsonAnswer({ keys: [{ kty: "EC", kid: "team" }] })(request, response);
        else response.writeHead(404).end();
      });
      const { keys } = await fetchSigningKeys({ issuer, jwksUri: null }, egress);
      expect(keys.map(({ kid }) => kid)).to.deep.equal(["team"]);
    });

    it("that names no address of the same scheme is refused", async () => {
      const issuer = `${server.issuer}/team`;
      for (const jwksUri of [undefined, 1, "", "/keys", "file:///etc/passwd", "https://127.0.0.1/keys"]) {
        server.answerWith(jsonAnswer({ issuer, jwks_uri: jwksUri }));
        expect(await faultOf(null, issuer), String(jwksUri)).to.equal("invalid");
      }
    });
  });
});
