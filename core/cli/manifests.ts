import { Command } from "commander";
import { readConfigFile } from "../config/config-file.ts";
import { FaultList } from "../config/fault.ts";
import { plainValue, readYamlTree } from "../config/yaml-tree.ts";
import type { ToldManifest } from "../ingress/manifest-admin.ts";
import { asciiJson } from "../kernel/ascii-json.ts";
import type { Json } from "../kernel/json.ts";
import { readTaskManifest } from "../kernel/task-manifest.ts";
import { showText } from "../policy/display.ts";
import { type AdminOptions, adminOption, askJson } from "./admin-client.ts";
import { printList } from "./list.ts";
import { askManifest, manifestsPath, parseTask } from "./manifest-path.ts";
import { print, say } from "./print.ts";
import { signReferenceCommand } from "./task-reference.ts";

interface Output extends AdminOptions {
  readonly json?: true;
}

interface DeclareOptions extends Output {
  readonly file: string;
}

/** `gateway manifests`: the declared plans of agents' tasks, in a running gateway. */
export function manifestsCommand(): Command {
  const manifests = new Command("manifests").description("what agents are expected to do, task by task");
  manifests
    .command("declare")
    .description("put a manifest in force, in place of the one its task had")
    .requiredOption("-f, --file <file>", "the manifest, YAML or JSON")
    .addOption(adminOption())
    .option("--json", "print JSON")
    .action(declareManifest);
  manifests
    .command("list")
    .description("print the manifests in force")
    .addOption(adminOption())
    .option("--json", "print JSON, one line each")
    .action(listManifests);
  about("show", "print one manifest").action(showManifest);
  about("withdraw", "take a manifest out of force").action(withdrawManifest);
  manifests.addCommand(signReferenceCommand());
  return manifests;

  function about(name: string, description: string): Command {
    return manifests
      .command(name)
      .description(description)
      .argument("<task>", "as `gateway manifests list` prints it", parseTask)
      .addOption(adminOption())
      .option("--json", "print JSON");
  }
}

async function declareManifest(options: DeclareOptions): Promise<void> {
  const manifest = readTaskManifest(await readFileAsJson(options.file));
  const told = await askJson<ToldManifest>(options, manifestsPath, "POST", { ...manifest });
  print(options.json ? asciiJson(told) : `${told.task}: in force, ${told.digest}`);
}

async function readFileAsJson(file: string): Promise<Json> {
  const faults = new FaultList(file);
  const text = await readConfigFile(file, faults);
  const tree = text === null ? null : readYamlTree(text, faults);
  if (!faults.isEmpty) faults.throwAll("INVALID_PARAMS");
  return tree === null ? null : plainValue(tree);
}

async function listManifests(options: Output): Promise<void> {
  await printList(options, manifestsPath, { json: options.json, describe });
}

async function showManifest(task: string, options: Output): Promise<void> {
  const told = await askManifest(options, task);
  print(options.json ? asciiJson(told) : detail(told));
}

async function withdrawManifest(task: string, options: Output): Promise<void> {
  const withdrawn = await askJson(options, `${manifestsPath}/${task}`, "DELETE");
  if (options.json) print(asciiJson(withdrawn));
  say(`withdrew the manifest of ${task}`);
}

function describe({ task, principal, session, max_actions: most, expires_at: until }: ToldManifest): string {
  return `${task}  ${scopeOf(principal, session)}  at most ${most} actions  until ${until}`;
}

function scopeOf(principal: string, session: string | undefined): string {
  return session === undefined ? principal : `${principal} in \`${session}\``;
}

function detail(told: ToldManifest): string {
  const list = (patterns: readonly string[]): string => patterns.map(showText).join("  ") || "none";
  const rows: readonly (readonly [string, string])[] = [
    ["task", told.task],
    ["of", scopeOf(told.principal, told.session)],
    ["tools", list(told.expected_tools)],
    ["resources", list(told.expected_resources)],
    ["writes to", list(told.write_domains)],
    ["actions", `at most ${told.max_actions} of a session`],
    ["until", told.expires_at],
    ["mode", told.mode ?? "as configured"],
    ["declared", `${told.declared_at} by ${told.declared_by}`],
    ["digest", told.digest],
  ];
  return rows.map(([name, text]) => `${name.padEnd(11)}${text}`).join("\n");
}
