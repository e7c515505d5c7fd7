import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from "@modelcontextprotocol/client";
import type { OAuthClientProvider } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type {
  OAuthClientInformationMixed,
  OAuthClientMetadata,
  OAuthTokens,
} from "@modelcontextprotocol/sdk/shared/auth.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { expect } from "chai";
import { decodeJwt } from "jose";
import { tokenPrincipalId } from "../../../core/action/principal.ts";
import {
  type AuthorizationServer,
  authorizeInBrowser,
  startAuthorizationServer,
} from "../../support/authorization-server.ts";
import { freePort } from "../../support/free-port.ts";
import { OauthWorld } from "./world.ts";

const redirectUrl = "http://127.0.0.1:1/callback";

/** A client's memory, and the browser that it opens. */
class BrowserProvider implements OAuthClientProvider {
  readonly redirectUrl: string = redirectUrl;
  readonly clientMetadata: OAuthClientMetadata = {
    client_name: "a client that nobody registered before",
    redirect_uris: [redirectUrl],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  };
  authorizationUrl: URL | undefined;
  callback: URLSearchParams = new URLSearchParams();
  #client: OAuthClientInformationMixed | undefined;
  #tokens: OAuthTokens | undefined;
  #verifier: string = "";

  clientInformation(): OAuthClientInformationMixed | undefined {
    return this.#client;
  }

  saveClientInformation(client: OAuthClientInformationMixed): void {
    this.#client = client;
  }

  tokens(): OAuthTokens | undefined {
    return this.#tokens;
  }

  saveTokens(tokens: OAuthTokens): void {
    this.#tokens = tokens;
  }

  async redirectToAuthorization(url: URL): Promise<void> {
    this.authorizationUrl = url;
    this.callback = await authorizeInBrowser(url, redirectUrl);
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    return this.#verifier;
  }
}

/** One way to connect: everything the SDK does up to `finishAuth`, then the call. */
interface Way {
  readonly name: string;
  readonly path: "/mcp" | "/sse";
  connect(
    url: URL,
    provider: BrowserProvider,
  ): Promise<{ call(args: object): Promise<unknown>; close(): Promise<void> }>;
}

const call = (args: object): { name: string; arguments: Record<string, unknown> } => ({
  name: "echo",
  arguments: { ...args },
});

const ways: readonly Way[] = [
  {
    name: "SDK 1 over Streamable HTTP",
    path: "/mcp",
    connect: (url, provider) =>
      connectV1(provider, () => new StreamableHTTPClientTransport(url, { authProvider: provider })),
  },
  {
    name: "SDK 1 over HTTP+SSE",
    path: "/sse",
    connect: (url, provider) => connectV1(provider, () => new SSEClientTransport(url, { authProvider: provider })),
  },
  {
    name: "SDK 2 over Streamable HTTP",
    path: "/mcp",
    connect: async (url, provider) => {
      const client = new ClientV2({ name: "v2", version: "1.0.0" });
      const open = () => new TransportV2(url, { authProvider: provider as never });
      const first = open();
      await expectUnauthorized(client.connect(first));
      await first.finishAuth(provider.callback);
      await client.connect(open());
      return { call: (args) => client.callTool(call(args)), close: () => client.close() };
    },
  },
];

async function connectV1(
  provider: BrowserProvider,
  open: () => StreamableHTTPClientTransport | SSEClientTransport,
): ReturnType<Way["connect"]> {
  const first = open();
  // The SDK was not written for `exactOptionalPropertyTypes`.
  await expectUnauthorized(new Client({ name: "v1", version: "1.0.0" }).connect(first as Transport));
  await first.finishAuth(provider.callback.get("code") ?? "");
  const client = new Client({ name: "v1", version: "1.0.0" });
  await client.connect(open() as Transport);
  return { call: (args) => client.callTool(call(args)), close: () => client.close() };
}

async function expectUnauthorized(connected: Promise<void>): Promise<void> {
  const error = await connected.catch((cause: unknown) => cause);
  if ((error as Error | undefined)?.constructor.name !== "UnauthorizedError") throw error;
}

describe("OAuth with a real authorization server", () => {
  for (const way of ways) {
    describe(`from a 401 to a call, by ${way.name}`, () => {
      const claims = { org_id: "org-2", groups: ["staff", "ops"] };
      let server: AuthorizationServer;
      let world: OauthWorld;
      before(async () => {
        const port = await freePort();
        const resource = `http://127.0.0.1:${port}${way.path === "/mcp" ? "/mcp" : ""}`;
        ({ server } = await startAuthorizationServer(async (issuer) => {
          const mapping =
            "tenant_claim: org_id\ntenants: { org-1: acme, org-2: other }\nrole_claim: groups\nroles: { ops: operator }\nscopes: [tools]";
          world = await OauthWorld.start({ oauth: mapping, issuer, port, audience: resource });
          return { resource, user: "person@login.example", claims };
        }));
      });
      after(async () => {
        await world.stop();
        await server.close();
      });

      it("finds the server, registers, gets a code with PKCE and a token, and is served", async () => {
        const provider = new BrowserProvider();
        const client = await way.connect(new URL(way.path, world.gateway.url), provider);
        const before = await world.upstream.calls();
        const result = (await client.call({ mark: "with-a-token" })) as {
          isError?: boolean;
          content: [{ text: string }];
        };
        expect(result.content[0].text).to.contain("with-a-token");
        expect((await world.upstream.calls()).length).to.equal(before.length + 1);
        await client.close();

        const asked = provider.authorizationUrl?.searchParams;
        expect(asked?.get("code_challenge_method")).to.equal("S256");
        expect(asked?.get("resource")).to.match(new RegExp(`^${world.gateway.url}`));
        expect(asked?.get("scope")).to.equal("tools");
        expect(server.paths).to.include.members(["/reg", "/auth", "/token", "/jwks"]);
        await expectPrincipal(provider);
      });

      /** The call is on record in the tenant of the claim, as an action of the subject with its role, without the token. */
      async function expectPrincipal(provider: BrowserProvider): Promise<void> {
        const token = provider.tokens()?.access_token ?? "";
        const { iss = "", sub = "" } = decodeJwt(token);
        expect([iss, sub]).to.deep.equal([server.issuer, "person@login.example"]);
        const records = await world.evidence("foreign").recordsOf();
        const principals = records.flatMap((record) => ("principal" in record ? [record.principal] : []));
        expect(principals).to.deep.include({
          id: tokenPrincipalId("other", iss, sub),
          key_id: "oauth:person@login.example",
          role: "operator",
        });
        expect(await world.evidence("operator").recordsOf()).to.deep.equal([]);
        world.mustNotTurnUp(token);
      }

      it("leaves nothing of the token behind [S84]", () => world.expectNoTrace());
    });
  }
});
