import { readFile, realpath, stat, writeFile } from "node:fs/promises";
import { join, resolve, sep } from "node:path";
import type { Command } from "commander";
import { GatewayError } from "../action/error.ts";
import { describeFileError } from "../config/document.ts";
import { formats } from "../config/format.ts";
import { requireOptional } from "../config/optional-package.ts";
import { compilePack } from "../policy/pack.ts";
import { readPlugin, readPluginTests } from "../policy/plugin-source.ts";
import { type ExtensionFolder, readExtensionFolder, signatureFiles } from "../trust/folder.ts";
import { trustError } from "../trust/refusal.ts";
import { type SignatureBundle, toSignatureLine } from "../trust/signature-file.ts";
import { type ExtensionSigner, generateSigner, readSigner } from "../trust/signing.ts";
import { type Statement, statementBytes } from "../trust/statement.ts";
import {
  acceptUnverified,
  type ExtensionKind,
  isRefused,
  type VerifiedExtension,
} from "../trust/verified-extension.ts";
import { readSigned } from "../trust/verifier.ts";
import type { KeylessServices } from "./keyless-sign.ts";
import { print } from "./print.ts";
import { replaceFile } from "./replace-file.ts";

interface SignOptions {
  readonly key?: string;
  readonly bundle?: string;
  readonly statement?: true;
  readonly keyless?: true;
  readonly fulcio?: string;
  readonly rekor?: string;
  readonly tsa?: string;
  readonly expires?: string;
  readonly json?: true;
}

/** `gateway pack sign`, `gateway plugin sign` and `gateway engine sign`. */
export function signExtension(
  kind: ExtensionKind,
): (folder: string, options: SignOptions, command: Command) => Promise<void> {
  return (folder, options, command) => signFolder(kind, folder, options, command);
}

async function signFolder(kind: ExtensionKind, path: string, options: SignOptions, command: Command): Promise<void> {
  const { key, bundle, statement, keyless } = options;
  if (key === undefined && bundle === undefined && statement === undefined && keyless === undefined) {
    return command.error("error: expected `--key <file>`, `--keyless`, `--bundle <file>` or `--statement`");
  }
  const services = keyless ? await readServices(options, command) : undefined;
  const signer = key === undefined ? undefined : await readKeyOutside(path, key);
  const folder = await readExtensionFolder(path, kind);
  const content = await readContent(kind, path, acceptUnverified(folder, null));
  const present = sameStatement(folder, content, options.expires);
  const statementOf = (issuedAt: string): Buffer =>
    present?.payload ?? statementBytes(newStatement(folder, content, issuedAt, options.expires));
  const payload = statementOf(new Date().toISOString());
  if (statement) return void process.stdout.write(payload);
  const line =
    services === undefined
      ? (signer?.sign(payload) ?? (await readForeignBundle(bundle ?? "", folder, statementOf)))
      : await (await import("./keyless-sign.ts")).signKeyless(payload, services);
  const added = readSigned({ ...folder, signature: Buffer.from(line) });
  if (isRefused(added)) throw trustError(path, added);
  const [signed] = added.bundles;
  const others = present?.lines.filter(({ keyId }) => keyId !== signed.keyId).map(({ text }) => text) ?? [];
  await replaceFile(join(path, signatureFiles[kind]), [...others, line].join(""));
  printSigned(content, folder.digest, signed, others.length + 1, options.json);
}

/**
 * Returns the services of `--keyless`. Without `--fulcio` they are Sigstore's public ones, whose log anybody can read; with it
 * only those that are named, so that a private build is not published by default. Ends with a usage error otherwise.
 */
async function readServices({ fulcio, rekor, tsa }: SignOptions, command: Command): Promise<KeylessServices> {
  requireOptional("keyless", "`--keyless`", "SIGNING_FAILED");
  const { test, expected } = formats.webhook_url;
  for (const [name, url] of Object.entries({ fulcio, rekor, tsa })) {
    if (url !== undefined && !test(url)) command.error(`error: option '--${name} <url>': expected ${expected}`);
  }
  if (fulcio === undefined) {
    const { DEFAULT_FULCIO_URL, DEFAULT_REKOR_URL } = await import("sigstore");
    return { fulcio: DEFAULT_FULCIO_URL, rekor: rekor ?? DEFAULT_REKOR_URL, tsa };
  }
  if (rekor === undefined && tsa === undefined)
    command.error(
      "error: expected `--rekor <url>` or `--tsa <url>` with `--fulcio <url>`: one proves the time of signing",
    );
  return { fulcio, rekor, tsa };
}

function printSigned(
  { name, version, sequence }: SignedContent,
  digest: string,
  { keyId, certificate }: SignatureBundle,
  signatures: number,
  json: true | undefined,
): void {
  const { issuer, subject } = certificate?.identity ?? {};
  const summary = { ok: true, name, version, sequence, digest, key_id: keyId, issuer, subject, signatures };
  const by = subject === undefined ? keyId : `${subject} of ${issuer}`;
  if (json) print(JSON.stringify(summary));
  else print(`${name} ${version}: signed by ${by}, ${signatures} in all, ${digest}`);
}

/** Reads a key. Throws KEY_UNUSABLE for one in the signed folder, with which it would be distributed. */
async function readKeyOutside(folder: string, key: string): Promise<ExtensionSigner> {
  const [file, place] = await Promise.all([key, folder].map((path) => realpath(path).catch(() => resolve(path))));
  if (file === undefined || place === undefined || !file.startsWith(`${place}${sep}`)) return readKey(key);
  throw new GatewayError("KEY_UNUSABLE", `\`${key}\` is in the signed folder; keep it elsewhere`);
}

async function readKey(file: string): Promise<ExtensionSigner> {
  let pem: string;
  try {
    pem = await readFile(file, "utf8");
  } catch (cause) {
    throw new GatewayError("KEY_UNUSABLE", `\`${file}\` cannot be read: ${describeFileError(cause)}`, { cause });
  }
  return readSigner(pem);
}

/** Existing signatures of one statement. */
interface Present {
  readonly payload: Buffer;
  readonly lines: readonly { readonly keyId: string; readonly text: string }[];
}

/** Returns the existing signatures where their statement equals the new one: then every signer signs the same statement. */
function sameStatement(
  folder: ExtensionFolder,
  content: SignedContent,
  expires: string | undefined,
): Present | undefined {
  const signed = readSigned(folder);
  if (isRefused(signed)) return undefined;
  const { statement, bundles } = signed;
  const same = (["name", "version", "sequence"] as const).every((key) => statement[key] === content[key]);
  if (!same || (expires !== undefined && expires !== statement.expiresAt)) return undefined;
  const texts = (folder.signature?.toString("utf8") ?? "").split("\n").filter((line) => line !== "");
  const lines = bundles.map(({ keyId }, index) => ({ keyId, text: `${texts[index]}\n` }));
  return { payload: bundles[0].payload, lines };
}

/** Returns the statement to sign; `issuedAt` is used where the manifest has no time. */
export function newStatement(
  folder: ExtensionFolder,
  content: SignedContent,
  issuedAt: string,
  expires: string | undefined,
): Statement {
  return {
    kind: folder.kind,
    name: content.name,
    version: content.version,
    sequence: content.sequence,
    subjects: folder.fileDigests,
    issuedAt: content.issuedAt ?? issuedAt,
    expiresAt: expires ?? content.expiresAt ?? null,
  };
}

/** `gateway pack keys new` and `gateway plugin keys new`: one key signs both kinds. */
export async function createSigningKey(file: string, { json }: { readonly json?: true }): Promise<void> {
  const { pem, public: known } = generateSigner();
  try {
    await writeFile(file, pem, { mode: 0o600, flag: "wx" });
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? String(cause);
    const reason = code === "EEXIST" ? "the file exists already" : code;
    throw new GatewayError("KEY_UNUSABLE", `\`${file}\` cannot be written: ${reason}`, { cause });
  }
  if (json) print(JSON.stringify({ key: known.spki, key_id: known.id }));
  else print(`key: ${known.spki}\nkey_id: ${known.id}`);
}

const maxBytes = 1_048_576;

/**
 * Returns a line for a folder's signature file from a Sigstore bundle of another tool. `statementOf` returns the expected
 * statement for a time of issue. Throws EXTENSION_INVALID and EXTENSION_REFUSED.
 */
async function readForeignBundle(
  file: string,
  folder: ExtensionFolder,
  statementOf: (issuedAt: string) => Buffer,
): Promise<string> {
  const line = toSignatureLine(await read(file));
  if (line === undefined) throw invalid(file, "expected a Sigstore bundle, got something else");
  const signed = readSigned({ ...folder, signature: Buffer.from(line) });
  if (isRefused(signed)) throw trustError(file, signed);
  if (signed.bundles[0].payload.equals(statementOf(signed.statement.issuedAt))) return line;
  throw invalid(file, "expected a signature of what `--statement` prints, got one of another statement");
}

async function read(file: string): Promise<string> {
  try {
    const found = await stat(file);
    if (found.isFile() && found.size <= maxBytes) return await readFile(file, "utf8");
  } catch (cause) {
    throw new GatewayError("EXTENSION_INVALID", `\`${file}\` cannot be read: ${describeFileError(cause)}`, { cause });
  }
  throw invalid(file, `expected a file of at most ${maxBytes} bytes`);
}

function invalid(file: string, text: string): GatewayError {
  return new GatewayError("EXTENSION_INVALID", `\`${file}\`: ${text}`);
}

/** The members of an extension's manifest that its statement repeats. */
interface SignedContent {
  readonly name: string;
  readonly version: string;
  readonly sequence: number;
  readonly issuedAt: string | undefined;
  readonly expiresAt: string | undefined;
}

/** Reads a manifest, and compiles the rules of a pack or engine: faulty extensions are not signed. Throws as the loader does. */
export async function readContent(
  kind: ExtensionKind,
  path: string,
  extension: VerifiedExtension,
): Promise<SignedContent> {
  if (kind === "engine") {
    const { openEngineFolder } = await import("../engine/engine-load.ts");
    const { ref, sequence } = (await openEngineFolder(path, extension)).source;
    return { name: ref.name, version: ref.version, sequence, issuedAt: undefined, expiresAt: undefined };
  }
  if (kind === "plugin") {
    const { name, version, sequence, settingsSchema } = readPlugin(path, extension, {});
    await readPluginTests(path, extension, settingsSchema);
    return { name, version, sequence, issuedAt: undefined, expiresAt: undefined };
  }
  const { pack } = await compilePack({
    extension,
    path,
    mode: "enforce",
    settings: {},
    shadowRules: [],
    clock: Date.now,
  });
  const { ref, sequence, issuedAt, expiresAt } = pack;
  return { name: ref.name, version: ref.version, sequence, issuedAt, expiresAt };
}
