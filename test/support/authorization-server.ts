import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What the tests use of `oidc-provider`, which comes without types. */
interface Provider {
  callback(): (request: IncomingMessage, response: ServerResponse) => void;
  interactionDetails(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<{ readonly params: { readonly client_id: string } }>;
  interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
  readonly Grant: new (
    owner: object,
  ) => {
    addOIDCScope(scope: string): void;
    addResourceScope(resource: string, scope: string): void;
    save(): Promise<string>;
  };
}

interface ProviderPackage {
  readonly default: new (issuer: string, configuration: object) => Provider;
}

interface AuthorizationServerOptions {
  /** The resource that it issues JWT access tokens for. */
  readonly resource: string;
  /** The user who is signed in, and agrees to everything. */
  readonly user: string;
  /** Further claims of each access token. */
  readonly claims: Readonly<Record<string, unknown>>;
}

/** A real authorization server, with dynamic registration of clients and a user who needs no page to agree. */
export interface AuthorizationServer {
  readonly issuer: string;
  /** The paths of the requests so far. */
  readonly paths: readonly string[];
  close(): Promise<void>;
}

const scope = "tools";

/** `describe`: the options, once the issuer is known. */
export async function startAuthorizationServer(
  describe: (issuer: string) => Promise<AuthorizationServerOptions>,
): Promise<{ readonly server: AuthorizationServer; readonly options: AuthorizationServerOptions }> {
  let serve = (_: IncomingMessage, response: ServerResponse): void => void response.writeHead(503).end();
  const paths: string[] = [];
  const http = createServer((request, response) => {
    paths.push(request.url?.split("?")[0] ?? "");
    serve(request, response);
  }).listen(0, "127.0.0.1");
  await once(http, "listening");
  const issuer = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const close = async (): Promise<void> => {
    http.closeAllConnections();
    http.close();
    await once(http, "close");
  };
  try {
    const options = await describe(issuer);
    serve = await openProvider(issuer, options);
    return { server: { issuer, paths, close }, options };
  } catch (error) {
    await close();
    throw error;
  }
}

async function openProvider(issuer: string, options: AuthorizationServerOptions): Promise<typeof serve> {
  // Node 20 has no `URL.parse`, which the server calls.
  URL.parse ??= (url, base) => (URL.canParse(url, base) ? new URL(url, base) : null);
  const name: string = "oidc-provider";
  const { default: OidcProvider } = (await import(name)) as ProviderPackage;
  const provider = new OidcProvider(issuer, configurationOf(options));
  const callback = provider.callback();
  function serve(request: IncomingMessage, response: ServerResponse): void {
    if (request.url?.startsWith("/interaction/") !== true) callback(request, response);
    else agree(provider, options, request, response).catch((error) => response.destroy(error));
  }
  return serve;
}

function configurationOf({ resource, claims }: AuthorizationServerOptions): object {
  const resourceServer = { scope, audience: resource, accessTokenFormat: "jwt", jwt: { sign: { alg: "RS256" } } };
  return {
    scopes: [scope],
    cookies: { keys: [randomBytes(32).toString("hex")] },
    interactions: { url: (_: unknown, { uid }: { readonly uid: string }) => `/interaction/${uid}` },
    findAccount: (_: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    extraTokenClaims: () => claims,
    issueRefreshToken: () => true,
    ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 600, Interaction: 600, Session: 600, RefreshToken: 600 },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: (_: unknown, asked: string) => {
          if (asked !== resource) throw new Error(`expected the resource ${resource}, got ${asked}`);
          return resourceServer;
        },
      },
    },
  };
}

/** Signs the user in, and lets the client have what it asks for. */
async function agree(
  provider: Provider,
  { user, resource }: AuthorizationServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { params } = await provider.interactionDetails(request, response);
  const grant = new provider.Grant({ accountId: user, clientId: params.client_id });
  grant.addOIDCScope(scope);
  grant.addResourceScope(resource, scope);
  const result = { login: { accountId: user }, consent: { grantId: await grant.save() } };
  await provider.interactionFinished(request, response, result);
}

/** Opens a page of the server as a browser does, cookies and redirects included, up to the client's `redirectUrl`. Returns its query. */
export async function authorizeInBrowser(start: URL, redirectUrl: string): Promise<URLSearchParams> {
  const cookies = new Map<string, string>();
  for (let url = start, hop = 0; hop < 10; hop++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, { redirect: "manual", headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    const location = response.headers.get("location");
    if (location === null) throw new Error(`expected a redirect, got ${response.status}: ${await response.text()}`);
    url = new URL(location, url);
    if (!url.href.startsWith(redirectUrl)) continue;
    if (!url.searchParams.has("code")) throw new Error(`expected a code, got ${url.search}`);
    return url.searchParams;
  }
  throw new Error("expected an end of redirects");
}
