import type { EffectStatements } from "./effect-statement.ts";
import type { FactParsers, ParserLoaders } from "./parser.ts";

/** The parsers of the gateway. Each is loaded with the first action that needs it: a start without statements costs none. */
export const shippedParsers: ParserLoaders = {
  shell: () => loadShell({}),
  sql: async () => {
    const { loadSqlParsers, readSql } = await import("./sql/sql-text.ts");
    await loadSqlParsers();
    return readSql;
  },
  url: async () => (await import("./url.ts")).readUrl,
  path: async () => (await import("./path.ts")).readPath,
  address: async () => (await import("./address.ts")).readAddress,
};

/** Returns the parsers of the gateway, with the operator's own effects of programs. */
export function parsersWith(effects: EffectStatements): ParserLoaders {
  return { ...shippedParsers, shell: () => loadShell(effects) };
}

async function loadShell(effects: EffectStatements): Promise<FactParsers["shell"]> {
  const [{ loadShellParsers, readShell }, { shippedEffectTable }, { extendTable }] = await Promise.all([
    import("./shell/shell-line.ts"),
    import("./effect-table.ts"),
    import("./effect-statement.ts"),
  ]);
  await loadShellParsers();
  const table = extendTable(shippedEffectTable(), effects);
  return (line) => readShell(line, table);
}
