import { readdirSync, readFileSync } from "node:fs";
import { type AddressInfo, createServer, type Server } from "node:net";
import { join } from "node:path";
import { repositoryRoot } from "../check/source-tree.ts";
import { parseTranscript } from "./transcript.ts";
import { TranscriptFolder } from "./transcript-folder.ts";

const transcripts = join(repositoryRoot, "test", "cli");

/**
 * Those that take long, by the test file that shows them; `transcript.test.ts` shows all others. `doctor.txt` comes last: its
 * checks give up after 30 s, and the tests that begin beside these are the heaviest.
 */
const groups = {
  extension: ["engine.txt", "new.txt", "pack-sign.txt", "pack.txt", "plugin.txt"],
  serving: ["approvals.txt", "console.txt", "evidence-prune.txt", "serve.txt", "session-state.txt", "doctor.txt"],
} as const;

/** Each transcript of a group runs top to bottom in a folder of its own, with `$TAKEN` a port in use. */
export function showTranscripts(group: keyof typeof groups | "other"): void {
  const long: readonly string[] = Object.values(groups).flat();
  const files = readdirSync(transcripts).filter((file) => file.endsWith(".txt"));
  for (const name of group === "other" ? files.filter((file) => !long.includes(file)) : groups[group]) show(name);
}

function show(name: string): void {
  describe(`transcript ${name}`, () => {
    let folder: TranscriptFolder;
    let holder: Server;

    before(async () => {
      folder = await TranscriptFolder.make();
      holder = await holdPort();
    });

    after(async () => {
      await new Promise((resolve) => holder.close(resolve));
      await folder.remove();
    });

    for (const step of parseTranscript(readFileSync(join(transcripts, name), "utf8"))) {
      it(`$ ${step.command.split("\n")[0]}`, async () => {
        await folder.expectAsShown(step, { TAKEN: String((holder.address() as AddressInfo).port) });
      });
    }
  });
}

function holdPort(): Promise<Server> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => resolve(server));
  });
}
