import { readFile, realpath } from "node:fs/promises";
import { join, resolve, sep } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { type ExtensionFolder, readExtensionFolder, signatureFiles } from "../extension/folder.ts";
import { type ExtensionSigner, readSigner } from "../extension/signing.ts";
import { type Statement, statementBytes } from "../extension/statement.ts";
import { acceptUnverified } from "../extension/unverified.ts";
import { isRefused, readSigned } from "../extension/verifier.ts";
import { GatewayError } from "../kernel/error.ts";
import type { ExtensionKind } from "../kernel/verified-extension.ts";
import { replaceFile } from "./replace-file.ts";
import { readContent, type SignedContent } from "./signed-content.ts";

interface SignOptions {
  readonly key: string;
  readonly expires?: string;
  readonly json?: true;
}

/** `gateway pack sign` and `gateway plugin sign`. */
export function signCommand(kind: ExtensionKind): Command {
  return new Command("sign")
    .description(`sign every file of a ${kind}; beside signatures of the same files it adds one`)
    .argument("[folder]", `the ${kind}'s folder`, ".")
    .requiredOption("-k, --key <file>", "private key: unencrypted PEM of an Ed25519 or ECDSA P-256 key")
    .option(
      "--expires <time>",
      `when it ends, such as 2027-01-01T00:00:00Z (default: ${kind === "pack" ? "as pack.yaml says" : "never"})`,
      parseTime,
    )
    .option("--json", "print JSON")
    .action((folder: string, options: SignOptions) => signFolder(kind, folder, options));
}

async function signFolder(kind: ExtensionKind, path: string, options: SignOptions): Promise<void> {
  await refuseKeyInside(options.key, path);
  const signer = await readKey(options.key);
  const folder = await readExtensionFolder(path, kind);
  const content = await readContent(kind, path, acceptUnverified(folder, null));
  const present = sameStatement(folder, content, options.expires);
  const payload = present?.payload ?? statementBytes(newStatement(folder, content, options.expires));
  const others = present?.lines.filter(({ keyId }) => keyId !== signer.public.id).map(({ text }) => text) ?? [];
  await replaceFile(join(path, signatureFiles[kind]), [...others, signer.sign(payload)].join(""));
  const { name, version, sequence } = content;
  const { digest } = folder;
  const told = { ok: true, name, version, sequence, digest, key_id: signer.public.id };
  const signatures = others.length + 1;
  if (options.json) process.stdout.write(`${JSON.stringify({ ...told, signatures })}\n`);
  else process.stdout.write(`${name} ${version}: signed by ${told.key_id}, ${signatures} in all, ${digest}\n`);
}

interface Present {
  readonly payload: Buffer;
  readonly lines: readonly { readonly keyId: string; readonly text: string }[];
}

/** What is signed already, where it says just what would be signed now: then all signers vouch for one statement. */
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
  return { payload: bundles[0]?.payload ?? Buffer.alloc(0), lines };
}

function newStatement(folder: ExtensionFolder, content: SignedContent, expires: string | undefined): Statement {
  return {
    kind: folder.kind,
    name: content.name,
    version: content.version,
    sequence: content.sequence,
    subjects: folder.fileDigests,
    issuedAt: content.issuedAt ?? new Date().toISOString(),
    expiresAt: expires ?? content.expiresAt ?? null,
  };
}

/** What lies in the folder goes wherever it goes. */
async function refuseKeyInside(key: string, folder: string): Promise<void> {
  const [file, place] = await Promise.all([key, folder].map((path) => realpath(path).catch(() => resolve(path))));
  if (file === undefined || place === undefined || !file.startsWith(`${place}${sep}`)) return;
  throw new GatewayError("KEY_UNUSABLE", `\`${key}\` lies in the folder that is signed; keep it elsewhere`);
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

function parseTime(value: string): string {
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(value) ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(time)) throw new InvalidArgumentError("expected a time like `2027-01-01T00:00:00Z`");
  return new Date(time).toISOString();
}
