import { compileGlob, type Glob } from "../kernel/glob.ts";
import type { UpstreamSettings } from "../kernel/upstream-config.ts";

/** Which tools and methods of which upstreams bring in what strangers wrote, as the operator says. */
export class UntrustedSources {
  readonly #globs: ReadonlyMap<string, readonly Glob[]>;

  constructor(upstreams: readonly Pick<UpstreamSettings, "name" | "untrusted">[]) {
    this.#globs = new Map(upstreams.map(({ name, untrusted }) => [name, untrusted.map(compileGlob)]));
  }

  /** `name`: of a tool at the upstream, or of a method. */
  has(upstream: string, name: string): boolean {
    return this.#globs.get(upstream)?.some((glob) => glob.test(name)) ?? false;
  }
}
