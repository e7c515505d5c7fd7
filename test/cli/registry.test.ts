import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../check/source-tree.ts";
import { DockerRegistry } from "../support/docker-registry.ts";
import { parseTranscript } from "./transcript.ts";
import { TranscriptFolder } from "./transcript-folder.ts";

const transcripts = join(repositoryRoot, "test", "cli", "registry");

/** Each file runs top to bottom with a registry of its own at `$REGISTRY`. */
for (const name of readdirSync(transcripts).filter((file) => file.endsWith(".txt"))) {
  describe(`registry transcript ${name}`, () => {
    let registry: DockerRegistry;
    let folder: TranscriptFolder;

    before(async () => {
      registry = await DockerRegistry.start();
      folder = await TranscriptFolder.make();
    });

    after(async () => {
      await folder?.remove();
      await registry?.stop();
    });

    for (const step of parseTranscript(readFileSync(join(transcripts, name), "utf8"))) {
      it(`$ ${step.command.split("\n")[0]}`, () => folder.expectAsShown(step, { REGISTRY: registry.host }));
    }
  });
}
