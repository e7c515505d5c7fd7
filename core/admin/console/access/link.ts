import { createHash } from "node:crypto";
import { GatewayError } from "../../../action/error.ts";
import type { Random } from "../../../action/id.ts";
import type { Principal } from "../../../action/principal.ts";

interface LinkOptions {
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
  readonly random: Random;
}

interface Link {
  readonly principal: Principal;
  readonly endMs: number;
}

/** Time in which a link is used. */
export const linkSeconds = 60;
const tokenBytes = 32;
const maxLinks = 16;

/** Links that open the console once, as the holder of the key that asked for them. Only hashes of their tokens are kept. */
export class OneTimeLinks {
  readonly #options: LinkOptions;
  /** By the SHA-256 of the token, oldest first. */
  readonly #links = new Map<string, Link>();

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  /** Returns the token of a new link, of 256 bits. Of more than 16 unused ones the oldest opens nothing any more. */
  issue(principal: Principal): string {
    const token = Buffer.from(this.#options.random(tokenBytes)).toString("base64url");
    this.#links.set(hashOf(token), { principal, endMs: this.#options.elapsedMs() + linkSeconds * 1_000 });
    const [oldest] = this.#links.keys();
    if (this.#links.size > maxLinks && oldest !== undefined) this.#links.delete(oldest);
    return token;
  }

  /** Uses a link up. Returns who asked for it. Throws LINK_INVALID for one that was used, is too old or never was. */
  redeem(token: string): Principal {
    const hash = hashOf(token);
    const link = this.#links.get(hash);
    this.#links.delete(hash);
    if (link !== undefined && this.#options.elapsedMs() < link.endMs) return link.principal;
    throw new GatewayError(
      "LINK_INVALID",
      `expected a link that was not used before and is at most ${linkSeconds} s old; \`gateway console\` prints another`,
    );
  }
}

function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
