import { Command } from "commander";
import { GatewayError } from "../action/error.ts";
import { configDigest } from "../config/digest.ts";
import { loadConfig, readForm } from "../config/load.ts";
import {
  configJsonSchema,
  configKeys,
  configReference,
  trustJsonSchema,
  trustKeys,
  trustReference,
} from "../config/reference.ts";
import { hideSecrets, writeShown } from "../config/shown-config.ts";
import { print } from "./print.ts";

/** `gateway config`. */
export function configCommand(): Command {
  const config = new Command("config").description("the configuration file");
  config
    .command("check")
    .description("check a configuration file and the variables it names; exit 1 if there are faults")
    .argument("<file>", "the configuration file")
    .option("--json", "print JSON")
    .action(checkConfig);
  config
    .command("show")
    .description("print what a configuration file comes to: every default filled in, nothing that may be a secret")
    .argument("<file>", "the configuration file")
    .option("--json", "print JSON")
    .action(showConfig);
  config
    .command("schema")
    .description("print JSON Schema of the configuration file, for editors")
    .option("--trust", "that of the trust policy")
    .option("--json", "print it on one line")
    .action(printSchema);
  config
    .command("reference")
    .description("print every key with its type, default and meaning, as Markdown")
    .option("--json", "print JSON")
    .action(printReference);
  return config;
}

function printReference({ json }: { readonly json?: true }): void {
  if (json) print(JSON.stringify({ configuration: configKeys(), trust: trustKeys() }));
  else process.stdout.write(`${configReference()}\n${trustReference()}`);
}

function printSchema({ trust, json }: { readonly trust?: true; readonly json?: true }): void {
  print(JSON.stringify(trust ? trustJsonSchema() : configJsonSchema(), null, json ? 0 : 2));
}

async function showConfig(file: string, { json }: { readonly json?: true }): Promise<void> {
  const shown = hideSecrets((await readForm(file, process.env)).form);
  if (json) print(JSON.stringify(shown));
  else process.stdout.write(writeShown(shown));
}

async function checkConfig(file: string, { json }: { readonly json?: true }): Promise<void> {
  try {
    const config = await loadConfig(file, process.env, { requireFolders: true });
    const counts = { keys: config.keys.length, upstreams: config.upstreams.length, packs: config.policy.packs.length };
    const digest = configDigest(config);
    if (json) process.stdout.write(`${JSON.stringify({ ok: true, ...counts, digest })}\n`);
    else {
      const told = Object.entries(counts).map(([name, count]) => `${name}: ${count}`);
      process.stdout.write(`${file}: ok\n${told.join("\n")}\ndigest: ${digest}\n`);
    }
  } catch (error) {
    if (!(error instanceof GatewayError && error.code === "CONFIG_INVALID")) throw error;
    process.exitCode = 1;
    process.stdout.write(json ? `${JSON.stringify({ ok: false, ...error.data })}\n` : `${error.detail}\n`);
  }
}
