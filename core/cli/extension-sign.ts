import { readFile, realpath } from "node:fs/promises";
import { join, resolve, sep } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import { readExtensionFolder, signatureFiles } from "../extension/folder.ts";
import { refusalError } from "../extension/refusal.ts";
import type { SignatureBundle } from "../extension/signature-file.ts";
import { type ExtensionSigner, readSigner } from "../extension/signing.ts";
import { statementBytes } from "../extension/statement.ts";
import { acceptUnverified } from "../extension/unverified.ts";
import { isRefused, readSigned } from "../extension/verifier.ts";
import { GatewayError } from "../kernel/error.ts";
import type { ExtensionKind } from "../kernel/verified-extension.ts";
import { newStatement, sameStatement } from "./extension-statement.ts";
import { readForeignBundle } from "./foreign-bundle.ts";
import { replaceFile } from "./replace-file.ts";
import { readContent, type SignedContent } from "./signed-content.ts";

interface SignOptions {
  readonly key?: string;
  readonly bundle?: string;
  readonly statement?: true;
  readonly expires?: string;
  readonly json?: true;
}

/** `gateway pack sign` and `gateway plugin sign`. */
export function signCommand(kind: ExtensionKind): Command {
  return new Command("sign")
    .description(`sign every file of a ${kind}; beside signatures of the same files it adds one`)
    .argument("[folder]", `the ${kind}'s folder`, ".")
    .option("-k, --key <file>", "private key: unencrypted PEM of an Ed25519 or ECDSA P-256 key")
    .addOption(
      new Option("--bundle <file>", "add what another tool signed: a Sigstore bundle around the statement").conflicts(
        "key",
      ),
    )
    .addOption(
      new Option("--statement", "print what is to be signed, byte for byte, and sign nothing").conflicts([
        "key",
        "bundle",
      ]),
    )
    .option(
      "--expires <time>",
      `when it ends, such as 2027-01-01T00:00:00Z (default: ${kind === "pack" ? "as pack.yaml says" : "never"})`,
      parseTime,
    )
    .option("--json", "print JSON")
    .action((folder: string, options: SignOptions, command: Command) => signFolder(kind, folder, options, command));
}

async function signFolder(kind: ExtensionKind, path: string, options: SignOptions, command: Command): Promise<void> {
  const { key, bundle, statement } = options;
  if (key === undefined && bundle === undefined && statement === undefined) {
    return command.error("error: expected `--key <file>`, `--bundle <file>` or `--statement`");
  }
  const signer = key === undefined ? undefined : await readKeyOutside(path, key);
  const folder = await readExtensionFolder(path, kind);
  const content = await readContent(kind, path, acceptUnverified(folder, null));
  const present = sameStatement(folder, content, options.expires);
  const statementOf = (issuedAt: string): Buffer =>
    present?.payload ?? statementBytes(newStatement(folder, content, issuedAt, options.expires));
  const payload = statementOf(new Date().toISOString());
  if (statement) return void process.stdout.write(payload);
  const line = signer?.sign(payload) ?? (await readForeignBundle(bundle ?? "", folder, statementOf));
  const added = readSigned({ ...folder, signature: Buffer.from(line) });
  if (isRefused(added)) throw refusalError(path, added);
  const [signed] = added.bundles;
  const others = present?.lines.filter(({ keyId }) => keyId !== signed.keyId).map(({ text }) => text) ?? [];
  await replaceFile(join(path, signatureFiles[kind]), [...others, line].join(""));
  tell(content, folder.digest, signed, others.length + 1, options.json);
}

function tell(
  { name, version, sequence }: SignedContent,
  digest: string,
  { keyId, certificate }: SignatureBundle,
  signatures: number,
  json: true | undefined,
): void {
  const { issuer, subject } = certificate?.identity ?? {};
  const told = { ok: true, name, version, sequence, digest, key_id: keyId, issuer, subject, signatures };
  const by = subject === undefined ? keyId : `${subject} of ${issuer}`;
  const text = json ? JSON.stringify(told) : `${name} ${version}: signed by ${by}, ${signatures} in all, ${digest}`;
  process.stdout.write(`${text}\n`);
}

/** What lies in the folder goes wherever it goes. */
async function readKeyOutside(folder: string, key: string): Promise<ExtensionSigner> {
  const [file, place] = await Promise.all([key, folder].map((path) => realpath(path).catch(() => resolve(path))));
  if (file === undefined || place === undefined || !file.startsWith(`${place}${sep}`)) return readKey(key);
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
