import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Key, Metadata, MetaFile, Root, Signature, Snapshot, TargetFile, Targets, Timestamp } from "@tufjs/models";

/** A key pair of a TUF role. */
interface RoleKey {
  readonly key: Key;
  readonly privateKey: KeyObject;
}

/** Makes a key of a role. */
export function makeRoleKey(): RoleKey {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const bytes = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");
  const keyID = createHash("sha256").update(bytes).digest("hex");
  return { key: new Key({ keyID, keyType: "ed25519", scheme: "ed25519", keyVal: { public: bytes } }), privateKey };
}

const roles = ["root", "timestamp", "snapshot", "targets"] as const;
type RoleName = (typeof roles)[number];
const later = "2049-01-01T00:00:00Z";

/** How metadata comes about; properly unless told. */
export interface Publication {
  /** The version of everything but the root. */
  readonly version?: number;
  readonly expires?: Partial<Readonly<Record<RoleName, string>>>;
  /** Signs in place of the role's key. */
  readonly signer?: Partial<Readonly<Record<RoleName, RoleKey>>>;
  /** The target's file, in place of the trusted root that the metadata names. */
  readonly served?: Buffer;
  readonly target?: string;
}

/** A TUF repository over HTTP, with keys of its own and a `trusted_root.json`. */
export class TufRepository {
  /** Each file by its path; a number is the status of the response, `endless` never ends. */
  readonly files = new Map<string, Buffer | number | "endless">();
  /** The paths of all requests. */
  readonly asked: string[] = [];
  keys: Record<RoleName, RoleKey> = {
    root: makeRoleKey(),
    timestamp: makeRoleKey(),
    snapshot: makeRoleKey(),
    targets: makeRoleKey(),
  };
  #rootVersion = 0;
  readonly url: string;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(): Promise<TufRepository> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const repository = new TufRepository(server);
    server.on("request", (request, response) => {
      const path = (request.url ?? "").slice(1);
      repository.asked.push(path);
      const file = repository.files.get(path);
      if (file === undefined || typeof file === "number") return void response.writeHead(file ?? 404).end();
      if (file !== "endless") return void response.end(file);
      const write = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536, 0x20)));
      };
      response.on("drain", write);
      write();
    });
    repository.publishRoot();
    return repository;
  }

  /** May be called again. */
  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** The root metadata of a version, the first unless told. */
  root(version = 1): Buffer {
    const file = this.files.get(`${version}.root.json`);
    if (!(file instanceof Buffer)) throw new Error(`expected a root ${version}`);
    return file;
  }

  /** Publishes the next root, with the keys as they are, signed by `signers` and by the root key. */
  publishRoot({ expires = later, signers = [] }: { expires?: string; signers?: readonly RoleKey[] } = {}): void {
    const signed = new Root({ version: ++this.#rootVersion, specVersion: "1.0.31", expires, consistentSnapshot: true });
    for (const role of roles) signed.addKey(this.keys[role].key, role);
    const metadata = new Metadata(signed);
    for (const key of [...signers, this.keys.root]) signWith(metadata, key);
    this.files.set(`${this.#rootVersion}.root.json`, bytesOf(metadata));
  }

  /** Publishes a trusted root. */
  publish(trustedRoot: string, { version = 1, expires = {}, signer = {}, served, target }: Publication = {}): void {
    const bytes = Buffer.from(trustedRoot);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const name = target ?? "trusted_root.json";
    const common = (role: RoleName): { version: number; specVersion: string; expires: string } => ({
      version,
      specVersion: "1.0.31",
      expires: expires[role] ?? later,
    });
    const keyOf = (role: RoleName): RoleKey => signer[role] ?? this.keys[role];
    const file = new TargetFile({ path: name, length: bytes.length, hashes: { sha256 } });
    const targets = bytesOf(
      signWith(new Metadata(new Targets({ ...common("targets"), targets: { [name]: file } })), keyOf("targets")),
    );
    const snapshot = bytesOf(
      signWith(
        new Metadata(new Snapshot({ ...common("snapshot"), meta: { "targets.json": metaOf(version, targets) } })),
        keyOf("snapshot"),
      ),
    );
    const timestamp = new Timestamp({ ...common("timestamp"), snapshotMeta: metaOf(version, snapshot) });
    this.files.set("timestamp.json", bytesOf(signWith(new Metadata(timestamp), keyOf("timestamp"))));
    this.files.set(`${version}.snapshot.json`, snapshot);
    this.files.set(`${version}.targets.json`, targets);
    this.files.set(`targets/${sha256}.${name}`, served ?? bytes);
  }
}

type Signable = Metadata<Root> | Metadata<Timestamp> | Metadata<Snapshot> | Metadata<Targets>;

function signWith<T extends Signable>(metadata: T, { key: { keyID }, privateKey }: RoleKey): T {
  metadata.sign((data) => new Signature({ keyID, sig: sign(null, data, privateKey).toString("hex") }));
  return metadata;
}

function metaOf(version: number, bytes: Buffer): MetaFile {
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  return new MetaFile({ version, length: bytes.length, hashes: { sha256 } });
}

function bytesOf(metadata: Signable): Buffer {
  return Buffer.from(JSON.stringify(metadata.toJSON()));
}
