import { contentDigest } from "../action/canonical-json.ts";
import { GatewayError } from "../action/error.ts";
import { isJsonObject, type Json } from "../action/json.ts";
import { parsedUrl } from "../action/parsed-url.ts";
import { parseStrictJson } from "../action/strict-json.ts";
import type { EgressGuard } from "../egress/egress-guard.ts";
import { type AuthChallenge, readChallenge } from "./challenge.ts";
import { basicAuthorization, type RegistryCredential } from "./credential.ts";
import { artifactError, quoteForeign } from "./file-name.ts";
import { type ExchangeFaults, HttpExchange, type HttpQuestion, type HttpReply } from "./http-exchange.ts";
import { type FileLayer, manifestType, maxManifest } from "./manifest.ts";
import { type ArtifactReference, isOnThisMachine } from "./reference.ts";

/** The errors of an exchange with a registry. */
const registryFaults: ExchangeFaults = {
  unreachable: (text, cause) => new GatewayError("REGISTRY_UNREACHABLE", text, { cause }),
  tooLarge: (_, maxBytes) => artifactError(`expected at most ${maxBytes} bytes from the registry, got more`),
};

const maxRedirects = 3;
/** Bytes of an answer that is no content: of an error, or of a token service. */
const maxAnswer = 65_536;
const answerBounds = { depth: 16, nodes: 4_096, stringLength: maxAnswer, reader: "tolerant" } as const;
const tokenShape = /^[\x21-\x7e]{1,32768}$/;
const errorShape = /^[A-Z_]{1,64}$/;

/**
 * Reads and writes one repository of an OCI registry (distribution specification 1.1). What it returns has the digest that
 * was asked for. Throws REGISTRY_UNREACHABLE where a later try may succeed, REGISTRY_REFUSED where the registry answers
 * otherwise, and ARTIFACT_REFUSED where content is not what its digest says.
 */
export class RegistryClient {
  readonly #reference: ArtifactReference;
  readonly #credential: RegistryCredential | undefined;
  readonly #http: HttpExchange;
  #authorization: string | undefined;

  constructor(reference: ArtifactReference, egress: EgressGuard, credential: RegistryCredential | undefined) {
    this.#reference = reference;
    this.#credential = credential;
    this.#http = new HttpExchange(reference.origin, egress, registryFaults);
  }

  close(): Promise<void> {
    return this.#http.close();
  }

  /** Returns the bytes of the manifest that the reference names, which may have any content. */
  async fetchManifest(): Promise<Buffer> {
    const { version, isDigest } = this.#reference;
    const { body } = await this.#ask("GET", `manifests/${version}`, [200], {
      headers: { accept: manifestType },
      maxBytes: maxManifest,
    });
    if (isDigest) requireDigest(body, version, "the manifest");
    return body;
  }

  async fetchFile({ name, digest, size }: FileLayer): Promise<Buffer> {
    const { body } = await this.#ask("GET", `blobs/${digest}`, [200], { maxBytes: size });
    if (body.length !== size) throw artifactError(`\`${name}\`: expected ${size} bytes, got ${body.length}`);
    return requireDigest(body, digest, `\`${name}\``);
  }

  /** Uploads a blob unless the registry has it. */
  async pushBlob(bytes: Buffer): Promise<void> {
    const digest = contentDigest(bytes);
    if ((await this.#ask("HEAD", `blobs/${digest}`, [200, 404])).status === 200) return;
    const started = await this.#ask("POST", "blobs/uploads/", [202], { headers: { "content-length": "0" } });
    const upload = this.#uploadUrl(started.headers.location);
    upload.searchParams.set("digest", digest);
    await this.#ask("PUT", upload, [201], { headers: { "content-type": "application/octet-stream" }, body: bytes });
  }

  /** Stores a manifest under the reference's tag, which moves there. */
  async pushManifest(bytes: Buffer): Promise<void> {
    const headers = { "content-type": manifestType };
    await this.#ask("PUT", `manifests/${this.#reference.version}`, [201], { headers, body: bytes });
  }

  /** Credentials go along, so an upload stays with the registry. */
  #uploadUrl(location: string | undefined): URL {
    const { origin } = this.#reference;
    const url = location === undefined ? undefined : parsedUrl(location, origin.href);
    if (url !== undefined && url.origin === origin.origin) return url;
    throw this.#refusal(`expected an upload at \`${origin.origin}\`, got ${quoteForeign(url?.origin)}`);
  }

  /** Sends one request; authenticates and sends it once more where the registry asks for that. */
  async #ask(
    method: HttpQuestion["method"],
    place: string | URL,
    expected: readonly number[],
    { headers = {}, body, maxBytes = maxAnswer }: Partial<Pick<HttpQuestion, "headers" | "body" | "maxBytes">> = {},
  ): Promise<HttpReply> {
    const { origin, repository } = this.#reference;
    const url = typeof place === "string" ? new URL(`/v2/${repository}/${place}`, origin) : place;
    const send = (): Promise<HttpReply> => {
      const authorized =
        this.#authorization === undefined ? headers : { ...headers, authorization: this.#authorization };
      return this.#http.send({ url, method, headers: authorized, maxBytes, ...(body === undefined ? {} : { body }) });
    };
    let reply = await send();
    if (reply.status === 401) {
      this.#authorization = await this.#authenticate(readChallenge(reply.headers["www-authenticate"]));
      reply = await send();
    }
    if (method === "GET") reply = await this.#follow(url, reply, headers, maxBytes);
    if (expected.includes(reply.status)) return reply;
    throw this.#statusFault(reply);
  }

  /** Registries hand content out elsewhere. Its digest is checked, and no credentials go along. */
  async #follow(start: URL, first: HttpReply, headers: HttpQuestion["headers"], maxBytes: number): Promise<HttpReply> {
    let [url, reply] = [start, first];
    for (let count = 0; isRedirect(reply); count++) {
      const next = parsedUrl(reply.headers.location ?? "", url.href);
      if (count === maxRedirects) throw this.#refusal(`expected at most ${maxRedirects} redirects, got more`);
      if (next === undefined || !this.#isSecure(next))
        throw this.#refusal(`expected a redirect to https, got ${quoteForeign(next?.origin)}`);
      [url, reply] = [next, await this.#http.send({ url: next, method: "GET", headers, maxBytes })];
    }
    return reply;
  }

  /** Plain http is for this machine, and only where the registry itself is on it. */
  #isSecure(url: URL): boolean {
    if (url.username !== "" || url.password !== "") return false;
    return (
      url.protocol === "https:" ||
      (url.protocol === "http:" && isOnThisMachine(url) && isOnThisMachine(this.#reference.origin))
    );
  }

  async #authenticate(challenge: AuthChallenge | undefined): Promise<string> {
    const basic = this.#credential === undefined ? undefined : basicAuthorization(this.#credential);
    if (challenge?.scheme === "bearer") return `Bearer ${await this.#fetchToken(challenge, basic)}`;
    if (challenge?.scheme === "basic" && basic !== undefined && basic !== this.#authorization) return basic;
    throw this.#accessFault(401);
  }

  async #fetchToken(
    { realm, service, scope }: Extract<AuthChallenge, { scheme: "bearer" }>,
    basic: string | undefined,
  ): Promise<string> {
    const url = parsedUrl(realm);
    if (url === undefined || !this.#isSecure(url))
      throw this.#refusal(`expected a token service with https, got ${quoteForeign(url?.origin)}`);
    if (service !== undefined) url.searchParams.set("service", service);
    if (scope !== undefined) url.searchParams.set("scope", scope);
    const headers = basic === undefined ? {} : { authorization: basic };
    const reply = await this.#http.send({ url, method: "GET", headers, maxBytes: maxAnswer });
    if (reply.status !== 200) throw this.#statusFault(reply);
    const answer = parseAnswer(reply.body);
    const token = isJsonObject(answer) ? (answer.token ?? answer.access_token) : undefined;
    if (typeof token === "string" && tokenShape.test(token)) return token;
    throw this.#refusal("expected a token from its token service, got none");
  }

  #statusFault({ status, body }: HttpReply): GatewayError {
    if (status === 401 || status === 403) return this.#accessFault(status);
    const code = errorCode(body);
    const said = `HTTP ${status}${code === undefined ? "" : ` ${code}`}`;
    if (status === 429 || status >= 500)
      return new GatewayError("REGISTRY_UNREACHABLE", `\`${this.#reference.origin.host}\`: ${said}`);
    return this.#refusal(status === 404 ? `it has no such artifact (${said})` : said);
  }

  #accessFault(status: number): GatewayError {
    const { host } = this.#reference.origin;
    const advice = `\`docker login ${host}\`, or set GATEWAY_REGISTRY_USERNAME and GATEWAY_REGISTRY_PASSWORD`;
    const [expected, got] =
      this.#credential === undefined ? ["a credential", "none"] : ["a credential that may do this", "another"];
    return this.#refusal(`expected ${expected}, got ${got} (HTTP ${status}); ${advice}`);
  }

  #refusal(text: string): GatewayError {
    return new GatewayError("REGISTRY_REFUSED", `\`${this.#reference.text}\`: ${text}`);
  }
}

function isRedirect({ status }: HttpReply): boolean {
  return status === 301 || status === 302 || status === 303 || status === 307 || status === 308;
}

function requireDigest(bytes: Buffer, digest: string, what: string): Buffer {
  const found = contentDigest(bytes);
  if (found === digest) return bytes;
  throw artifactError(`${what}: expected the digest ${digest}, got ${found}`);
}

/** The code of the first error, as the distribution specification writes it. */
function errorCode(body: Buffer): string | undefined {
  const answer = parseAnswer(body);
  const [first] = isJsonObject(answer) && Array.isArray(answer.errors) ? (answer.errors as readonly Json[]) : [];
  const code = isJsonObject(first) ? first.code : undefined;
  return typeof code === "string" && errorShape.test(code) ? code : undefined;
}

function parseAnswer(body: Buffer): Json {
  try {
    return parseStrictJson(body, answerBounds);
  } catch {
    return null;
  }
}
