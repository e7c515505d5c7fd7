import { Command } from "commander";
import { loadTrustFile } from "../config/trust-file.ts";
import { readExtensionFolder } from "../extension/folder.ts";
import { type Refused, tellRefusal } from "../extension/refusal.ts";
import { isRefused, readSigned, verifyExtension } from "../extension/verifier.ts";
import { GatewayError } from "../kernel/error.ts";
import { compilePack } from "../policy/pack.ts";

interface VerifyOptions {
  readonly trust: string;
  readonly json?: true;
}

/** `gateway pack verify`. */
export function packVerifyCommand(): Command {
  return new Command("verify")
    .description("check a pack as a strict gateway would that never saw it before; exit 1 if it is refused")
    .argument("<folder>", "the pack's folder")
    .requiredOption("-t, --trust <file>", "trust policy")
    .option("--json", "print JSON")
    .action(verifyPack);
}

/** `gateway pack inspect`. */
export function packInspectCommand(): Command {
  return new Command("inspect")
    .description("print what a pack's signatures say, whoever made them; exit 1 if they are not of these files")
    .argument("<folder>", "the pack's folder")
    .option("--json", "print JSON")
    .action(inspectPack);
}

async function verifyPack(path: string, { trust, json }: VerifyOptions): Promise<void> {
  const { policy } = await loadTrustFile(trust);
  const folder = await readExtensionFolder(path, "pack");
  const result = await verifyExtension(folder, policy, new Date().toISOString(), async () => undefined);
  if (isRefused(result)) return refuse(path, result, json);
  const options = { extension: result, path, mode: "enforce", settings: {}, clock: Date.now } as const;
  const { pack } = await compilePack(options).catch((cause) => refuseContent(cause, json));
  const { name, version, digest } = pack.ref;
  const { signers } = result;
  if (json) print(JSON.stringify({ ok: true, name, version, sequence: pack.sequence, digest, signers }));
  else print(`${name} ${version}: trusted, signed by ${signers.join(", ")}, ${digest}`);
}

async function inspectPack(path: string, { json }: { readonly json?: true }): Promise<void> {
  const folder = await readExtensionFolder(path, "pack");
  const signed = readSigned(folder);
  if (isRefused(signed)) return refuse(path, signed, json);
  const { kind, name, version, sequence, issuedAt, expiresAt, subjects } = signed.statement;
  const told = {
    kind,
    name,
    version,
    sequence,
    issued_at: issuedAt,
    expires_at: expiresAt,
    files: subjects.size,
    digest: folder.digest,
    bundle_digest: signed.bundleDigest,
    keys: signed.bundles.map(({ keyId }) => keyId),
  };
  if (json) return print(JSON.stringify({ ok: true, ...told }));
  for (const [key, value] of Object.entries(told)) print(`${key}: ${Array.isArray(value) ? value.join(" ") : value}`);
}

function refuse(path: string, refused: Refused, json: true | undefined): void {
  process.exitCode = 1;
  const message = tellRefusal(refused);
  print(json ? JSON.stringify({ ok: false, check: refused.check, message }) : `${path}: ${message}`);
}

/** What is signed but unsound is refused as well, in the words of the compiler. */
function refuseContent(cause: unknown, json: true | undefined): never {
  const error = GatewayError.from(cause);
  if (json && error.code === "PACK_INVALID") print(JSON.stringify({ ok: false, check: "content_invalid" }));
  throw error;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
