import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { contentDigest } from "../../../core/action/canonical-json.ts";
import { readChallenge } from "../../../core/distribution/challenge.ts";
import { maxManifest } from "../../../core/distribution/manifest.ts";
import { parseReference } from "../../../core/distribution/reference.ts";
import { RegistryClient } from "../../../core/distribution/registry-client.ts";
import { EgressGuard } from "../../../core/egress/egress-guard.ts";
import { rejection } from "../../support/ledger-world.ts";

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** A server of any answers, and the requests that it got as `<path> <authorization>`. */
class AnyServer {
  readonly requests: string[] = [];
  respond: Handler = (_request, response) => void response.writeHead(404).end();
  readonly #server: Server = createServer((request, response) => {
    this.requests.push(`${request.url} ${request.headers.authorization ?? "-"}`);
    this.respond(request, response);
  });

  static async start(): Promise<AnyServer> {
    const made = new AnyServer();
    made.#server.listen(0, "127.0.0.1");
    await once(made.#server, "listening");
    return made;
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

describe("RegistryClient", () => {
  const credential = { username: "ci", password: "canary" };
  const basic = `Basic ${Buffer.from("ci:canary").toString("base64")}`;
  const bytes = Buffer.from("content");
  const file = { name: "a.yaml", digest: contentDigest(bytes), size: bytes.length };
  let registry: AnyServer;
  let other: AnyServer;
  let client: RegistryClient;

  beforeEach(async () => {
    [registry, other] = await Promise.all([AnyServer.start(), AnyServer.start()]);
    const reference = parseReference(`oci://${registry.host}/a:1`);
    if (reference === undefined) throw new Error("expected a reference");
    client = new RegistryClient(
      reference,
      new EgressGuard({ privateHosts: [], setting: "--private-host" }),
      credential,
    );
  });

  afterEach(async () => {
    await client.close();
    registry.stop();
    other.stop();
  });

  const redirectTo =
    (location: string): Handler =>
    (request, response) => {
      if (request.headers.authorization === undefined)
        response.writeHead(401, { "www-authenticate": 'Basic realm="x"' }).end();
      else response.writeHead(307, { location }).end();
    };

  it("follows a redirect to content without credentials", async () => {
    registry.respond = redirectTo(`http://${other.host}/content?signed=1`);
    other.respond = (_request, response) => void response.end(bytes);
    expect(await client.fetchFile(file)).to.deep.equal(bytes);
    expect(registry.requests.at(-1)).to.equal(`/v2/a/blobs/${file.digest} ${basic}`);
    expect(other.requests).to.deep.equal(["/content?signed=1 -"]);
  });

  it("refuses a redirect to plain http elsewhere, to a private address, and one too many", async () => {
    for (const [location, code, text] of [
      ["http://public.example/x", "REGISTRY_REFUSED", 'expected a redirect to https, got "http://public.example"'],
      ["https://user:pw@public.example/x", "REGISTRY_REFUSED", "expected a redirect to https"],
      ["file:///etc/passwd", "REGISTRY_REFUSED", "expected a redirect to https"],
      [
        "https://10.0.0.1/x",
        "REGISTRY_UNREACHABLE",
        "its address 10.0.0.1 is private; if that is meant, list the host in `--private-host`",
      ],
      ["https://169.254.169.254/x", "REGISTRY_UNREACHABLE", "is a metadata service"],
      [`/v2/a/blobs/${file.digest}`, "REGISTRY_REFUSED", "expected at most 3 redirects, got more"],
    ] as const) {
      registry.respond = (_request, response) => void response.writeHead(302, { location }).end();
      const error = await rejection(client.fetchFile(file));
      expect(error).to.include({ code });
      expect(error.message).to.include(text);
    }
    expect(other.requests).to.deep.equal([]);
  });

  it("asks no token of a service without https elsewhere, which would get the credential", async () => {
    const challenge = { "www-authenticate": 'Bearer realm="http://public.example/token",service="x"' };
    registry.respond = (_request, response) => void response.writeHead(401, challenge).end();
    const error = await rejection(client.fetchManifest());
    expect(error).to.include({ code: "REGISTRY_REFUSED" });
    expect(error.message).to.include('expected a token service with https, got "http://public.example"');
  });

  it("uploads to the registry alone", async () => {
    registry.respond = (request, response) => {
      if (request.method === "POST") response.writeHead(202, { location: `http://${other.host}/upload` }).end();
      else response.writeHead(404).end();
    };
    const error = await rejection(client.pushBlob(bytes));
    expect(error).to.include({ code: "REGISTRY_REFUSED" });
    expect(error.message).to.include(`expected an upload at \`http://${registry.host}\`, got "http://${other.host}"`);
    expect(other.requests).to.deep.equal([]);
  });

  it("reads no more of an endless answer than it may have", async () => {
    registry.respond = (_request, response) => {
      const write = (): void => {
        while (response.write(Buffer.alloc(65_536))) if (response.destroyed) return;
      };
      response.on("drain", write);
      write();
    };
    const error = await rejection(client.fetchManifest());
    expect(error).to.include({ code: "ARTIFACT_REFUSED" });
    expect(error.message).to.include(`expected at most ${maxManifest} bytes from the registry, got more`);
  });

  it("says that a later try may succeed where the registry is busy", async () => {
    for (const status of [429, 500, 503]) {
      registry.respond = (_request, response) => void response.writeHead(status).end("{");
      const error = await rejection(client.fetchManifest());
      expect(error).to.include({ code: "REGISTRY_UNREACHABLE" });
      expect(error.message).to.equal(`registry unreachable: \`${registry.host}\`: HTTP ${status}`);
    }
  });
});

describe("readChallenge(header)", () => {
  it("prefers a token", () => {
    const bearer = 'Bearer realm="https://t.example/token",service="r",scope="repository:a:pull"';
    const expected = { scheme: "bearer", realm: "https://t.example/token", service: "r", scope: "repository:a:pull" };
    expect(readChallenge(['Basic realm="x"', bearer])).to.deep.equal(expected);
    expect(readChallenge('Basic realm="x"')).to.deep.equal({ scheme: "basic" });
    for (const other of [undefined, "", "Negotiate", 'Bearer service="r"', `Basic ${"x".repeat(9000)}`])
      expect(readChallenge(other)).to.equal(undefined);
  });
});
