import { readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { repositoryRoot } from "../check/source-tree.ts";
import { DockerRegistry } from "../support/docker-registry.ts";
import { TufRepository } from "../support/sigstore/tuf-repository.ts";
import { SigstoreWorld } from "../support/sigstore/world.ts";
import { parseTranscript } from "./transcript.ts";
import { TranscriptFolder } from "./transcript-folder.ts";

const transcripts = join(repositoryRoot, "test", "cli", "registry");

/**
 * Each file runs top to bottom with a registry of its own at `$REGISTRY`, and a TUF repository at `$TUF`, whose root metadata is
 * in `root.json`.
 */
for (const name of readdirSync(transcripts).filter((file) => file.endsWith(".txt"))) {
  describe(`registry transcript ${name}`, () => {
    let registry: DockerRegistry;
    let repository: TufRepository;
    let folder: TranscriptFolder;

    before(async () => {
      registry = await DockerRegistry.start();
      folder = await TranscriptFolder.make();
      repository = await TufRepository.start();
      repository.publish(new SigstoreWorld().trustedRoot());
      await writeFile(join(folder.path, "root.json"), repository.root());
    });

    after(async () => {
      await folder?.remove();
      await Promise.all([registry?.stop(), repository?.stop()]);
    });

    for (const step of parseTranscript(readFileSync(join(transcripts, name), "utf8"))) {
      it(`$ ${step.command.split("\n")[0]}`, () =>
        folder.expectAsShown(step, { REGISTRY: registry.host, TUF: repository.url }));
    }
  });
}
