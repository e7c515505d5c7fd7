import type { Static, TUnsafe } from "@sinclair/typebox";
import { type FactStatement, sqlDialects } from "../action/action-fact.ts";
import type { Draft } from "./check.ts";
import type { FaultList } from "./fault.ts";
import { enumeration, map, object, optional, string } from "./schema.ts";
import { Type } from "./type.ts";

const place = (description: string): TUnsafe<string | null> =>
  optional(string(description, { format: "argument_place" }));

const placeText = { type: "string", format: "argument_place" } as const;

const places = (description: string): TUnsafe<string | readonly string[] | null> =>
  optional(
    Type.Unsafe<string | readonly string[]>({
      anyOf: [placeText, { type: "array", items: placeText, minItems: 1, maxItems: 20 }],
      description,
      expected: "the name of an argument, a JSON Pointer like `/steps/*/url`, or a list of 1 to 20 of them",
    }),
  );

/** The members of a statement about a tool. */
export const statementMembers = {
  shell: place("A command line, or a program with its arguments as a list."),
  git: place("The arguments of git, as one text or as a list."),
  sql: place("SQL text."),
  dialect: optional(
    enumeration("The dialect of `sql`. Left out: the effect of every statement is unknown.", sqlDialects),
  ),
  url: places("URLs that it connects to."),
  path: places("Paths of files."),
  root: optional(
    string("The folder that every path of `path` must lie in, and that relative ones start at.", {
      format: "absolute_path",
    }),
  ),
  address: places("Whom it is for: mail addresses, accounts, handles, telephone numbers."),
};

const statementSchema = object(
  "The statement about a tool, with at least one of `shell` to `address`.",
  statementMembers,
);

export type StatementForm = Static<typeof statementSchema>;

export const factStatements = map(
  "What the arguments of each tool are, by its name at the upstream or by glob. They are parsed, and rules see what the tool does in place of `capabilities`. A place is the name of an argument, or a JSON Pointer in which `*` stands for every item of a list.",
  "tool_glob",
  statementSchema,
  { default: {} },
);

const kinds = ["shell", "git", "sql", "url", "path", "address"] as const;

/** The part of `checkRules` about what operators state of arguments. A statement without effect would look like protection. */
export function checkStatements(
  statements: Draft<Record<string, StatementForm>>,
  path: string,
  faults: FaultList,
): void {
  for (const [tool, statement] of Object.entries(statements ?? {})) {
    if (statement === undefined) continue;
    if (kinds.every((kind) => statement[kind] === null)) {
      faults.add(
        `${path}.${tool}`,
        `expected at least one of ${kinds.map((kind) => `\`${kind}\``).join(", ")}, got none`,
      );
    }
    refuseAlone(statement.dialect, statement.sql, `${path}.${tool}.dialect`, "sql", faults);
    refuseAlone(statement.root, statement.path, `${path}.${tool}.root`, "path", faults);
  }
}

function refuseAlone(value: unknown, needed: unknown, path: string, sibling: string, faults: FaultList): void {
  if (typeof value !== "string" || needed !== null) return;
  faults.add(path, `expected this key only beside \`${sibling}\`, got it without`);
}

/** A checked statement as its reader takes it. */
export function buildStatement(form: StatementForm): FactStatement {
  const { url, path, address, ...single } = form;
  const given = Object.entries({ ...single, url: asList(url), path: asList(path), address: asList(address) });
  return Object.fromEntries(given.filter(([, value]) => value !== null));
}

/** Checked statements, by the names of their tools. */
export function buildStatements(
  forms: Readonly<Record<string, StatementForm>>,
): Readonly<Record<string, FactStatement>> {
  return Object.fromEntries(Object.entries(forms).map(([tool, form]) => [tool, buildStatement(form)]));
}

function asList(value: string | readonly string[] | null): readonly string[] | null {
  return typeof value === "string" ? [value] : value;
}
