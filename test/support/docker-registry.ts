import { execFileSync, spawn } from "node:child_process";
import { createHash, createPrivateKey, randomUUID, sign, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./free-port.ts";
import { killWithParent } from "./ready-line.ts";

/** The one account of registries that ask for one, and its password as bcrypt writes it. */
export const registryAccount = { username: "ci", password: "correct horse" } as const;
const passwordHash = "$2b$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2";

interface RegistryOptions {
  /** How it authenticates; anybody may do anything unless told. */
  readonly auth?: "basic" | "token";
}

/** One layer or config of a manifest made by hand. */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Debian's `docker-registry`, on loopback and in a folder of its own. */
export class DockerRegistry {
  /** `127.0.0.1:<port>` */
  readonly host: string;
  readonly #folder: string;
  readonly #process: ReturnType<typeof spawn>;
  readonly #tokens: TokenService | undefined;

  private constructor(host: string, folder: string, child: ReturnType<typeof spawn>, tokens: TokenService | undefined) {
    this.host = host;
    this.#folder = folder;
    this.#process = child;
    this.#tokens = tokens;
  }

  static async start({ auth }: RegistryOptions = {}): Promise<DockerRegistry> {
    const folder = await mkdtemp(join(tmpdir(), "gateway-registry-"));
    const host = `127.0.0.1:${await freePort()}`;
    const tokens = auth === "token" ? await TokenService.start(folder) : undefined;
    await writeFile(join(folder, "accounts"), `${registryAccount.username}:${passwordHash}\n`);
    await writeFile(join(folder, "config.yml"), configOf(host, folder, auth, tokens));
    const child = spawn("docker-registry", ["serve", join(folder, "config.yml")], { detached: true, stdio: "ignore" });
    killWithParent(child);
    const registry = new DockerRegistry(host, folder, child, tokens);
    await registry.#awaitAnswer();
    return registry;
  }

  /** The requests that the token service has answered with a token, as `scope` and whether a password was right. */
  get issuedTokens(): readonly string[] {
    return this.#tokens?.issued ?? [];
  }

  /** May be called again. */
  async stop(): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const exited = once(this.#process, "exit");
      this.#process.kill("SIGKILL");
      await exited;
    }
    this.#tokens?.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** The file in which it keeps a blob or a manifest. */
  dataFile(digest: string): string {
    const hex = digest.slice("sha256:".length);
    return join(this.#folder, "data/docker/registry/v2/blobs/sha256", hex.slice(0, 2), hex, "data");
  }

  /** Stores a blob without the gateway's help, and returns its descriptor. */
  async pushBlob(repository: string, bytes: Buffer, mediaType: string, title?: string): Promise<Descriptor> {
    const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
    const started = await fetch(`http://${this.host}/v2/${repository}/blobs/uploads/`, { method: "POST" });
    const upload = new URL(started.headers.get("location") ?? "");
    upload.searchParams.set("digest", digest);
    const headers = { "content-type": "application/octet-stream" };
    await expectStatus(await fetch(upload, { method: "PUT", headers, body: new Uint8Array(bytes) }), 201);
    const annotations = title === undefined ? {} : { annotations: { "org.opencontainers.image.title": title } };
    return { mediaType, digest, size: bytes.length, ...annotations };
  }

  async readManifest(repository: string, version: string): Promise<Readonly<Record<string, unknown>>> {
    const headers = { accept: "application/vnd.oci.image.manifest.v1+json" };
    const response = await fetch(`http://${this.host}/v2/${repository}/manifests/${version}`, { headers });
    await expectStatus(response, 200);
    return (await response.json()) as Readonly<Record<string, unknown>>;
  }

  async pushManifest(repository: string, version: string, manifest: object): Promise<void> {
    const headers = { "content-type": "application/vnd.oci.image.manifest.v1+json" };
    const url = `http://${this.host}/v2/${repository}/manifests/${version}`;
    await expectStatus(await fetch(url, { method: "PUT", headers, body: JSON.stringify(manifest) }), 201);
  }

  async #awaitAnswer(): Promise<void> {
    const isThere = (): Promise<boolean> =>
      fetch(`http://${this.host}/v2/`).then(
        () => true,
        () => false,
      );
    while (!(await isThere())) {
      if (this.#process.exitCode !== null) throw new Error(`docker-registry ended with ${this.#process.exitCode}`);
      await sleep(20);
    }
  }
}

async function expectStatus(response: Response, status: number): Promise<void> {
  if (response.status !== status)
    throw new Error(`expected ${status}, got ${response.status} ${await response.text()}`);
}

function configOf(
  addr: string,
  folder: string,
  auth: RegistryOptions["auth"],
  tokens: TokenService | undefined,
): string {
  const token = { realm: tokens?.url, service: "registry", issuer: "tests", rootcertbundle: join(folder, "token.crt") };
  const kinds = { basic: { htpasswd: { realm: "tests", path: join(folder, "accounts") } }, token: { token } };
  return JSON.stringify({
    version: "0.1",
    log: { level: "error", accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: join(folder, "data") } },
    http: { addr },
    ...(auth === undefined ? {} : { auth: kinds[auth] }),
  });
}

/** Hands out the tokens of the distribution specification, for which the registry names it. */
class TokenService {
  readonly issued: string[] = [];
  readonly #server: Server;
  readonly #keyFile: string;
  readonly #certificate: X509Certificate;

  private constructor(server: Server, folder: string) {
    this.#server = server;
    this.#keyFile = join(folder, "token.key");
    this.#certificate = new X509Certificate(readFileSync(join(folder, "token.crt")));
  }

  static async start(folder: string): Promise<TokenService> {
    const files = ["-keyout", join(folder, "token.key"), "-out", join(folder, "token.crt")];
    const words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=tests", ...files];
    execFileSync("openssl", words, { stdio: "ignore" });
    const server = createServer();
    const service = new TokenService(server, folder);
    server.on("request", (request, response) => {
      const scope = new URL(request.url ?? "/", "http://host").searchParams.get("scope") ?? "";
      const { username, password } = registryAccount;
      const basic = `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
      if (request.headers.authorization !== basic) return void response.writeHead(401).end();
      service.issued.push(scope);
      response.end(JSON.stringify({ token: service.#issue(scope) }));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return service;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/token`;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #issue(scope: string): string {
    const [type, name, actions = ""] = scope.split(":");
    const now = Math.floor(Date.now() / 1000);
    const key = createPrivateKey(readFileSync(this.#keyFile));
    const header = { typ: "JWT", alg: "RS256", x5c: [this.#certificate.raw.toString("base64")] };
    const claims = {
      iss: "tests",
      aud: "registry",
      sub: "ci",
      iat: now,
      nbf: now - 60,
      exp: now + 600,
      jti: randomUUID(),
    };
    const access = type === "" ? [] : [{ type, name, actions: actions.split(",") }];
    const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
    const signed = `${encode(header)}.${encode({ ...claims, access })}`;
    return `${signed}.${sign("sha256", Buffer.from(signed), key).toString("base64url")}`;
  }
}
