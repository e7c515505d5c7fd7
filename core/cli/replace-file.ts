import { rename, rm, writeFile } from "node:fs/promises";
import { GatewayError } from "../action/error.ts";
import { describeFileError } from "../config/document.ts";

/** Replaces a file of an extension in one step: a gateway that watches the folder reads the old content or the new. */
export async function replaceFile(path: string, content: string | Uint8Array): Promise<void> {
  const next = `${path}.next`;
  try {
    await writeFile(next, content, { flag: "wx" });
    await rename(next, path);
  } catch (cause) {
    await rm(next, { force: true });
    const found = `expected to write \`${path}\`, got ${describeFileError(cause)}`;
    throw new GatewayError("EXTENSION_INVALID", `${found}; check who may write to its folder, and run this again`, {
      cause,
    });
  }
}
