import { createPrivateKey, type KeyObject } from "node:crypto";
import { readFile } from "node:fs/promises";
import { GatewayError } from "../action/error.ts";
import { asciiJson, type Json } from "../action/json.ts";
import { describeFileError, plainValue, readDocument } from "../config/document.ts";
import { FaultList } from "../config/fault.ts";
import type { ManifestView } from "../manifest/operation.ts";
import { manifestOperations } from "../manifest/operation.ts";
import { signReference } from "../manifest/reference.ts";
import { readTaskManifest } from "../manifest/task-manifest.ts";
import { type AdminOptions, callAdmin } from "./admin-client.ts";
import { print } from "./print.ts";

interface DeclareOptions extends AdminOptions {
  readonly file: string;
  readonly json?: true;
}

/** `gateway manifests declare`. Checks the file before it is sent. */
export async function declareManifest(options: DeclareOptions): Promise<void> {
  const manifest = readTaskManifest(await readYamlAsJson(options.file));
  const declared = await callAdmin<ManifestView>(options, manifestOperations.declareManifest, { ...manifest });
  print(options.json ? asciiJson(declared) : `${declared.task}: in force, ${declared.digest}`);
}

async function readYamlAsJson(file: string): Promise<Json> {
  const faults = new FaultList(file);
  const document = await readDocument(file, faults);
  faults.throwIfAny("INVALID_PARAMS");
  return document === undefined ? null : plainValue(document);
}

interface SignOptions extends AdminOptions {
  readonly key: string;
  readonly expiresIn: number;
  readonly json?: true;
}

/** `gateway manifests sign-reference`. */
export async function signTaskReference(task: string, options: SignOptions): Promise<void> {
  const key = await readTaskKey(options.key);
  const manifest = await callAdmin<ManifestView>(options, manifestOperations.getManifest, { task });
  const { tenant, principal, digest } = manifest;
  const claims = { tenant, principal, task, manifest: digest, exp: Math.floor(Date.now() / 1_000) + options.expiresIn };
  const reference = signReference(claims, key);
  print(options.json ? JSON.stringify({ reference, claims }) : reference);
}

/** Reads an Ed25519 private key. Throws KEY_UNUSABLE, which quotes nothing of the file. */
async function readTaskKey(file: string): Promise<KeyObject> {
  const pem = await readFile(file, "utf8").catch((cause: unknown) => {
    throw new GatewayError("KEY_UNUSABLE", `\`${file}\` cannot be read: ${describeFileError(cause)}`, { cause });
  });
  try {
    const key = createPrivateKey(pem);
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch {
    // The error of the parser may quote the file.
  }
  throw new GatewayError("KEY_UNUSABLE", "expected the unencrypted PEM of an Ed25519 private key");
}
