import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../check/source-tree.ts";
import { PostgresServer } from "../support/postgresql.ts";
import { parseTranscript } from "./transcript.ts";
import { TranscriptFolder } from "./transcript-folder.ts";

const transcripts = join(repositoryRoot, "test", "cli", "database");

/** Each file runs top to bottom with an empty database of its own at `$DATABASE_URL`. */
for (const name of readdirSync(transcripts).filter((file) => file.endsWith(".txt"))) {
  describe(`database transcript ${name}`, () => {
    let postgres: PostgresServer;
    let url: string;
    let folder: TranscriptFolder;

    before(async () => {
      postgres = await PostgresServer.start();
      url = await postgres.createDatabase("gateway");
      folder = await TranscriptFolder.make();
    });

    after(async () => {
      await folder?.remove();
      await postgres?.stop();
    });

    for (const step of parseTranscript(readFileSync(join(transcripts, name), "utf8"))) {
      it(`$ ${step.command.split("\n")[0]}`, () => folder.expectAsShown(step, { DATABASE_URL: url }));
    }
  });
}
