import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { tokenPrincipalId } from "../../core/action/principal.ts";
import { OauthWorld } from "../e2e/oauth/world.ts";
import {
  type AuthorizationServer,
  authorizeInBrowser,
  startAuthorizationServer,
} from "../support/authorization-server.ts";
import { freePort } from "../support/free-port.ts";
import { connectClient } from "../support/mcp-client.ts";
import { homeEnv, labFile } from "./client-program.ts";
import { Library } from "./library.ts";

const user = "person@login.example";
const redirectUrl = "http://127.0.0.1:1/callback";

/** Clients that know the gateway's address alone. Each has the tool `echo` called with `args`, and resolves with its text. */
const clients: Readonly<Record<string, (url: string, home: string, args: { mark: string }) => Promise<string>>> = {
  "mcp-remote": async (url, home, args) => {
    const browser = join(home, "browser");
    await writeFile(browser, browserProgram, { mode: 0o755 });
    const client = await connectClient("v1", {
      command: process.execPath,
      args: [labFile("node_modules/mcp-remote/dist/proxy.js"), `${url}/mcp`],
      env: { ...homeEnv(home), BROWSER: browser },
    });
    try {
      const { content } = await client.callTool("echo", args);
      return content.map(({ text = "" }) => text).join("");
    } finally {
      await client.close();
    }
  },

  "AI SDK": async (url, _, args) => {
    const library = new Library("oauth-ai-sdk", { GATEWAY_URL: url, REDIRECT_URL: redirectUrl });
    try {
      const { refusal, page } = await library.ask<{ refusal: string; page: string }>({});
      expect(refusal).to.equal("UnauthorizedError");
      const callback = await authorizeInBrowser(new URL(page), redirectUrl);
      return JSON.stringify(await library.ask({ callback: callback.toString(), args }));
    } finally {
      await library.stop();
    }
  },
};

/** Opens a page as a browser does, cookies and redirects included, to the end, which is at the client. */
const browserProgram = `#!/bin/sh
exec curl --silent --fail --location --cookie "" --output "$HOME/page.html" "$1"
`;

describe("clients that nobody here wrote, and OAuth with a real authorization server", () => {
  let server: AuthorizationServer;
  let world: OauthWorld;
  let home: string;
  beforeEach(async () => {
    const port = await freePort();
    const resource = `http://127.0.0.1:${port}/mcp`;
    ({ server } = await startAuthorizationServer(async (issuer) => {
      world = await OauthWorld.start({ oauth: "tenant: acme\nscopes: [tools]", issuer, port, audience: resource });
      return { resource, user, claims: {} };
    }));
    home = await mkdtemp(join(tmpdir(), "client-lab-"));
  });
  afterEach(async () => {
    await world.stop();
    await server.close();
    await rm(home, { recursive: true, force: true });
  });

  for (const [name, callEcho] of Object.entries(clients)) {
    it(`${name} gets from a 401 to a call`, async () => {
      expect((await world.call([])).status).to.equal(401);
      const refusals = refusalsOf(world);
      expect(await world.upstream.calls()).to.deep.equal([]);

      expect(await callEcho(world.gateway.url, home, { mark: "with-a-token" })).to.include("with-a-token");

      expect(refusalsOf(world)).to.be.above(refusals);
      const [call, ...more] = await world.upstream.calls();
      expect(more).to.deep.equal([]);
      expect(call?.body).to.include("with-a-token");
      expect(call?.headers.map((text) => text.toLowerCase())).not.to.include("authorization");
      expect(server.paths).to.include.members(["/reg", "/auth", "/token", "/jwks"]);
      const principals = (await world.evidence("operator").sessions()).map(({ principal }) => principal);
      expect([...new Set(principals)]).to.deep.equal([tokenPrincipalId("acme", server.issuer, user)]);
    });
  }
});

/** How often the gateway has refused a request without a token. */
function refusalsOf({ gateway }: OauthWorld): number {
  return (gateway.stdout() + gateway.stderr()).split("KEY_MISSING").length - 1;
}
