import type {
  ActionPlaces,
  AddressFact,
  GitFact,
  PathFact,
  ShellFacts,
  SqlDialect,
  SqlFacts,
  UrlFact,
} from "../action/action-fact.ts";

/** A command line, the runs of git in it, and the places that it names. */
export interface ReadCommand {
  readonly shell: ShellFacts;
  readonly git: readonly GitFact[];
  readonly places: ActionPlaces;
}

/** Reads the text of each kind. None throws: what cannot be read has the effect `unknown`. */
export interface FactParsers {
  readonly shell: (line: string | readonly string[]) => ReadCommand;
  readonly sql: (text: string, dialect: SqlDialect | null) => SqlFacts;
  readonly url: (text: string) => UrlFact;
  readonly path: (text: string, root?: string) => PathFact;
  readonly address: (text: string) => AddressFact;
}

export type ParserName = keyof FactParsers;

/** Loads each parser when an action first needs it. One that is left out or rejects is a parser that reads nothing. */
export type ParserLoaders = { readonly [Name in ParserName]?: () => Promise<FactParsers[Name]> };
