import { isJsonObject } from "../action/json.ts";
import type { JsonRpcNotification } from "../action/json-rpc.ts";
import { type CachedList, type ListedItem, type Listing, type ListName, listNames } from "./catalog.ts";
import type { EventSink, Link, UpstreamConnection, Withheld } from "./connection.ts";
import type { ListedTool } from "./tool-reader.ts";

export type { ListedItem } from "./catalog.ts";
export type { GroupScope } from "./connection.ts";
export type { ListedTool } from "./tool-reader.ts";

export type NotificationHandler = (notification: JsonRpcNotification, upstream: string) => void;

interface Merged {
  readonly tools: MergedList<ListedTool>;
  readonly prompts: MergedList<ListedItem>;
  readonly resources: MergedList<ListedItem>;
  readonly resourceTemplates: MergedList<ListedItem>;
}

/**
 * The connections of one scope, opened when needed, and what their upstreams offer together.
 * An upstream that is down is left out of lists, or stands in them with what it last offered.
 */
export class UpstreamGroup {
  readonly #links: ReadonlyMap<string, Link>;
  readonly #onEvent: EventSink;
  readonly #handlers: Set<NotificationHandler>;
  readonly #merged: Merged;

  /** `handlers` is read whenever a notification arrives. */
  constructor(links: readonly Link[], handlers: Set<NotificationHandler>, onEvent: EventSink) {
    this.#links = new Map(links.map((link) => [link.upstream, link]));
    this.#onEvent = onEvent;
    this.#handlers = handlers;
    const key = ({ key }: ListedItem): string => key;
    this.#merged = {
      tools: new MergedList(({ exposedName }) => exposedName),
      prompts: new MergedList(key),
      resources: new MergedList(key),
      resourceTemplates: new MergedList(key),
    };
  }

  /**
   * The tool that clients call by this name: at once where it is known, once its upstream was asked again where that
   * said its list has changed, else after all were asked again, which happens once a second at most.
   */
  tool(exposedName: string): ListedTool | undefined | Promise<ListedTool | undefined> {
    const known = this.#current("tools").find(exposedName);
    if (known === undefined) return this.#findTool(exposedName);
    // Only the owner's news are about this tool: another upstream that fails or hangs must not hold up its call.
    if (this.#links.get(known.upstream)?.catalog.tools.changed) return this.#rereadTool(known);
    for (const { catalog } of this.#links.values()) void catalog.tools.read(); // where it is old, the next call sees the new one
    return known;
  }

  tools(): Promise<readonly ListedTool[]> {
    return this.#items("tools");
  }

  prompts(): Promise<readonly ListedItem[]> {
    return this.#items("prompts");
  }

  resources(): Promise<readonly ListedItem[]> {
    return this.#items("resources");
  }

  resourceTemplates(): Promise<readonly ListedItem[]> {
    return this.#items("resourceTemplates");
  }

  async promptOwner(name: string): Promise<string | undefined> {
    await this.prompts();
    return this.#merged.prompts.find(name)?.upstream ?? (await this.#onlyOne("prompts"));
  }

  /** The one upstream that has resources at all; else the one that lists the URI, or a template it could come from. */
  async resourceOwner(uri: string): Promise<string | undefined> {
    const only = await this.#onlyOne("resources");
    if (only !== undefined) return only;
    await this.resources();
    const listed = this.#merged.resources.find(uri);
    if (listed !== undefined) return listed.upstream;
    return (await this.resourceTemplates()).find(({ key }) => matchesTemplate(uri, key))?.upstream;
  }

  /** Throws TypeError for an upstream that is not configured. */
  connection(upstream: string): UpstreamConnection | Promise<UpstreamConnection> {
    const link = this.#links.get(upstream);
    if (link === undefined) throw new TypeError(`connection: no upstream \`${upstream}\``);
    return link.connection();
  }

  /**
   * Opens all connections, and resolves with those that could be; why the others could not is in the events.
   * An upstream whose last attempt failed gets another, which nobody waits for.
   */
  async open(): Promise<readonly UpstreamConnection[]> {
    const opened = await Promise.all([...this.#links.values()].map((link) => openLink(link)));
    return opened.filter((connection) => connection !== undefined);
  }

  /** Hands every notification outside of a request to `handler` too. Returns the function that ends that. */
  onNotification(handler: NotificationHandler): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  /** What upstreams offer and clients do not see, as far as the lists have been read. */
  withheld(): readonly Withheld[] {
    return listNames.flatMap((list) => this.#merged[list].withheld);
  }

  async close(): Promise<void> {
    this.#handlers.clear();
    await Promise.all([...this.#links.values()].map((link) => link.close()));
  }

  async #rereadTool({ upstream, exposedName }: ListedTool): Promise<ListedTool | undefined> {
    await this.#links.get(upstream)?.catalog.tools.read();
    return this.#current("tools").find(exposedName) ?? this.#findTool(exposedName);
  }

  async #findTool(exposedName: string): Promise<ListedTool | undefined> {
    await Promise.all([...this.#links.values()].map(({ catalog }) => catalog.tools.refresh()));
    return this.#current("tools").find(exposedName);
  }

  async #items<L extends ListName>(list: L): Promise<Merged[L]["items"]> {
    await Promise.all([...this.#links.values()].map(({ catalog }) => catalog[list].read()));
    return this.#current(list).items;
  }

  #current<L extends ListName>(list: L): Merged[L] {
    const merged: MergedList<ListedTool> | MergedList<ListedItem> = this.#merged[list];
    const sources = [...this.#links.values()].map(({ catalog }) => (catalog[list] as CachedList<Listing<never>>).good);
    for (const conflict of merged.update(sources)) this.#onEvent({ kind: "withheld", ...conflict });
    return this.#merged[list];
  }

  async #onlyOne(capability: string): Promise<string | undefined> {
    const able = (await this.open()).filter(({ server }) => isJsonObject(server.capabilities[capability]));
    return able.length === 1 ? able[0]?.upstream : undefined;
  }
}

async function openLink(link: Link): Promise<UpstreamConnection | undefined> {
  const { failing } = link;
  const opening = Promise.resolve(link.connection()).catch(() => undefined); // the fault is in the events
  return failing ? undefined : opening;
}

/** The lists of several upstreams as one, in configuration order. A name that two claim is the earlier one's. */
class MergedList<T extends { readonly upstream: string }> {
  readonly #keyOf: (item: T) => string;
  #sources: readonly (Listing<T> | undefined)[] = [];
  #items: readonly T[] = [];
  #byKey: ReadonlyMap<string, T> = new Map();
  #withheld: readonly Withheld[] = [];

  constructor(keyOf: (item: T) => string) {
    this.#keyOf = keyOf;
  }

  get items(): readonly T[] {
    return this.#items;
  }

  /** Everything the sources withhold, and the names claimed twice. */
  get withheld(): readonly Withheld[] {
    return this.#withheld;
  }

  find(key: string): T | undefined {
    return this.#byKey.get(key);
  }

  /** Takes the lists as they are now; does nothing when they are the same ones. Returns the names newly in conflict. */
  update(sources: readonly (Listing<T> | undefined)[]): readonly Withheld[] {
    if (sources.length === this.#sources.length && sources.every((one, at) => one === this.#sources[at])) return [];
    this.#sources = sources;
    const byKey: Map<string, T> = new Map();
    const conflicts: Withheld[] = [];
    for (const item of sources.flatMap((source) => source?.items ?? [])) {
      const key = this.#keyOf(item);
      const owner = byKey.get(key);
      if (owner === undefined) byKey.set(key, item);
      else
        conflicts.push({ upstream: item.upstream, name: key, reason: `upstream \`${owner.upstream}\` has it already` });
    }
    this.#byKey = byKey;
    this.#items = [...byKey.values()];
    this.#withheld = [...sources.flatMap((source) => source?.withheld ?? []), ...conflicts];
    return conflicts;
  }
}

const maxUri = 8_192;

/**
 * Whether a URI could have been expanded from an RFC 6570 template: the literal parts occur in order, at the start and
 * at the end of the URI where the template has them there, and each expression stands for one character at least.
 * Linear in the URI's length. An answer is only ever used to choose between upstreams.
 */
export function matchesTemplate(uri: string, template: string): boolean {
  if (uri.length > maxUri || template.length > maxUri) return false;
  const literals = template.split(/\{[^{}]*\}/);
  const first = literals[0] as string;
  const last = literals.at(-1) as string;
  if (literals.length === 1) return uri === template;
  if (!uri.startsWith(first) || !uri.endsWith(last)) return false;
  let at = first.length;
  for (const literal of literals.slice(1, -1)) {
    const found = uri.indexOf(literal, at + 1);
    if (found === -1) return false;
    at = found + literal.length;
  }
  return uri.length - last.length > at;
}
