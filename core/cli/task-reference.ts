import { createPrivateKey, type KeyObject } from "node:crypto";
import { readFile } from "node:fs/promises";
import { Command, InvalidArgumentError } from "commander";
import { GatewayError } from "../kernel/error.ts";
import { signReference } from "../manifest/reference.ts";
import { type AdminOptions, adminOption } from "./admin-client.ts";
import { askManifest, parseTask } from "./manifest-path.ts";
import { print } from "./print.ts";

interface SignOptions extends AdminOptions {
  readonly key: string;
  readonly expiresIn: number;
  readonly json?: true;
}

/** `gateway manifests sign-reference`. */
export function signReferenceCommand(): Command {
  return new Command("sign-reference")
    .description("print what an agent sends with its first call, so that its session works on a task")
    .argument("<task>", "as `gateway manifests list` prints it", parseTask)
    .requiredOption("-k, --key <file>", "unencrypted PEM of an Ed25519 private key, one of `sessions.task_signers`")
    .option("--expires-in <seconds>", "how long it may be sent, at most 31 days", parseSeconds, 3_600)
    .addOption(adminOption())
    .option("--json", "print JSON, with what it says")
    .action(signTask);
}

async function signTask(task: string, options: SignOptions): Promise<void> {
  const key = await readKey(options.key);
  const { tenant, principal, digest } = await askManifest(options, task);
  const claims = { tenant, principal, task, manifest: digest, exp: Math.floor(Date.now() / 1_000) + options.expiresIn };
  const reference = signReference(claims, key);
  print(options.json ? JSON.stringify({ reference, claims }) : reference);
}

/** Throws KEY_UNUSABLE, which quotes nothing of the file. */
async function readKey(file: string): Promise<KeyObject> {
  const pem = await readFile(file, "utf8").catch((cause: NodeJS.ErrnoException) => {
    throw new GatewayError("KEY_UNUSABLE", `\`${file}\` cannot be read: ${cause.code ?? String(cause)}`, { cause });
  });
  try {
    const key = createPrivateKey(pem);
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch {
    // What is wrong with it may quote it.
  }
  throw new GatewayError("KEY_UNUSABLE", "expected the unencrypted PEM of an Ed25519 private key");
}

function parseSeconds(text: string): number {
  const seconds = Number(text);
  if (Number.isInteger(seconds) && seconds >= 1 && seconds <= 31 * 86_400) return seconds;
  throw new InvalidArgumentError(`expected a whole number from 1 to ${31 * 86_400}`);
}
