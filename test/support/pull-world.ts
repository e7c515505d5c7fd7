import type { Finished } from "../unit/cli/run.ts";
import { CommandHost } from "./command-host.ts";
import { DockerRegistry } from "./docker-registry.ts";
import { fileDigests } from "./file-digest.ts";
import { makeSigner, TrustWorld, trustEntry } from "./trust-world.ts";

/** A registry, the pack of `TrustWorld` signed by one who is trusted, and a folder `site` to pull into. */
export class PullWorld {
  readonly registry: DockerRegistry;
  readonly world: TrustWorld;
  readonly signer = makeSigner();
  readonly repository = "policy/open";
  readonly #host = new CommandHost();

  private constructor(registry: DockerRegistry, world: TrustWorld) {
    this.registry = registry;
    this.world = world;
  }

  static async make(auth?: "basic" | "token"): Promise<PullWorld> {
    const [registry, world] = await Promise.all([
      DockerRegistry.start(auth === undefined ? {} : { auth }),
      TrustWorld.make(),
    ]);
    const made = new PullWorld(registry, world);
    await world.write("trust.yaml", `all_of: [${trustEntry("ops", made.signer)}]\n`);
    await world.write("site/kept.txt", "kept\n");
    await world.sign([made.signer]);
    return made;
  }

  async remove(): Promise<void> {
    await Promise.all([this.#host.stop(), this.registry.stop()]);
    await this.world.remove();
  }

  /** The folder that is pulled into. */
  get target(): string {
    return this.world.path("site/packs/open");
  }

  reference(version = ":1"): string {
    return `oci://${this.registry.host}/${this.repository}${version}`;
  }

  run(words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Finished> {
    return this.#host.run(words, { DOCKER_CONFIG: this.world.path("docker"), ...env }, this.world.folder);
  }

  push(version = ":1", env: Readonly<Record<string, string>> = {}): Promise<Finished> {
    return this.run(["pack", "push", this.world.pack, this.reference(version)], env);
  }

  /** Pushes, and throws where that fails; the digest of the manifest. */
  async release(version = ":1"): Promise<string> {
    const { code, stdout, stderr } = await this.run([
      "pack",
      "push",
      this.world.pack,
      this.reference(version),
      "--json",
    ]);
    if (code !== 0) throw new Error(stderr);
    return (JSON.parse(stdout) as { readonly artifact: string }).artifact;
  }

  /** Signs the pack under another sequence. */
  async setSequence(sequence: number): Promise<void> {
    await this.world.setSequence(sequence);
    await this.world.sign([this.signer]);
  }

  pull(version = ":1", words: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Promise<Finished> {
    const trust = this.world.path("trust.yaml");
    return this.run(["pack", "pull", this.reference(version), this.target, "--trust", trust, ...words], env);
  }

  /** Every file of `site` with the digest of its bytes. */
  siteFiles(): Promise<Readonly<Record<string, string>>> {
    return fileDigests(this.world.path("site"));
  }
}
