import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";

/** Files below `dir` that hold `text` anywhere, as it is or in a compact form, by their paths in it, sorted. */
export async function filesWith(dir: string, text: string): Promise<readonly string[]> {
  const forms = [Buffer.from(text), ...compactForms(text)];
  const found: string[] = [];
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile()) continue;
    const bytes = await readFile(path);
    if (forms.some((form) => bytes.includes(form))) found.push(relative(dir, path));
  }
  return found.sort();
}

/** The bytes that stand for a hash, an id, base64 or base64url in the values of the store. */
function compactForms(text: string): readonly Buffer[] {
  const bare = text.replace(/^(?:sha256:|session-v1-|principal-v1-)/, "");
  const hex = bare.replaceAll("-", "");
  const forms: Buffer[] = [];
  if (/^(?:[0-9a-f]{2}){16,}$/.test(hex)) forms.push(Buffer.from(hex, "hex"));
  for (const encoding of ["base64", "base64url"] as const) {
    const bytes = Buffer.from(bare, encoding);
    if (bytes.length >= 15 && bytes.toString(encoding) === bare) forms.push(bytes);
  }
  return forms;
}
