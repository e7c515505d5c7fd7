import { homedir } from "node:os";
import { basename, sep } from "node:path";
import type { ClientName } from "./client-config.ts";

/** The values that a client's references stand for. */
export interface ReferenceValues {
  readonly client: ClientName;
  readonly env: NodeJS.ProcessEnv;
  /** The folder of the project. */
  readonly folder: string;
}

/** The reason for which a server stays with its client. */
export class LeftReason extends Error {
  constructor(message: string) {
    super(message);
    this.name = "LeftReason";
  }
}

/** A text with its references replaced, and the environment variables among them. */
export interface ResolvedText {
  readonly text: string;
  readonly variables: readonly string[];
}

const maxText = 131_072;

/** The references that each client replaces in its file; Codex replaces none. */
const patterns: Readonly<Record<ClientName, RegExp | null>> = {
  claude: /\$\{([^{}]*)\}/g,
  cursor: /\$\{([^{}]*)\}/g,
  vscode: /\$\{([^{}]*)\}/g,
  codex: null,
  opencode: /\{((?:env|file):[^{}]*)\}/g,
};

/** Replaces the references of a text as its client does. Throws LeftReason for one whose value is not known here. */
export function resolveText(text: string, values: ReferenceValues): ResolvedText {
  if (text.length > maxText) throw new LeftReason(`a text of it is longer than ${maxText} characters`);
  const pattern = patterns[values.client];
  if (pattern === null) return { text, variables: [] };
  const variables: string[] = [];
  const resolved = text.replace(pattern, (whole: string, inner: string) => {
    const folder = folderOf(inner, values);
    if (folder !== undefined) return folder;
    const [name, fallback] = variableOf(inner, whole, values.client);
    variables.push(name);
    const value = values.env[name] ?? fallback;
    if (value === undefined) throw new LeftReason(`it takes the variable \`${name}\`, which is not set here`);
    return value;
  });
  return { text: resolved, variables };
}

function folderOf(inner: string, { client, folder }: ReferenceValues): string | undefined {
  if (client !== "cursor" && client !== "vscode") return undefined;
  if (inner === "workspaceFolder") return folder;
  if (inner === "workspaceFolderBasename") return basename(folder);
  if (inner === "userHome") return homedir();
  return inner === "pathSeparator" || inner === "/" ? sep : undefined;
}

/** Reads `NAME`, `NAME:-default` (Claude Code), or `env:NAME` (the others). */
function variableOf(inner: string, whole: string, client: ClientName): readonly [name: string, fallback?: string] {
  const found =
    client === "claude" ? /^([A-Za-z_]\w{0,127})(?::-(.*))?$/s.exec(inner) : /^env:([A-Za-z_]\w{0,127})$/.exec(inner);
  const [, name, fallback] = found ?? [];
  if (name === undefined) throw new LeftReason(`only the client can fill in \`${whole.slice(0, 80)}\``);
  return fallback === undefined ? [name] : [name, fallback];
}
