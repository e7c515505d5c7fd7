import { expect } from "chai";
import { contentDigest } from "../../../core/action/canonical-json.ts";
import { mcpMethods } from "../../../core/gateway/mcp/method.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type HeaderList, send } from "../../support/wire.ts";
import { echoCall, effectsOf, keys, messageHeaders, nothing, openWorld, post, type World } from "./world.ts";

const json: HeaderList = [["content-type", "application/json"]];
const canary = "canary-in-a-key-that-is-wrong";
const direct = (key: string): HeaderList => [["x-api-key", key]];
const bearer = (text: string): HeaderList => [["authorization", text]];

/** What is presented as a key, by what is wrong with it, and the status that answers it. */
const badKeys: readonly [string, HeaderList, number][] = [
  ["no key at all", [], 401],
  ["an empty key", direct(""), 401],
  ["white space", direct("   "), 401],
  ["an unknown key", direct(canary), 401],
  ["a key of 15,000 characters", direct(canary.padEnd(15_000, "x")), 401],
  ["a quoted key", direct(`"${keys.operator}"`), 401],
  ["a key with another behind a comma", direct(`${keys.operator}, ${keys.operator}`), 401],
  ["a key cut by one character", direct(keys.operator.slice(0, -1)), 401],
  ["a key in another case", direct(keys.operator.toUpperCase()), 401],
  ["the hash of a key", direct(contentDigest(keys.operator)), 401],
  ["the name of an object's member", direct("__proto__"), 401],
  ["Latin-1 letters", direct(`${canary}-\xe9\xff`), 401],
  ["Cyrillic letters", direct(Buffer.from(`${canary}-ключ`).toString("latin1")), 401],
  ["a NUL", direct(`${canary}\0`), 400],
  ["a key with NUL behind it", direct(`${keys.operator}\0`), 400],
  ["a line feed", direct(`${canary}\nx-api-key: ${keys.operator}`), 400],
  ["another scheme", bearer(`Basic ${keys.operator}`), 401],
  ["no scheme", bearer(keys.operator), 401],
  ["no token", bearer("Bearer"), 401],
  ["two spaces", bearer(`Bearer  ${keys.operator}`), 401],
  ["a tab", bearer(`Bearer\t${keys.operator}`), 401],
  ["two tokens", bearer(`Bearer ${keys.operator} ${keys.operator}`), 401],
];

const twoKeys: readonly [string, HeaderList, number][] = [
  ["two Authorization", [...bearer(`Bearer ${keys.operator}`), ...bearer(`Bearer ${keys.admin}`)], 400],
  ["one Authorization twice", [...bearer(`Bearer ${keys.operator}`), ...bearer(`Bearer ${keys.operator}`)], 400],
  ["two X-API-Key", [...direct(keys.operator), ...direct(keys.admin)], 400],
  ["two X-API-Key of another case", [...direct(keys.operator), ["X-API-KEY", keys.admin]], 400],
  ["both, with different keys", [...direct(keys.operator), ...bearer(`Bearer ${keys.admin}`)], 400],
  ["both, the second unknown", [...direct(keys.operator), ...bearer(`Bearer ${canary}`)], 400],
  ["both, the second empty", [...direct(keys.operator), ...bearer("Bearer ")], 401],
];

const label = "x-gateway-session-id";
const badLabels: readonly [string, HeaderList][] = [
  [
    "two labels",
    [
      [label, "a"],
      [label, "b"],
    ],
  ],
  [
    "one label twice",
    [
      [label, "a"],
      [label, "a"],
    ],
  ],
  [
    "two labels of another case",
    [
      [label, "a"],
      ["X-GATEWAY-SESSION-ID", "b"],
    ],
  ],
  ["a joined pair", [[label, "a, b"]]],
  ["an empty label", [[label, ""]]],
  ["a control character", [[label, "a\x01"]]],
  ["a tab inside", [[label, "a\tb"]]],
  ["DEL", [[label, "a\x7f"]]],
  ["Latin-1 letters", [[label, "\xe9"]]],
  ["129 characters", [[label, "x".repeat(129)]]],
];

describe("a caller", () => {
  /** Where each message needs a key, as it does unless told. */
  let world: World;
  before(async () => {
    world = await openWorld("mcp_gateway: { require_auth: true }");
  });
  after(() => world.stop());

  describe("who is calling", () => {
    for (const [what, headers, status] of [...badKeys, ...twoKeys]) {
      it(`refuses ${what} with ${status}, and nothing is run`, async () => {
        const effects = await effectsOf(world, async () => {
          const response = await post(world, echoCall(), { headers: [...headers, ...json] });
          expect(response.status).to.equal(status);
          expect(response.headers.get("www-authenticate")).to.equal(status === 401 ? "Bearer" : undefined);
        });
        expect(effects).to.deep.equal(nothing);
      });
    }

    it("lets none of them in on any port, with no identity to fall back on [S1]", async () => {
      for (const [what, headers, status] of badKeys) {
        const { adminUrl } = world.gateway;
        const response = await send(adminUrl, { target: "/admin/v1/evidence/sessions", headers });
        expect(response.status, what).to.equal(status);
      }
    });

    it("refuses two keys on the admin port too [S2]", async () => {
      for (const [what, headers, status] of twoKeys) {
        const response = await send(world.gateway.adminUrl, { target: "/admin/v1/evidence/sessions", headers });
        expect(response.status, what).to.equal(status);
      }
    });

    it("writes no key into its log, right or wrong [S1]", async () => {
      const log = world.gateway.stderr() + world.gateway.stdout();
      expect(log).to.contain("KEY_UNKNOWN");
      for (const secret of [canary, ...Object.values(keys)]) expect(log).not.to.contain(secret);
    });

    it("accepts a key in either header, and the same key in both [R2.1-5, R5-1]", async () => {
      const ways = [direct(keys.operator), bearer(`Bearer ${keys.operator}`), bearer(`bearer ${keys.operator}`)];
      for (const headers of [...ways, [...direct(keys.operator), ...bearer(`Bearer ${keys.operator}`)]]) {
        const response = await post(world, echoCall(), { headers: [...headers, ...json] });
        expect(response.status).to.equal(200);
      }
    });
  });

  describe("mcp_gateway.require_auth", () => {
    const handshake = ["initialize", "ping", "server/discover", "notifications/initialized"];
    const openTo = "mcp_gateway: { require_auth: false, anonymous_tenant: acme }";
    for (const refuses of [true, false]) {
      it(`${refuses ? "true refuses" : "false takes"} each message that comes without a key [R2.8-1, R5-2]`, async () => {
        const asked = refuses ? world : await openWorld(openTo);
        try {
          const statuses = new Map<string, number>();
          const effects = await effectsOf(asked, async () => {
            for (const method of [...Object.keys(mcpMethods), ...handshake]) {
              const params = { name: "echo", uri: "a://b", ref: {}, argument: {}, level: "info" };
              const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
              statuses.set(method, (await post(asked, body, { headers: json })).status);
            }
            for (const method of ["GET", "DELETE"]) {
              statuses.set(method, (await send(asked.gateway.url, { method, target: "/mcp" })).status);
            }
          });
          const unauthorized = [...statuses].filter(([, status]) => status === 401).map(([method]) => method);
          expect(unauthorized).to.deep.equal(refuses ? [...statuses.keys()] : []);
          expect(effects.calls).to.equal(refuses ? 0 : 1);
          if (refuses) expect(effects).to.deep.equal(nothing);
        } finally {
          if (!refuses) await asked.stop();
        }
      });
    }
  });

  describe("the label of a session", () => {
    it("refuses one that is twice there or unfit, and no scope comes of it [S3]", async () => {
      const reader = new EvidenceReader(world.gateway.adminUrl, keys.operator);
      const before = await reader.sessions();
      const effects = await effectsOf(world, async () => {
        for (const [what, headers] of badLabels) {
          const response = await post(world, echoCall(), { headers: [...messageHeaders(), ...headers] });
          expect(response.status, what).to.equal(400);
        }
      });
      expect(effects).to.deep.equal(nothing);
      expect(await reader.sessions()).to.deep.equal(before);
    });

    it("opens one scope for each fit one, and takes none from a trailer [S3, R2.1-11, R4.1-2]", async () => {
      const longest = "x".repeat(128);
      for (const text of ["a", "!~", longest]) {
        const response = await post(world, echoCall(), { headers: [...messageHeaders(), [label, text]] });
        expect(response.status, text).to.equal(200);
      }
      const chunk = `${echoCall().length.toString(16)}\r\n${echoCall()}\r\n0\r\n${label}: smuggled\r\n\r\n`;
      const chunked: HeaderList = [...messageHeaders(), ["transfer-encoding", "chunked"]];
      expect((await post(world, chunk, { headers: chunked })).status).to.equal(200);
      const sessions = await new EvidenceReader(world.gateway.adminUrl, keys.operator).sessions();
      expect(sessions.map((session) => session.label)).to.have.members(["a", "!~", longest, undefined]);
    });
  });
});
