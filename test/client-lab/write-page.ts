import { writeFile } from "node:fs/promises";
import { pageFile, pageOf } from "./page.ts";
import { runAll } from "./run.ts";

await writeFile(pageFile, pageOf(await runAll()));
process.exit(0);
