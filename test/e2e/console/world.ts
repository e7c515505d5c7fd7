import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { contentDigest } from "../../../core/action/canonical-json.ts";
import { principalId } from "../../../core/action/principal.ts";
import type { EventRecord } from "../../../core/evidence/record/record.ts";
import { recordsIn } from "../../support/review-world.ts";
import { type HeaderList, send } from "../../support/wire.ts";
import { echoCall, type KeyHolder, keys, messageHeaders, openWorld, post, type World } from "../wire/world.ts";
import { Browser } from "./browser.ts";

/** A call that waits for a review, with what repeats it. */
export interface HeldCall {
  readonly id: string;
  readonly args: string;
}

/** A gateway with the keys of `World`, people before its console, and an agent whose calls wait for a review. */
export class ConsoleWorld {
  world: World;
  readonly #folder: string;
  readonly #listen: string;
  readonly #more: string;
  readonly #env: Readonly<Record<string, string>>;
  #isStopped = false;

  private constructor(
    world: World,
    folder: string,
    more: string,
    listen: string,
    env: Readonly<Record<string, string>>,
  ) {
    this.world = world;
    this.#folder = folder;
    this.#more = more;
    this.#listen = listen;
    this.#env = env;
  }

  /** `more`: further top-level keys of `gateway.yaml`; `listen`: further lines below `listen`, indented. */
  static async start(more = "", listen = "", env: Readonly<Record<string, string>> = {}): Promise<ConsoleWorld> {
    const folder = await mkdtemp(join(tmpdir(), "console-"));
    const all = `sessions: { review_flood: { reviews: 0 } }\n${more}`;
    return new ConsoleWorld(await openWorld(all, listen, undefined, { folder, env }), folder, all, listen, env);
  }

  /** Stops the gateway and starts it again on its state. */
  async restart(): Promise<void> {
    await this.world.stop();
    this.world = await openWorld(this.#more, this.#listen, undefined, {
      folder: this.#folder,
      env: this.#env,
    });
  }

  get url(): string {
    return this.world.gateway.metricsUrl;
  }

  /** A browser before the console itself, or behind a proxy that adds the key of `holder`. */
  browser(holder?: KeyHolder): Browser {
    return new Browser(this.url, holder === undefined ? [] : keyOf(holder));
  }

  /** A browser that opened the one-time link of the holder of a key. */
  async linked(holder: KeyHolder): Promise<Browser> {
    const browser = this.browser();
    const { path } = await this.issueLink(holder);
    const { status } = await browser.ask(path, { "sec-fetch-site": "none" });
    if (status !== 303) throw new Error(`expected a sign-in by the link, got ${status}`);
    await browser.session();
    return browser;
  }

  async issueLink(holder: KeyHolder): Promise<{ readonly path: string; readonly expires_in_s: number }> {
    const headers: HeaderList = [...keyOf(holder), ["content-type", "application/json"]];
    const { body } = await send(this.url, { method: "POST", target: "/console/links", headers });
    return JSON.parse(body);
  }

  /** A call by the holder of the viewer's key that waits for a review. */
  async hold(): Promise<HeldCall> {
    const args = JSON.stringify({ please_review: randomBytes(8).toString("hex") });
    const [, id] = /Approval (apr_[0-9a-f]{32}) is pending/.exec(await this.repeat(args)) ?? [];
    if (id === undefined) throw new Error("expected a call held for review");
    return { id, args };
  }

  /** The same call again: the text of its result. */
  async repeat(args: string): Promise<string> {
    const { body } = await post(this.world, echoCall(args), { headers: messageHeaders("viewer") });
    return body;
  }

  /** The number of calls in the upstream's own log. */
  async calls(): Promise<number> {
    return (await this.world.upstream.calls()).length;
  }

  /** The state of an approval, as the admin port has it. */
  async stateOf(id: string): Promise<string> {
    const target = `/admin/v1/approvals/${id}`;
    const { body } = await send(this.world.gateway.adminUrl, { target, headers: keyOf("admin") });
    return (JSON.parse(body) as { approval: { state: string } }).approval.state;
  }

  /** Stops the gateway, and reads the chain that it leaves. */
  async records(tenant = "acme"): Promise<readonly EventRecord[]> {
    await this.#stop();
    return recordsIn(join(this.#folder, "data"), tenant);
  }

  async remove(): Promise<void> {
    await this.#stop();
    await this.world.upstream.stop();
    await rm(this.#folder, { recursive: true });
  }

  async #stop(): Promise<void> {
    if (!this.#isStopped) await this.world.gateway.stop();
    this.#isStopped = true;
  }
}

export function keyOf(holder: KeyHolder): HeaderList {
  return [["x-api-key", keys[holder]]];
}

/** The id of the principal of a key of tenant `acme`. */
export function principalOf(holder: KeyHolder): string {
  return principalId("acme", contentDigest(keys[holder]));
}
