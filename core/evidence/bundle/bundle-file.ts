import { sha256Hex } from "../../kernel/digest.ts";
import { Breach } from "./breach.ts";
import { disclosureFile } from "./disclosure-check.ts";
import { type Manifest, manifestFile } from "./manifest.ts";
import { consistencyFile, proofFile } from "./proof-check.ts";
import { recordFile } from "./record-file.ts";
import type { TarFiles } from "./tar.ts";

export const checkpointFile = "checkpoint.txt";
export const readmeFile = "README.txt";

const known = new Set([checkpointFile, consistencyFile, disclosureFile, proofFile, readmeFile, recordFile]);

/** The files of an archive, as its manifest lists them. */
export class BundleFiles {
  readonly #files: TarFiles;

  private constructor(files: TarFiles) {
    this.#files = files;
  }

  /**
   * Takes the archive's files, in the order of their names: each is known to the format, listed in the manifest, and
   * has the digest stated there; none is missing. Throws Breach `unlisted_file`, `missing_file`, `manifest_mismatch`.
   */
  static check(files: TarFiles, manifest: Manifest): BundleFiles {
    for (const name of [...new Set([...files.keys(), ...Object.keys(manifest.files), ...known])].sort()) {
      if (name === manifestFile) continue;
      const content = files.get(name);
      const stated = Object.hasOwn(manifest.files, name) ? manifest.files[name] : undefined;
      if (content === undefined) throw new Breach("missing_file", { file: name });
      if (stated === undefined || !known.has(name)) throw new Breach("unlisted_file", { file: name });
      if (stated !== sha256Hex(content)) throw new Breach("manifest_mismatch", { file: name });
    }
    return new BundleFiles(files);
  }

  /** The bytes of a file that `check` found. */
  read(name: string): Uint8Array {
    const content = this.#files.get(name);
    if (content === undefined) throw new TypeError(`bundle: expected \`${name}\`, which the check demands`);
    return content;
  }
}
