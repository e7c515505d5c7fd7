import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import type { Json } from "../../../core/action/json.ts";
import { manifestDigest, readTaskManifest } from "../../../core/manifest/task-manifest.ts";

const whole = {
  task: "nightly",
  principal: "agent",
  expected_tools: ["files/*"],
  expected_resources: [],
  write_domains: ["/srv/app", "*.example.com"],
  max_actions: 20,
  expires_at: "2026-12-31T00:00:00Z",
} as const;

describe("readTaskManifest(value)", () => {
  it("takes what is declared, with its time in one spelling [R2.5-1]", () => {
    expect(readTaskManifest(whole)).to.deep.equal({ ...whole, expires_at: "2026-12-31T00:00:00.000Z" });
    const more = { ...whole, session: "s 1".replace(" ", "-"), mode: "shadow" };
    expect(readTaskManifest(more)).to.include({ session: "s-1", mode: "shadow" });
  });

  for (const name of Object.keys(whole)) {
    it(`asks for \`${name}\`: nothing is expected unless somebody says so`, () => {
      const { [name]: _, ...rest } = whole as unknown as Record<string, Json>;
      expect(faultOf(rest)).to.match(new RegExp(`^invalid params: expected \`${name}\` to be .*, got nothing$`));
    });
  }

  const many = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `tool-${index}`);
  const wrong: Readonly<Record<string, readonly [changed: object, said: string]>> = {
    "a member that it does not know": [{ expcted_tools: [] }, "did you mean `expected_tools`?"],
    "a task with an odd name": [{ task: "../x" }, "got `../x`"],
    "a label that no session can have": [{ session: "a b" }, "`session`"],
    "a pattern that is no text": [{ expected_tools: ["a", 7] }, "`expected_tools[1]` to be 1 to 256 characters"],
    "an empty pattern": [{ write_domains: [""] }, "`write_domains[0]`"],
    "a pattern with a control character": [{ write_domains: ["a\u0000"] }, "`write_domains[0]`"],
    "a pattern that is too long": [{ write_domains: ["a".repeat(257)] }, "`write_domains[0]`"],
    "too many patterns": [{ expected_tools: many(65) }, "at most 64 entries, got 65"],
    "no number of actions": [{ max_actions: "3" }, "an integer from 1 to 1000000, got `3`"],
    "a fraction of an action": [{ max_actions: 1.5 }, "got `1.5`"],
    "no action at all": [{ max_actions: 0 }, "got `0`"],
    "too many actions": [{ max_actions: 1_000_001 }, "got `1000001`"],
    "a day that there is not": [{ expires_at: "2026-02-30T00:00:00Z" }, "`expires_at`"],
    "a time without a zone": [{ expires_at: "2026-02-20T00:00:00" }, "`expires_at`"],
    "an unknown mode": [{ mode: "off" }, "`mode` to be `enforce` or `shadow`, got `off`"],
    "more than it may hold together": [
      { expected_tools: many(64).map((each) => each.padEnd(256, "x")) },
      "at most 16384 characters",
    ],
  };
  for (const [what, [changed, said]] of Object.entries(wrong)) {
    it(`refuses ${what}`, () => {
      expect(faultOf({ ...whole, ...changed } as Json)).to.include(said);
    });
  }

  it("takes what is just within each bound", () => {
    const most = {
      expected_tools: many(64),
      max_actions: 1_000_000,
      write_domains: ["a".repeat(256)],
      expected_resources: [],
    };
    expect(readTaskManifest({ ...whole, ...most })).to.include({ max_actions: 1_000_000 });
  });

  it("refuses what is no object", () => {
    for (const value of [null, [], "task"] as const)
      expect(faultOf(value)).to.include("expected the manifest to be an object");
  });
});

describe("manifestDigest(manifest)", () => {
  it("is equal for the same manifest in another order, and for no other", () => {
    const manifest = readTaskManifest(whole);
    const reordered = readTaskManifest(Object.fromEntries(Object.entries(whole).reverse()));
    expect(manifestDigest(reordered))
      .to.equal(manifestDigest(manifest))
      .and.match(/^sha256:[0-9a-f]{64}$/);
    const others = [{ max_actions: 21 }, { expected_tools: ["files/", "*"] }, { session: "s" }, { mode: "shadow" }];
    for (const other of others)
      expect(manifestDigest({ ...manifest, ...other } as typeof manifest)).to.not.equal(manifestDigest(manifest));
  });
});

function faultOf(value: Json): string {
  try {
    readTaskManifest(value);
  } catch (error) {
    if (error instanceof GatewayError && error.code === "INVALID_PARAMS") return error.message;
    throw error;
  }
  return "nothing";
}
