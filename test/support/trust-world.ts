import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { bundleToJSON, toDSSEBundle } from "@sigstore/bundle";
import { dsse } from "@sigstore/core";
import type { JsonObject } from "../../core/action/json.ts";
import { publicKeyOf } from "../../core/action/signing-key.ts";
import { recordRange } from "../../core/evidence/record/key-space.ts";
import type { EventRecord, EvidenceRecord } from "../../core/evidence/record/record.ts";
import { openStore } from "../../core/store/open.ts";
import { readExtensionFolder } from "../../core/trust/folder.ts";
import { payloadType, type Statement, statementBytes } from "../../core/trust/statement.ts";
import { siteFiles } from "./site.ts";

/** A key pair of a signer. */
export interface Signer {
  readonly id: string;
  /** As `trust.yaml` takes it. */
  readonly spki: string;
  readonly pem: string;
  readonly key: KeyObject;
}

export function makeSigner(kind: "ed25519" | "p256" = "ed25519"): Signer {
  const pair =
    kind === "ed25519" ? generateKeyPairSync("ed25519") : generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const known = publicKeyOf(pair.publicKey);
  if (known === undefined) throw new Error("expected a key of a supported kind");
  const pem = pair.privateKey.export({ format: "pem", type: "pkcs8" }).toString();
  return { id: known.id, spki: known.spki, pem, key: pair.privateKey };
}

export interface BundleOptions {
  readonly payloadType?: string;
  /** The key the bundle says it is by. */
  readonly keyId?: string;
}

/** One line of a signature file, made with the library alone: any payload of any type, under any name. */
export function signBundle(signer: Signer, payload: Buffer, options: BundleOptions = {}): string {
  const type = options.payloadType ?? payloadType;
  const digest = signer.key.asymmetricKeyType === "ed25519" ? null : "sha256";
  const signature = sign(digest, dsse.preAuthEncoding(type, payload), signer.key);
  const keyHint = options.keyId ?? signer.id;
  const bundle = toDSSEBundle({ artifact: payload, artifactType: type, signature, keyHint });
  return `${JSON.stringify(bundleToJSON(bundle))}\n`;
}

/** A pack in a folder of its own, its signatures, and a trust policy beside it. */
export class TrustWorld {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** The pack of `siteFiles`, in `packs/open`, with sequence 3; unsigned. */
  static async make(): Promise<TrustWorld> {
    const world = new TrustWorld(await mkdtemp(join(tmpdir(), "gateway-trust-")));
    for (const [path, text] of Object.entries(siteFiles())) await world.write(path, text);
    await world.write("packs/open/README.md", "Everything but deleting.\n");
    await world.setSequence(3);
    return world;
  }

  get pack(): string {
    return join(this.folder, "packs/open");
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  async write(name: string, text: string | Uint8Array): Promise<void> {
    await mkdir(dirname(this.path(name)), { recursive: true });
    await writeFile(this.path(name), text);
  }

  /** Replaces part of a file. */
  async edit(name: string, from: string, to: string): Promise<void> {
    const text = await readFile(this.path(name), "utf8");
    if (!text.includes(from)) throw new Error(`expected \`${from}\` in ${name}`);
    await this.write(name, text.replace(from, to));
  }

  /** Flips one bit of the byte at `at`; from the end where it is negative. */
  async flip(name: string, at: number): Promise<void> {
    const bytes = await readFile(this.path(name));
    const index = at < 0 ? bytes.length + at : at;
    bytes.writeUInt8(bytes.readUInt8(index) ^ 1, index);
    await this.write(name, bytes);
  }

  async setSequence(sequence: number): Promise<void> {
    const text = await readFile(this.path("packs/open/pack.yaml"), "utf8");
    await this.write("packs/open/pack.yaml", `${text.replace(/^sequence: .*\n/m, "")}sequence: ${sequence}\n`);
  }

  /** What a signer of the pack as it lies there would sign, some of it otherwise. */
  async statement(change: Partial<Statement> = {}): Promise<Buffer> {
    const { fileDigests } = await readExtensionFolder(this.pack, "pack");
    const sequence = /^sequence: (\d+)$/m.exec(await readFile(this.path("packs/open/pack.yaml"), "utf8"))?.[1];
    return statementBytes({
      kind: "pack",
      name: "open",
      version: "1.0.0",
      sequence: Number(sequence),
      issuedAt: "2026-01-01T00:00:00.000Z",
      expiresAt: null,
      subjects: fileDigests,
      ...change,
    });
  }

  /** Signs the pack as it lies there by all of these, in place of whoever signed it. */
  async sign(signers: readonly Signer[], change: Partial<Statement> = {}): Promise<void> {
    const payload = await this.statement(change);
    await this.write("packs/open/pack.sigstore.json", signers.map((signer) => signBundle(signer, payload)).join(""));
  }

  remove(): Promise<void> {
    return rm(this.folder, { recursive: true });
  }
}

/** One entry of a list of signers in `trust.yaml`; `more` is further members. */
export function trustEntry(name: string, { spki }: Signer, more = ""): string {
  return `{ name: ${name}, key: "${spki}"${more === "" ? "" : `, ${more}`} }`;
}

/** The events of one kind that a stopped gateway recorded of `acme`, in order. */
export async function recordedEvents(dataFolder: string, kind: "extension"): Promise<readonly JsonObject[]> {
  const store = await openStore({ dir: dataFolder, enabled: true });
  try {
    const texts = await store.values(recordRange("acme")).all();
    const records = texts.map((text) => JSON.parse(text) as EvidenceRecord);
    return records.filter((record): record is EventRecord => record.kind === kind).map(({ detail }) => detail);
  } finally {
    await store.close();
  }
}
