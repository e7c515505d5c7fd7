import type { ParserLoaders } from "./parser.ts";

/** The parsers of the gateway. Each is loaded with the first action that needs it: a start without statements costs none. */
export const shippedParsers: ParserLoaders = {
  shell: async () => {
    const [{ loadShellParsers, readShell }, { shippedEffectTable }] = await Promise.all([
      import("./shell/shell-line.ts"),
      import("./effect-table.ts"),
    ]);
    await loadShellParsers();
    const table = shippedEffectTable();
    return (line) => readShell(line, table);
  },
  sql: async () => {
    const { loadSqlParsers, readSql } = await import("./sql/sql-text.ts");
    await loadSqlParsers();
    return readSql;
  },
  url: async () => (await import("./url.ts")).readUrl,
  path: async () => (await import("./path.ts")).readPath,
  address: async () => (await import("./address.ts")).readAddress,
};
