import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { McpClient } from "../../support/mcp-client.ts";
import { everythingServer } from "./server-program.ts";
import { openWorld, type World } from "./world.ts";

const rules = `rules:
  - { id: test.echo, title: Echo is allowed, decision: allow, match: { tool: echo } }
`;

const depth = 200;
const aliases = Array.from({ length: 8 }, (_, at) => `a${at + 1}: &a${at + 1} [${`*a${at},`.repeat(9)}]`);

/** A file of rules with one fault, and what is said of it. */
const faults: readonly (readonly [fault: string, text: string, said: RegExp])[] = [
  ["a key that comes twice", rule("decision: allow, decision: block"), /rules\/more\.yaml:2:\d+: /],
  ["an unknown key", rule("acton: allow"), /rules\/more\.yaml:2:\d+: rules\[0\]\.acton: unknown key/],
  [
    "a merge key",
    `base: &base { decision: allow }\nrules:\n  - { <<: *base, id: test.x, title: X }\n`,
    /rules\/more\.yaml:\d+:\d+: /,
  ],
  ["a tag", rule("decision: !!js/function 'return allow'"), /rules\/more\.yaml:2:\d+: /],
  ["a second document", `${rule("decision: allow")}---\n${rule("decision: block")}`, /rules\/more\.yaml:\d+:\d+: /],
  ["aliases that explode", `a0: &a0 [x]\n${aliases.join("\n")}\nrules: []\n`, /rules\/more\.yaml:\d+:\d+: /],
  ["nesting without end", `rules: ${"[".repeat(depth)}${"]".repeat(depth)}\n`, /rules\/more\.yaml:1:\d+: /],
  ["an id that is there already", `rules:\n  - { id: test.echo, title: Again, decision: block }\n`, /`test\.echo`/],
  ["an expression that does not parse", rule('decision: block, when: "args. =="'), /rules\/more\.yaml:2:\d+: /],
];

function rule(members: string): string {
  return `rules:\n  - { id: test.more, title: More, match: { tool: get-sum }, ${members} }\n`;
}

interface ListedPolicy {
  readonly kind: string;
  readonly name: string;
  readonly digest: string;
}

describe("a policy pack that changes while the gateway runs", () => {
  let world: World;
  let client: McpClient;
  let file: string;

  before(async () => {
    world = await openWorld({ servers: () => ({ every: everythingServer() }), rules });
    client = await world.connect("v1");
    file = join(world.gateway.folder, "packs/test/rules/more.yaml");
  });

  after(() => world?.stop());

  async function decisionAbout(tool: "echo" | "get-sum"): Promise<"allowed" | "blocked"> {
    const { isError } = await client.callTool(tool, { message: "x", a: 1, b: 2 });
    return isError === true ? "blocked" : "allowed";
  }

  async function packs(): Promise<readonly ListedPolicy[]> {
    const response = await fetch(`${world.gateway.adminUrl}/admin/v1/policies`, {
      headers: { "x-api-key": world.key },
    });
    const { items } = (await response.json()) as { items: readonly ListedPolicy[] };
    return items.filter(({ kind }) => kind === "pack");
  }

  /** Writes the file (null: removes it), sends SIGHUP, and resolves with the log's next entry about a reload. */
  async function change(text: string | null): Promise<{ msg: string; detail?: string }> {
    const before = world.gateway.stderr().length;
    if (text === null) await rm(file);
    else await writeFile(file, text);
    world.gateway.process.kill("SIGHUP");
    const end = performance.now() + 60_000;
    for (;;) {
      const lines = world.gateway.stderr().slice(before).split("\n").slice(0, -1);
      const entry = lines.map((line) => JSON.parse(line) as { msg: string }).find(({ msg }) => msg.includes("reload"));
      if (entry !== undefined) return entry;
      if (performance.now() > end) throw new Error(`expected a reload, got: ${lines.join("\n")}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  describe("for another good one", () => {
    it("decides by the new one from then on, and names its digest", async () => {
      const [old] = await packs();
      expect(await decisionAbout("get-sum")).to.equal("blocked");
      expect((await change(rule("decision: allow"))).msg).to.equal("configuration_reloaded");
      expect(await decisionAbout("get-sum")).to.equal("allowed");
      const [now] = await packs();
      expect(now?.digest)
        .to.match(/^sha256:/)
        .and.not.equal(old?.digest);
      await change(null);
      expect(await packs()).to.deep.equal([old]);
    });
  });

  for (const [fault, text, said] of faults) {
    describe(`for one with ${fault} [S31]`, () => {
      it("is refused with the place of the fault, and the old pack stays", async () => {
        const old = await packs();
        const { msg, detail } = await change(text);
        expect(msg).to.equal("reload_refused");
        expect(detail).to.match(said);
        expect(await packs()).to.deep.equal(old);
        expect(await decisionAbout("echo")).to.equal("allowed");
        expect(await decisionAbout("get-sum")).to.equal("blocked");
        expect((await change(null)).msg).to.equal("configuration_reloaded");
      });
    });
  }

  describe("whose folder goes away", () => {
    it("is refused, and the old pack stays", async () => {
      const manifest = join(world.gateway.folder, "packs/test/pack.yaml");
      const before = world.gateway.stderr().length;
      await rm(manifest);
      world.gateway.process.kill("SIGHUP");
      while (!world.gateway.stderr().slice(before).includes("reload_refused")) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      expect(await decisionAbout("echo")).to.equal("allowed");
    });
  });

  describe("when all of that was done", () => {
    it("has sent nothing to the server that no pack allowed", () => {
      const sums = world.calls("every").filter(({ params }) => params?.name === "get-sum");
      expect(sums.length).to.equal(1);
    });
  });
});
