import { createHash } from "node:crypto";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore } from "../../core/store/open.ts";

/** A secret that can be told from all others wherever it turns up; the same for the same name. */
export function canaryOf(name: string): string {
  return `canary-${createHash("sha256").update(name).digest("hex").slice(0, 24)}`;
}

/** As it is, and as a careless encoder would leave it. */
export function formsOf(text: string): readonly string[] {
  return [text, Buffer.from(text).toString("base64").replace(/=+$/, "").slice(0, -2), encodeURIComponent(text)];
}

/** Everything in the store of a data folder that no gateway uses, as one text, however its files are packed. */
export async function entriesIn(folder: string): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), "canary-store-"));
  await cp(folder, copy, { recursive: true });
  const store = await openStore({ dir: copy, enabled: true });
  const entries = JSON.stringify(await store.iterator().all());
  await store.close();
  await rm(copy, { recursive: true });
  return entries;
}
