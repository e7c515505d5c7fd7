import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** What the tests use of `oidc-provider`, which comes without types. */
interface Provider {
  callback(): (request: IncomingMessage, response: ServerResponse) => void;
  interactionDetails(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<{ readonly params: { readonly client_id: string } }>;
  interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
  readonly Grant: new (owner: object) => { addOIDCScope(scope: string): void; save(): Promise<string> };
}

interface ProviderPackage {
  readonly default: new (issuer: string, configuration: object) => Provider;
}

/** The client that the gateway is. */
export const client = { id: "console", secret: `secret-${randomBytes(24).toString("hex")}` };

/** Claims of a person, by name. */
type Claims = Readonly<Record<string, unknown>>;

/** A real OpenID provider, whose people sign in by a form with their name alone. */
export class IdentityProvider {
  /** Of each person who may sign in. */
  readonly people = new Map<string, Claims>();
  /** The paths of the requests so far. */
  readonly paths: string[] = [];
  readonly #http = createServer((request, response) => this.#answer(request, response));
  #provider: Provider | undefined;
  #callback: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  #isDown = false;
  /** Once this settles, codes are exchanged. */
  release: Promise<void> = Promise.resolve();
  /** Seconds ago that people sign in, as the provider remembers it. */
  signedInAgo = 0;

  /** `redirectUri`: where the gateway takes people back. */
  static async start(redirectUri: string): Promise<IdentityProvider> {
    const started = new IdentityProvider();
    started.#http.listen(0, "127.0.0.1");
    await once(started.#http, "listening");
    // Node 20 has no `URL.parse`, which the provider calls.
    URL.parse ??= (url, base) => (URL.canParse(url, base) ? new URL(url, base) : null);
    const name: string = "oidc-provider";
    const { default: OidcProvider } = (await import(name)) as ProviderPackage;
    started.#provider = new OidcProvider(started.issuer, started.#configurationFor(redirectUri));
    started.#callback = started.#provider.callback();
    return started;
  }

  get issuer(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  /** True: it answers 500 to everything. */
  get isDown(): boolean {
    return this.#isDown;
  }

  set isDown(isDown: boolean) {
    this.#isDown = isDown;
  }

  async close(): Promise<void> {
    this.#http.closeAllConnections();
    this.#http.close();
    await once(this.#http, "close");
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    this.paths.push(request.url?.split("?")[0] ?? "");
    if (this.#isDown || this.#callback === undefined) response.writeHead(500).end();
    else if (request.url === "/token") void this.release.then(() => this.#callback?.(request, response));
    else if (request.url?.startsWith("/interaction/") !== true) this.#callback(request, response);
    else this.#interact(request, response).catch((error) => response.destroy(error));
  }

  /** Shows the form, or takes it. */
  async #interact(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const provider = this.#provider as Provider;
    if (request.method !== "POST") {
      const form = '<form method="post"><input name="login"><button>Sign in</button></form>';
      response
        .writeHead(200, { "content-type": "text/html" })
        .end(`<!doctype html><link rel="icon" href="data:,"><title>Sign in</title>${form}`);
      return;
    }
    const accountId = new URLSearchParams(await text(request)).get("login") ?? "";
    if (!this.people.has(accountId)) {
      await provider.interactionFinished(request, response, { error: "access_denied" });
      return;
    }
    const { params } = await provider.interactionDetails(request, response);
    const grant = new provider.Grant({ accountId, clientId: params.client_id });
    grant.addOIDCScope("openid profile");
    const ts = Math.floor(Date.now() / 1_000) - this.signedInAgo;
    const result = { login: { accountId, ts }, consent: { grantId: await grant.save() } };
    await provider.interactionFinished(request, response, result);
  }

  #configurationFor(redirectUri: string): object {
    return {
      clients: [
        {
          client_id: client.id,
          client_secret: client.secret,
          redirect_uris: [redirectUri],
          require_auth_time: true,
          response_types: ["code"],
          grant_types: ["authorization_code"],
        },
      ],
      claims: { openid: ["sub"], profile: ["name", "groups", "org"] },
      // As most providers do: the claims of a scope are in the ID token.
      conformIdTokenClaims: false,
      cookies: { keys: [randomBytes(32).toString("hex")] },
      findAccount: (_: unknown, accountId: string) => ({
        accountId,
        claims: () => ({ sub: accountId, ...this.people.get(accountId) }),
      }),
      interactions: { url: (_: unknown, { uid }: { readonly uid: string }) => `/interaction/${uid}` },
      ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
      features: { devInteractions: { enabled: false } },
    };
  }
}

/**
 * Does at the provider what a browser does with a person in front of it: follows redirects, keeps cookies, and sends the form. Returns
 * the address to which the provider leads back, without going there.
 */
export async function signInAt(
  provider: IdentityProvider,
  start: string,
  person: string,
  cookies: Map<string, string>,
): Promise<URL> {
  let [url, form]: [URL, URLSearchParams | null] = [new URL(start), null];
  for (let hop = 0; hop < 10; hop++) {
    if (url.origin !== provider.issuer) return url;
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const post = form === null ? {} : { method: "POST", body: form };
    const response = await fetch(url, { redirect: "manual", headers: { cookie }, ...post });
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    const location = response.headers.get("location");
    const body = await response.text();
    if (location === null && !body.includes("<form"))
      throw new Error(`expected a form, got ${response.status}: ${body}`);
    form = location === null ? new URLSearchParams({ login: person }) : null;
    if (location !== null) url = new URL(location, url);
  }
  throw new Error("expected an end of redirects");
}
