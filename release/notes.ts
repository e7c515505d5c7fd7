import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

/** Returns what a changelog says of a version, without its heading. Throws where it says nothing. */
export function releaseNotes(changelog: string, version: string): string {
  const [, ...sections] = changelog.split(/^## (?=\[)/m);
  const section = sections.find((text) => text.startsWith(`[${version}]`));
  const notes = section?.slice(section.indexOf("\n")).trim() ?? "";
  if (notes === "")
    throw new Error(`expected notes below \`## [${version}]\` in CHANGELOG.md, got none; write them first`);
  return `${notes}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = new URL("../../", import.meta.url);
  const { version } = JSON.parse(await readFile(new URL("package.json", root), "utf8"));
  process.stdout.write(releaseNotes(await readFile(new URL("CHANGELOG.md", root), "utf8"), version));
}
