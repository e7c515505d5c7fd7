/** One thing that is asked, and who has promised it. */
export interface Requirement {
  readonly id: string;
  readonly sentence: string;
  readonly section: string;
  /** `met`: a test names it, and holds it. `part`: for what there is so far; an issue that shares it does the rest. */
  readonly status: "met" | "part" | "open";
  /** The issues that meet it; none where nobody has promised it yet. */
  readonly issues: readonly number[];
}

/**
 * Reads a table of `id | issues | status | sentence` rows below `## section` headings.
 * Throws, with the line, for what is neither, for an id that comes twice and for a row before the first heading.
 */
export function parseRequirements(table: string): readonly Requirement[] {
  const rows: Requirement[] = [];
  const ids = new Set<string>();
  let section: string | undefined;
  for (const line of table.split("\n").filter((text) => text.trim() !== "")) {
    if (line.startsWith("## ")) {
      section = line.slice(3).trim();
      continue;
    }
    const row = parseRow(line, section);
    if (ids.has(row.id)) throw new Error(`requirement \`${row.id}\` comes twice`);
    ids.add(row.id);
    rows.push(row);
  }
  return rows;
}

function parseRow(line: string, section: string | undefined): Requirement {
  const match = /^([RS][\d.-]+)\s*\| *(-|\d+(?:, *\d+)*) *\| (met|part|open) *\| (\S.*)$/.exec(line);
  if (match === null) throw new Error(`expected \`id | issues | met, part or open | sentence\`, got \`${line}\``);
  if (section === undefined) throw new Error(`expected a \`## section\` before \`${line}\``);
  const [, id = "", issues = "", status, sentence = ""] = match;
  const shared = issueNumbers(issues);
  if (status === "part" && shared.length < 2) throw new Error(`expected several issues to share \`${line}\``);
  return { id, section, sentence, status: status as Requirement["status"], issues: shared };
}

function issueNumbers(text: string): readonly number[] {
  return text === "-" ? [] : text.split(",").map(Number);
}
