import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import type { BuildRecord } from "../../../core/policy/passed-tests.ts";
import { openStore, type Store } from "../../../core/store/open.ts";
import { readExtensionFolder } from "../../../core/trust/folder.ts";
import { Agent } from "../../support/agent.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";
import { abstain, pluginFiles } from "../../support/wasm-plugin.ts";

const buildRecord = new URL("../../../core/build-record", import.meta.url);
const refused = "reload_refused";
const reloaded = "configuration_reloaded";

const kinds = [
  { kind: "pack", file: "packs/open/tests/own.yaml", subject: "envelope", right: "allow" },
  { kind: "plugin", file: "plugins/sample/tests/own.yaml", subject: "action", right: "abstain" },
] as const;

for (const { kind, file, subject, right } of kinds) {
  describe(`the own tests of a ${kind}`, () => {
    const expecting = (decision: string): string =>
      `cases:\n  - { name: notes, ${subject}: { tool: list_notes }, expect: { decision: ${decision} } }\n`;
    const fault = `tests/own.yaml:2:5: test \`notes\`: expected block, got ${right}`;
    let folder: string;
    let gateway: RunningGateway | undefined;

    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), "own-test-"));
      const plugin = Object.entries(pluginFiles(abstain)).map(([name, content]) => [`plugins/sample/${name}`, content]);
      for (const [name, content] of [...Object.entries(siteFiles()), ...plugin]) await write(`${name}`, content ?? "");
    });

    afterEach(async () => {
      await gateway?.stop();
      gateway = undefined;
      await rm(folder, { recursive: true });
    });

    async function write(name: string, content: string | Uint8Array): Promise<void> {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), content);
    }

    async function start(): Promise<RunningGateway> {
      const plugins = "packs/open }], plugins: [{ path: plugins/sample }] }";
      const config = siteConfig({ localLog: join(folder, "calls.log") }).replace("packs/open }] }", plugins);
      gateway = await startGateway({ folder, config, ownProcess: true });
      return gateway;
    }

    async function awaitLog(text: string, count: number): Promise<void> {
      for (let waited = 0; (gateway?.stderr().split(text).length ?? 0) <= count; waited += 50) {
        if (waited > 15_000) throw new Error(`expected \`${text}\` ${count} times, got ${gateway?.stderr()}`);
        await sleep(50);
      }
    }

    it("refuse the start where one fails, and only there", async () => {
      await write(file, expecting("block"));
      const error = await start().catch((cause: unknown) => String(cause));
      expect(error).to.include(fault);
      await write(file, expecting(right));
      await start();
    });

    it("refuse a change where one fails, by itself and at SIGHUP, and what was in force stays [S33]", async () => {
      const { url, process: child } = await start();
      await write(file, expecting("block"));
      await awaitLog(refused, 1);
      expect(gateway?.stderr()).to.include(JSON.stringify(fault).slice(1, -1));
      child.kill("SIGHUP");
      await awaitLog(refused, 2);
      const agent = new Agent(url, siteKey);
      expect((await agent.call("list_notes")).result?.isError ?? false).to.equal(false);
      await agent.hangUp();
      expect(gateway?.stderr()).not.to.include(reloaded);
      await write(file, expecting(right));
      await awaitLog(reloaded, 1);
    });

    it("run once for the bytes of an extension and of the program: a start takes the word of an earlier one", async () => {
      const kept = async (): Promise<string> => withStore(async (store) => (await store.get("own-tests-passed")) ?? "");
      const keep = (build: string): Promise<void> =>
        withStore((store) => store.put("own-tests-passed", JSON.stringify({ build, digests: [digest] })));
      const { digest: build } = JSON.parse(await readFile(buildRecord, "utf8")) as BuildRecord;
      await write(file, expecting(right));
      await start();
      await gateway?.stop();
      expect(JSON.parse(await kept())).to.deep.include({ build });
      expect(await kept()).to.include(await digestOf());

      await write(file, expecting("block"));
      const digest = await digestOf();
      expect(await kept()).to.not.include(digest);
      await keep("of another build");
      expect(await start().catch((cause: unknown) => String(cause))).to.include(fault);
      await keep(build);
      await start();
    });

    async function digestOf(): Promise<string> {
      return (await readExtensionFolder(join(folder, dirname(dirname(file))), kind)).digest;
    }

    async function withStore<T>(use: (store: Store) => Promise<T>): Promise<T> {
      const store = await openStore({ dir: join(folder, "data"), enabled: true });
      return use(store).finally(() => store.close());
    }
  });
}
