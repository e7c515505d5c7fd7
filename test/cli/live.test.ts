import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../check/source-tree.ts";
import { LiveWorld } from "./live-world.ts";
import { parseTranscript } from "./transcript.ts";
import { TranscriptFolder } from "./transcript-folder.ts";

const transcripts = join(repositoryRoot, "test", "cli", "live");

/** Each file runs top to bottom before a gateway of its own, as an operator of tenant `acme`; `LiveWorld` says what it finds. */
for (const name of readdirSync(transcripts).filter((file) => file.endsWith(".txt"))) {
  describe(`live transcript ${name}`, () => {
    let world: LiveWorld;
    let folder: TranscriptFolder;

    before(async () => {
      world = await LiveWorld.open({ poisoned: name === "definitions.txt" });
      folder = await TranscriptFolder.make("set -o pipefail\n");
    });

    after(async () => {
      await folder?.remove();
      await world?.close();
    });

    for (const step of parseTranscript(readFileSync(join(transcripts, name), "utf8"))) {
      it(`$ ${step.command.split("\n")[0]}`, () => folder.expectAsShown(step, world.env));
    }
  });
}
