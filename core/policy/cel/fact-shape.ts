import { factKinds } from "../../action/action-fact.ts";
import { recordShape, type Shape, shapes } from "./syntax.ts";

const listOf = (element: Shape): Shape => ({ kind: "list", element });
const texts = listOf(shapes.string);
/** A text, or null where it is computed. */
const textOrNull = shapes.json;

const shell = recordShape({
  parsed: shapes.bool,
  dynamic: shapes.bool,
  more: shapes.bool,
  effect: shapes.string,
  commands: listOf(
    recordShape({
      name: textOrNull,
      argv: listOf(textOrNull),
      wrappers: texts,
      env: texts,
      effect: shapes.string,
      redirects: listOf(recordShape({ op: shapes.string, path: textOrNull })),
      hosts: texts,
      paths: texts,
      place: shapes.string,
    }),
  ),
});

const git = listOf(
  recordShape({
    subcommand: textOrNull,
    options: texts,
    remotes: texts,
    refs: texts,
    force: shapes.bool,
    config_overrides: texts,
    effect: shapes.string,
  }),
);

const sql = recordShape({
  parsed: shapes.bool,
  dialect: textOrNull,
  effect: shapes.string,
  statements: listOf(
    recordShape({
      kind: shapes.string,
      effect: shapes.string,
      tables: recordShape({ read: texts, write: texts }),
      functions: texts,
      has_where: shapes.bool,
      where_is_constant: shapes.bool,
      into: shapes.bool,
      locking: shapes.bool,
    }),
  ),
  more: shapes.bool,
});

const url = listOf(
  recordShape({
    scheme: shapes.string,
    host: shapes.string,
    address: { ...shapes.string, absence: "it is there for hosts that are an address" },
    zone: shapes.string,
    port: shapes.double,
    userinfo: shapes.bool,
    odd: shapes.bool,
  }),
);

const path = listOf(recordShape({ plain: shapes.string, inside: shapes.bool, odd: shapes.bool }));
const address = listOf(recordShape({ kind: shapes.string, plain: shapes.string, odd: shapes.bool }));

const calls = listOf(recordShape({ tool: shapes.string, effect: shapes.string }));

const kinds = { shell, git, sql, url, path, address, calls };

/** The facts of an action. A kind is there where it was stated or found. */
export const factsShape = recordShape({
  effect: shapes.string,
  hosts: texts,
  paths: texts,
  more: shapes.bool,
  ...Object.fromEntries(
    [...factKinds, "calls" as const].map((kind) => [
      kind,
      { ...kinds[kind], absence: `add \`fact: ${kind}\` to the rule's \`match\`` },
    ]),
  ),
});
