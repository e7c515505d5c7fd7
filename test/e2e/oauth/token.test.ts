import { expect } from "chai";
import { SignJWT } from "jose";
import { until } from "../../support/event-stream.ts";
import { encodePart, newIssuerKey, publishedKey } from "../../support/token-issuer.ts";
import { send } from "../../support/wire.ts";
import { audience, bearer, OauthWorld } from "./world.ts";

const metadata = 'resource_metadata="https://gateway.example/.well-known/oauth-protected-resource/mcp"';

describe("an access token", () => {
  describe("of the configured issuer", () => {
    let world: OauthWorld;
    before(async () => {
      world = await OauthWorld.start({ oauth: "tenant: acme\njwks_refetch_seconds: 1" });
    });
    after(() => world.stop());

    it("gets a call to the upstream, which sees nothing of it", async () => {
      const token = await world.token();
      const calls = await world.upstream.calls();
      expect(await world.callWith(token, { mark: 1 })).to.equal("result");
      const [call, ...others] = (await world.upstream.calls()).slice(calls.length);
      expect(others).to.deep.equal([]);
      expect(JSON.stringify(call)).not.to.contain(token.split(".")[2]);
      expect(call?.headers.map((name) => name.toLowerCase())).not.to.include("authorization");
    });

    const now = (): number => Math.floor(Date.now() / 1_000);
    /** What is wrong with a token, the reason that the refusal gives, and the token; its twin without the fault is accepted. */
    const hostile: readonly [what: string, reason: string, make: () => Promise<string>][] = [
      ["that has expired", "expired", () => world.token({ exp: now() - 60 })],
      ["that is not valid yet", "not_yet_valid", () => world.token({ nbf: now() + 600 })],
      ["for another audience", "audience", () => world.token({ aud: "https://other.example/mcp" })],
      ["of another issuer", "issuer", () => world.token({ iss: "https://login.example" })],
      ["without an expiry", "claims", () => world.token({ exp: undefined as never })],
      ["without a subject", "claims", () => world.token({ sub: undefined as never })],
      ["that is an ID token", "type", () => world.token({}, { typ: "JWT" })],
      ["with `alg: none`", "algorithm", async () => unsigned(await world.token())],
      ["with an unknown key id", "unknown_key", () => world.token({}, { kid: "nobodys" })],
      ["signed by a stranger's key under a known id", "signature", () => world.token({}, {}, newIssuerKey("first"))],
      ["with HS256 and the public key as the secret", "algorithm", () => confused(world)],
      ["whose claims were changed", "signature", async () => altered(await world.token())],
      ["of 9,000 characters", "too_large", () => world.token({ padding: "x".repeat(6_500) })],
    ];
    for (const [what, reason, make] of hostile) {
      it(`${what} is refused with 401, nothing is run, and nothing of it is repeated [S84]`, async () => {
        const refused = await world.refuse(await make());
        expect([refused.code, refused.reason]).to.deep.equal(["TOKEN_INVALID", reason]);
        expect(refused.message).to.match(/^invalid access token: \S/);
        const description = refused.message.replace("invalid access token: ", "");
        expect(refused.challenge).to.equal(
          `Bearer error="invalid_token", error_description="${description}", ${metadata}`,
        );
        expect(await world.callWith(await world.token())).to.equal("result");
      });
    }

    it("is taken from `Authorization` alone", async () => {
      const token = await world.token();
      for (const headers of [
        [["x-api-key", token]],
        [["cookie", `access_token=${token}`]],
        [["x-forwarded-access-token", token]],
      ] as const) {
        expect((await world.call(headers)).status).to.equal(401);
      }
      expect((await world.call([], {}, `/mcp?access_token=${token}`)).status).to.equal(401);
    });

    it("beside a key is refused: the two could be of two callers", async () => {
      const token = await world.token();
      expect((await world.call([["x-api-key", world.keys.agent], ...bearer(token)])).status).to.equal(400);
      expect((await world.call([...bearer(token), ...bearer(token)])).status).to.equal(400);
    });

    it("opens neither the admin port nor the page of operators nor `/v1/ws`", async () => {
      const headers = bearer(await world.token());
      const { adminUrl, metricsUrl, url } = world.gateway;
      expect((await send(adminUrl, { target: "/admin/v1/policies", headers })).status).to.equal(401);
      for (const port of [url, metricsUrl]) {
        const upgrade = [...headers, ["connection", "upgrade"], ["upgrade", "websocket"]] as const;
        const response = await send(port, {
          target: "/v1/ws",
          headers: [...upgrade, ["sec-websocket-version", "13"], ["sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="]],
        });
        expect(response.status).to.equal(401);
      }
    });

    it("leaves keys as they were", async () => {
      expect(JSON.parse((await world.call([["x-api-key", world.keys.agent]])).body).result.isError).not.to.equal(true);
      expect(JSON.parse((await world.call(bearer(world.keys.agent))).body).result.isError).not.to.equal(true);
      const unknown = await world.call(bearer(`${world.keys.agent}x`));
      expect([unknown.status, JSON.parse(unknown.body).error.data.code]).to.deep.equal([401, "KEY_UNKNOWN"]);
    });

    it("is asked for where a request has none", async () => {
      const response = await world.call([]);
      expect([response.status, response.headers.get("www-authenticate")]).to.deep.equal([401, `Bearer ${metadata}`]);
    });

    it("makes the gateway fetch keys no more often than once a second, whatever key ids it names [S84]", async () => {
      const before = world.server.fetchCount;
      const began = performance.now();
      for (let round = 0; round < 40; round++) await world.refuse(await world.token({}, { kid: `unknown-${round}` }));
      const seconds = (performance.now() - began) / 1_000;
      expect(world.server.fetchCount - before).to.be.at.most(Math.ceil(seconds) + 1);
    });

    it("verifies with a rotated key once the issuer publishes it, and no more with one that it withdrew [S84]", async () => {
      const next = newIssuerKey("second", "RS256");
      const token = await world.token({}, {}, next);
      expect((await world.refuse(token)).reason).to.equal("unknown_key");
      world.server.publish([await publishedKey(next)]);
      await until(async () => (await world.callWith(token)) === "result");
      expect((await world.refuse(await world.token())).reason).to.equal("unknown_key");
    });

    it("leaves no byte in log, metrics, files or store [S84]", () => world.expectNoTrace());
  });

  describe("when the keys of the issuer cannot be read", () => {
    const unreachable: readonly [what: string, fault: string, (world: OauthWorld) => void][] = [
      ["nobody answers", "timeout", ({ server }) => server.answerWith(() => undefined)],
      [
        "they are 64 MB",
        "too_large",
        ({ server }) => server.answerWith((_, response) => void response.end("x".repeat(64e6))),
      ],
      [
        "they lie elsewhere",
        "redirect",
        ({ server }) =>
          server.answerWith(
            (_, response) => void response.writeHead(307, { location: `${server.jwksUri}/moved` }).end(),
          ),
      ],
      [
        "the server fails",
        "status",
        ({ server }) => server.answerWith((_, response) => void response.writeHead(503).end()),
      ],
      ["they are no keys", "invalid", ({ server }) => server.answerWith((_, response) => void response.end("<html>"))],
    ];
    let world: OauthWorld;
    before(async () => {
      world = await OauthWorld.start({ oauth: "tenant: acme\njwks_cache_seconds: 1\njwks_refetch_seconds: 1" });
    });
    after(() => world.stop());

    for (const [what, fault, answer] of unreachable) {
      it(`because ${what}, is refused, and accepted again once they can be [S84]`, async () => {
        const token = await world.token();
        answer(world);
        await until(async () => (await world.callWith(token)) === "TOKEN_INVALID keys_unavailable");
        const refused = await world.refuse(token);
        expect([refused.reason, refused.challenge]).to.deep.equal([
          "keys_unavailable",
          `Bearer error="invalid_token", error_description="the keys of its issuer cannot be read now", ${metadata}`,
        ]);
        expect(world.gateway.stderr()).to.match(new RegExp(`"fault":"${fault}".*"msg":"signing_keys_fetch_failed"`));
        world.server.publish([await publishedKey(world.key)]);
        await until(async () => (await world.callWith(token)) === "result");
      });
    }

    it("because the issuer is gone, is refused, while keys go on [S84]", async () => {
      await world.server.close();
      const token = await world.token();
      await until(async () => (await world.callWith(token)) === "TOKEN_INVALID keys_unavailable");
      await world.refuse(token);
      expect((await world.call([["x-api-key", world.keys.agent]])).status).to.equal(200);
      await world.expectNoTrace();
    });
  });

  it("goes on while cached keys serve their time, whether or not the issuer can be reached [S84]", async () => {
    const world = await OauthWorld.start();
    try {
      expect(await world.callWith(await world.token())).to.equal("result");
      await world.server.close();
      expect(await world.callWith(await world.token())).to.equal("result");
      expect((await world.refuse(await world.token({}, { kid: "unknown" }))).reason).to.equal("unknown_key");
      expect(await world.callWith(await world.token())).to.equal("result");
    } finally {
      await world.stop();
    }
  });

  it("needs each guard: what one setting refuses is run where the setting admits it", async () => {
    const scope = { scope: "other" };
    const [leeway, type, algorithms] = ["leeway_seconds: 300", "token_type: any", "algorithms: [RS256]"];
    const world = await OauthWorld.start({ oauth: `tenant: acme\n${leeway}\n${type}\n${algorithms}` });
    try {
      const rsa = newIssuerKey("rsa", "RS256");
      world.server.publish([await publishedKey(world.key), await publishedKey(rsa)]);
      const { iat = 0 } = world.claims;
      expect(await world.callWith(await world.token({ exp: iat - 60 }, {}, rsa))).to.equal("result");
      expect(await world.callWith(await world.token({ nbf: iat + 60 }, {}, rsa))).to.equal("result");
      expect(await world.callWith(await world.token({}, { typ: "JWT" }, rsa))).to.equal("result");
      expect(await world.callWith(await world.token(scope, {}, rsa))).to.equal("result");
      expect((await world.refuse(await world.token())).reason).to.equal("algorithm");
    } finally {
      await world.stop();
    }
  });

  it("has every scope that is configured, which 401 and metadata name [S84]", async () => {
    const world = await OauthWorld.start({ oauth: "tenant: acme\nscopes: [tools, 'mcp:call']" });
    try {
      const named = 'scope="tools mcp:call"';
      expect((await world.call([])).headers.get("www-authenticate")).to.equal(`Bearer ${metadata}, ${named}`);
      const refused = await world.refuse(await world.token({ scope: "tools" }));
      expect([refused.reason, refused.challenge?.endsWith(`${metadata}, ${named}`)]).to.deep.equal(["scope", true]);
      expect(await world.callWith(await world.token({ scope: "mcp:call tools" }))).to.equal("result");
      const served = await send(world.gateway.url, { target: "/.well-known/oauth-protected-resource/mcp" });
      expect(JSON.parse(served.body).scopes_supported).to.deep.equal(["tools", "mcp:call"]);
    } finally {
      await world.stop();
    }
  });

  it("means nothing without OAuth: the 401 asks for a key, and no metadata is served", async () => {
    const world = await OauthWorld.start();
    const plain = await OauthWorld.start({ withoutOauth: true });
    try {
      const response = await plain.call(bearer(await world.token()));
      expect([response.status, response.headers.get("www-authenticate")]).to.deep.equal([401, "Bearer"]);
      expect((await plain.call([])).body).to.contain("send `X-API-Key: <key>`");
      for (const target of ["", "/mcp"].map((path) => `/.well-known/oauth-protected-resource${path}`)) {
        expect((await send(plain.gateway.url, { target })).status).to.equal(404);
        const served = await send(world.gateway.url, { target });
        const posted = await send(world.gateway.url, { method: "POST", target });
        expect([posted.status, posted.headers.get("allow")]).to.deep.equal([405, "GET, HEAD"]);
        expect(served.headers.get("content-type")).to.match(/^application\/json/);
        expect(JSON.parse(served.body)).to.deep.equal({
          resource: audience,
          authorization_servers: [world.server.issuer],
          bearer_methods_supported: ["header"],
          resource_name: "Agent Governance Gateway",
        });
      }
    } finally {
      await plain.stop();
      await world.stop();
    }
  });
});

/** The same claims without a signature. */
function unsigned(token: string): string {
  return `${encodePart({ alg: "none", typ: "at+jwt", kid: "first" })}.${token.split(".")[1]}.`;
}

/** The same header and signature over other claims. */
function altered(token: string): string {
  const [header, payload = "", signature] = token.split(".");
  const claims = JSON.parse(Buffer.from(payload, "base64url").toString());
  return [header, encodePart({ ...claims, sub: "somebody-else" }), signature].join(".");
}

/** A token that the public key verifies as the secret of an HMAC. */
function confused({ key, claims, canary }: OauthWorld): Promise<string> {
  const secret = new Uint8Array(Buffer.from(key.publicKey.export({ type: "spki", format: "pem" })));
  return new SignJWT({ ...claims, jti: canary() })
    .setProtectedHeader({ alg: "HS256", kid: key.kid, typ: "at+jwt" })
    .sign(secret);
}
