import { readdir, readFile, rm } from "node:fs/promises";
import { join, relative } from "node:path";
import { expect } from "chai";
import { Level } from "level";
import { startGateway } from "../../support/gateway.ts";
import { rejection } from "../../support/ledger-world.ts";
import { storedSecret, unpackStoredState } from "../../support/stored-state.ts";

describe("a folder of a later format", () => {
  it("is refused with what was expected and what came, and keeps every entry and file", async () => {
    const folder = await unpackStoredState("watched");
    try {
      const entries = async (): Promise<[string, string][]> => {
        const store = new Level<string, string>(join(folder, "data", "state"));
        return store
          .iterator()
          .all()
          .finally(() => store.close());
      };
      const later = new Level<string, string>(join(folder, "data", "state"));
      await later.put("format", "6");
      await later.close();
      const [before, files] = [await entries(), await readTree(folder)];
      expect(before.length).to.be.above(100);
      const refused = await rejection(
        startGateway({
          folder,
          config: files.get("gateway.yaml") ?? "",
          env: { HOOK: storedSecret },
          limitsShares: true,
        }),
      );
      expect(refused.message).to.include(
        "expected store format `5`, got `6`; open it with the version that wrote it, or choose another folder",
      );
      expect(await entries()).to.deep.equal(before);
      expect([...(await readTree(folder))]).to.deep.equal([...files]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

/** Every file but the database's own, by its path. */
async function readTree(folder: string): Promise<ReadonlyMap<string, string>> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = found.filter((each) => each.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  const kept = paths.map((path) => relative(folder, path)).filter((path) => !path.startsWith("data/state/"));
  return new Map(
    await Promise.all(kept.sort().map(async (path) => [path, await readFile(join(folder, path), "latin1")] as const)),
  );
}
