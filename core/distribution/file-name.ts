import { GatewayError } from "../action/error.ts";
import { asciiJson, type Json } from "../action/json.ts";
import { extensionBounds, signatureFiles, workplaces } from "../trust/folder.ts";
import type { ExtensionKind } from "../trust/verified-extension.ts";

/** The error for an artifact that is refused before anything of it is written. `text`: `expected A, got B`. */
export function artifactError(text: string): GatewayError {
  return new GatewayError("ARTIFACT_REFUSED", text);
}

const maxQuoted = 128;

/** Renders what an artifact or a registry brings as JSON in printable ASCII, cut; `none` where there is nothing. */
export function quoteForeign(value: Json | undefined): string {
  if (value === undefined) return "none";
  return asciiJson(typeof value === "string" ? value.slice(0, maxQuoted) : value).slice(0, maxQuoted * 6);
}

const part = /^[A-Za-z0-9_.+-]{1,128}$/;

/**
 * Checks the names of all files of an extension that comes from elsewhere: relative paths of plain parts, each name once
 * in whatever case, no file where another has a folder, nothing in the author's working folders, at most
 * `extensionBounds`; with its manifest and its signature. Throws ARTIFACT_REFUSED. Signers list the names as well.
 */
export function checkFileNames(kind: ExtensionKind, names: readonly string[]): void {
  if (names.length > extensionBounds.files)
    throw artifactError(`expected at most ${extensionBounds.files} files, got ${names.length}`);
  const taken = new Map<string, string>();
  for (const name of names) {
    if (!isPlainName(kind, name))
      throw artifactError(`expected a relative path of plain file names, got ${quoteForeign(name)}`);
    const other = taken.get(name.toLowerCase());
    if (other !== undefined) throw artifactError(`expected each file once, got \`${other}\` and \`${name}\``);
    taken.set(name.toLowerCase(), name);
  }
  for (const name of names) {
    const folder = foldersOf(name).find((each) => taken.has(each.toLowerCase()));
    if (folder !== undefined) throw artifactError(`expected \`${folder}\` to be a file or a folder, got both`);
  }
  for (const required of [`${kind}.yaml`, signatureFiles[kind]]) {
    if (!names.includes(required))
      throw artifactError(`expected ${kind === "engine" ? "an" : "a"} ${kind} with \`${required}\`, got none`);
  }
}

function isPlainName(kind: ExtensionKind, name: string): boolean {
  const parts = name.split("/");
  if (name.length > extensionBounds.pathLength || parts.length > extensionBounds.depth) return false;
  // Git reads what to run from `.git`, wherever it lies.
  const isPlain = (each: string): boolean => part.test(each) && !/^\.{1,2}$|^\.git$/i.test(each);
  return parts.every(isPlain) && !workplaces[kind].includes(parts[0]?.toLowerCase() ?? "");
}

function foldersOf(name: string): readonly string[] {
  const parts = name.split("/");
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join("/"));
}
