import { contentDigest } from "../action/canonical-json.ts";
import { GatewayError } from "../action/error.ts";
import { isJsonObject } from "../action/json.ts";
import { parsedUrl } from "../action/parsed-url.ts";
import type { EgressGuard } from "../egress/egress-guard.ts";
import { type AuthChallenge, readChallenge } from "./challenge.ts";
import { basicAuthorization, type RegistryCredential } from "./credential.ts";
import { artifactError, quoteForeign } from "./file-name.ts";
import { HttpExchange, type HttpQuestion, type HttpReply } from "./http-exchange.ts";
import { type FileLayer, manifestType, maxManifest } from "./manifest.ts";
import { followRedirects, isSecure } from "./redirect.ts";
import type { ArtifactReference } from "./reference.ts";
import { maxAnswer, parseAnswer, registryFaults, statusFault } from "./registry-fault.ts";

const tokenShape = /^[\x21-\x7e]{1,32768}$/;

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
    if (method === "GET")
      reply = await followRedirects(this.#http, url, reply, { headers, maxBytes }, (text) => this.#refusal(text));
    if (expected.includes(reply.status)) return reply;
    throw this.#statusFault(reply);
  }

  async #authenticate(challenge: AuthChallenge | undefined): Promise<string> {
    const basic = this.#credential === undefined ? undefined : basicAuthorization(this.#credential);
    if (challenge?.scheme === "bearer") return `Bearer ${await this.#fetchToken(challenge, basic)}`;
    if (challenge?.scheme === "basic" && basic !== undefined && basic !== this.#authorization) return basic;
    throw this.#statusFault({ status: 401, body: Buffer.alloc(0) });
  }

  async #fetchToken(
    { realm, service, scope }: Extract<AuthChallenge, { scheme: "bearer" }>,
    basic: string | undefined,
  ): Promise<string> {
    const url = parsedUrl(realm);
    if (url === undefined || !isSecure(url, this.#reference.origin))
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

  #statusFault(reply: Pick<HttpReply, "status" | "body">): GatewayError {
    const hasCredential = this.#credential !== undefined;
    return statusFault(reply, this.#reference.origin, hasCredential, (text) => this.#refusal(text));
  }

  #refusal(text: string): GatewayError {
    return new GatewayError("REGISTRY_REFUSED", `\`${this.#reference.text}\`: ${text}`);
  }
}

function requireDigest(bytes: Buffer, digest: string, what: string): Buffer {
  const found = contentDigest(bytes);
  if (found === digest) return bytes;
  throw artifactError(`${what}: expected the digest ${digest}, got ${found}`);
}
