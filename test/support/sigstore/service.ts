import { createPublicKey } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Signing, type SigstoreWorld, signedAt, subject } from "./world.ts";

/** An OIDC token of `subject`, unsigned: the authority of `SigstoreService` issues its certificate to whoever asks. */
export const identityToken: string = `e30.${Buffer.from(JSON.stringify({ sub: subject })).toString("base64url")}.canary`;

interface CertificateRequest {
  readonly publicKeyRequest: { readonly publicKey: { readonly content: string } };
}

interface EntryRequest {
  readonly spec: { readonly proposedContent: { readonly envelope: string; readonly verifiers: readonly string[] } };
}

/** The authorities and the log of a world, over HTTP as Sigstore's clients speak to them; whoever asks is its signer. */
export class SigstoreService {
  /** With which a build may ask `/oidc` for its token. */
  readonly buildToken = "canary-build";
  /** The path of a request that is answered with `refusal`. */
  refused: string | undefined;
  refusal: 400 | 404 = 400;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  /** `how`: the certificate of whoever asks. */
  static async start(world: SigstoreWorld, how: Signing = {}): Promise<SigstoreService> {
    const server = createServer();
    const service = new SigstoreService(server);
    server.on("request", async (request, response) => {
      if (request.url === "/oidc?audience=sigstore") {
        const isBuild = request.headers.authorization === `Bearer ${service.buildToken}`;
        return void response
          .writeHead(isBuild ? 200 : 401)
          .end(JSON.stringify(isBuild ? { value: identityToken } : {}));
      }
      const body = JSON.parse(await textOf(request));
      response.statusCode = 201;
      if (request.url === service.refused) response.writeHead(service.refusal).end('{"message":"no"}');
      else if (request.url === "/api/v2/signingCert") response.end(JSON.stringify(certify(world, body, how)));
      else if (request.url === "/api/v1/timestamp") {
        response.end(world.timeAuthority.stampDigest(Buffer.from(body.artifactHash, "base64"), signedAt));
      } else if (request.url === "/api/v1/log/entries") response.end(JSON.stringify(enter(world, body)));
      else response.writeHead(404).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return service;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

function certify(world: SigstoreWorld, { publicKeyRequest }: CertificateRequest, how: Signing): object {
  const certificate = world.certify(createPublicKey(publicKeyRequest.publicKey.content), how);
  return { signedCertificateEmbeddedSct: { chain: { certificates: [pemOf(certificate)] } } };
}

function enter({ log }: SigstoreWorld, { spec: { proposedContent } }: EntryRequest): object {
  const { payload, signatures } = JSON.parse(proposedContent.envelope);
  const [verifier = ""] = proposedContent.verifiers;
  const entry = log.enter(
    {
      payload: Buffer.from(payload, "base64"),
      signature: Buffer.from(signatures[0].sig, "base64"),
      certificate: Buffer.from(verifier, "base64"),
    },
    signedAt,
  );
  const { inclusionProof: proof, inclusionPromise } = entry;
  return {
    [log.id.toString("hex")]: {
      body: entry.canonicalizedBody.toString("base64"),
      integratedTime: Number(entry.integratedTime),
      logID: log.id.toString("hex"),
      logIndex: Number(entry.logIndex),
      verification: {
        signedEntryTimestamp: inclusionPromise?.signedEntryTimestamp.toString("base64"),
        inclusionProof: {
          checkpoint: proof?.checkpoint?.envelope,
          hashes: proof?.hashes.map((hash) => hash.toString("hex")),
          logIndex: Number(proof?.logIndex),
          rootHash: proof?.rootHash.toString("hex"),
          treeSize: Number(proof?.treeSize),
        },
      },
    },
  };
}

function pemOf(certificate: Buffer): string {
  const lines = certificate.toString("base64").replace(/.{64}/g, "$&\n");
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
