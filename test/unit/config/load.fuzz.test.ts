import fc from "fast-check";
import { stringify } from "yaml";
import { roundsOf } from "../../support/rounds.ts";
import { faultsOf } from "./fixture.ts";

/** Real keys, real words and hostile ones, so that documents get past the first check. */
const word = fc.constantFrom(
  ...[
    "listen",
    "host",
    "keys",
    "id",
    "tenant",
    "role",
    "admin",
    "key_hash",
    "key_env",
    "upstreams",
    "name",
    "transport",
  ],
  ...[
    "stdio",
    "http",
    "command",
    "url",
    "env",
    "env_from",
    "headers",
    "headers_env",
    "policy",
    "packs",
    "path",
    "settings",
  ],
  ...["mode", "shadow", "default_decision", "allow", "limits", "body_ms", "capabilities", "read", "mcp_gateway"],
  ...["__proto__", "constructor", "<<", "", "\u0000", "\ud800", "127.0.0.1", "0.0.0.0", "VARIABLE"],
);
const leaf = fc.oneof(word, fc.integer(), fc.double(), fc.boolean(), fc.constant(null), fc.string({ maxLength: 8 }));
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { depthSize: "small" },
    leaf,
    fc.array(tie("tree"), { maxLength: 4 }),
    fc.dictionary(word, tie("tree"), { maxKeys: 6 }),
  ),
}));

describe("loadConfig(path, env), for any file", () => {
  it("loads bytes or throws CONFIG_INVALID, never anything else", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => void (await faultsOf(bytes))),
      { numRuns: roundsOf(60, 2_000) },
    );
  });

  it("loads a text of YAML's own characters or throws CONFIG_INVALID", async () => {
    const piece = fc.constantFrom(
      ..."[]{},:?-#&*!|>'\"%@`~\n \t\\<",
      "---",
      "...",
      "a",
      "1",
      "log: ",
      "\n  ",
      "<<",
      "!!map",
    );
    const text = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(""));
    await fc.assert(
      fc.asyncProperty(text, async (content) => void (await faultsOf(content))),
      { numRuns: roundsOf(100, 4_000) },
    );
  });

  it("loads a tree of the schema's words or throws CONFIG_INVALID", async () => {
    await fc.assert(
      fc.asyncProperty(tree, async (value) => void (await faultsOf(stringify(value)))),
      { numRuns: roundsOf(60, 2_000) },
    );
  });
});
