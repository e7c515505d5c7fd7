import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { type ExtensionFolder, readExtensionFolder, signatureFiles } from "../extension/folder.ts";
import { type ExtensionSigner, readSigner } from "../extension/signing.ts";
import { type Statement, statementBytes } from "../extension/statement.ts";
import { acceptUnverified } from "../extension/unverified.ts";
import { isRefused, readSigned } from "../extension/verifier.ts";
import { GatewayError } from "../kernel/error.ts";
import { compilePack, type LoadedPack } from "../policy/pack.ts";

interface SignOptions {
  readonly key: string;
  readonly expires?: string;
  readonly json?: true;
}

/** `gateway pack sign`. */
export function packSignCommand(): Command {
  return new Command("sign")
    .description("sign every file of a pack; beside signatures of the same files it adds one")
    .argument("<folder>", "the pack's folder")
    .requiredOption("-k, --key <file>", "private key: unencrypted PEM of an Ed25519 or ECDSA P-256 key")
    .option("--expires <time>", "when it ends, such as 2027-01-01T00:00:00Z (default: as pack.yaml says)", parseTime)
    .option("--json", "print JSON")
    .action(signPack);
}

async function signPack(path: string, options: SignOptions): Promise<void> {
  const signer = await readKey(options.key);
  const folder = await readExtensionFolder(path, "pack");
  const extension = acceptUnverified(folder, null);
  const { pack } = await compilePack({ extension, path, mode: "enforce", settings: {}, clock: Date.now });
  const present = sameStatement(folder, pack, options.expires);
  const payload = present?.payload ?? statementBytes(newStatement(folder, pack, options.expires));
  const others = present?.lines.filter(({ keyId }) => keyId !== signer.public.id).map(({ text }) => text) ?? [];
  await replaceFile(join(path, signatureFiles.pack), [...others, signer.sign(payload)].join(""));
  const { name, version, digest } = pack.ref;
  const told = { ok: true, name, version, sequence: pack.sequence, digest, key_id: signer.public.id };
  const signatures = others.length + 1;
  if (options.json) process.stdout.write(`${JSON.stringify({ ...told, signatures })}\n`);
  else process.stdout.write(`${name} ${version}: signed by ${told.key_id}, ${signatures} in all, ${digest}\n`);
}

interface Present {
  readonly payload: Buffer;
  readonly lines: readonly { readonly keyId: string; readonly text: string }[];
}

/** What is signed already, where it says just what would be signed now: then all signers vouch for one statement. */
function sameStatement(folder: ExtensionFolder, pack: LoadedPack, expires: string | undefined): Present | undefined {
  const signed = readSigned(folder);
  if (isRefused(signed)) return undefined;
  const { statement, bundles } = signed;
  const { name, version } = pack.ref;
  const same = statement.name === name && statement.version === version && statement.sequence === pack.sequence;
  if (!same || (expires !== undefined && expires !== statement.expiresAt)) return undefined;
  const texts = (folder.signature?.toString("utf8") ?? "").split("\n").filter((line) => line !== "");
  const lines = bundles.map(({ keyId }, index) => ({ keyId, text: `${texts[index]}\n` }));
  return { payload: bundles[0]?.payload ?? Buffer.alloc(0), lines };
}

function newStatement(folder: ExtensionFolder, pack: LoadedPack, expires: string | undefined): Statement {
  return {
    kind: "pack",
    name: pack.ref.name,
    version: pack.ref.version,
    sequence: pack.sequence,
    subjects: folder.fileDigests,
    issuedAt: pack.issuedAt ?? new Date().toISOString(),
    expiresAt: expires ?? pack.expiresAt ?? null,
  };
}

async function readKey(file: string): Promise<ExtensionSigner> {
  let pem: string;
  try {
    pem = await readFile(file, "utf8");
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code ?? String(cause);
    throw new GatewayError("KEY_UNUSABLE", `\`${file}\` cannot be read: ${reason}`, { cause });
  }
  return readSigner(pem);
}

/** In one step: a gateway that watches the folder reads the old signatures or the new. */
async function replaceFile(path: string, text: string): Promise<void> {
  const next = `${path}.next`;
  try {
    await writeFile(next, text, { flag: "wx" });
    await rename(next, path);
  } catch (cause) {
    await rm(next, { force: true });
    const reason = (cause as NodeJS.ErrnoException).code ?? String(cause);
    throw new GatewayError("EXTENSION_INVALID", `\`${path}\` cannot be written: ${reason}`, { cause });
  }
}

function parseTime(value: string): string {
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(value) ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(time)) throw new InvalidArgumentError("expected a time like `2027-01-01T00:00:00Z`");
  return new Date(time).toISOString();
}
