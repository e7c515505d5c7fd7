import { GatewayError } from "../action/error.ts";
import { isJsonObject } from "../action/json.ts";
import { type JsonRpcNotification, latestLegacyRevision } from "../action/json-rpc.ts";
import { type Catalog, type ListedItem, type Listing, type ListName, listNames } from "./catalog.ts";
import type { ServerDescription, UpstreamConnection, UpstreamEventSink, Withheld } from "./connection.ts";
import type { ListedTool } from "./tool-reader.ts";

/** One upstream as one group uses it: a connection that is opened when needed, and the upstream's catalog. */
export interface Link {
  readonly upstream: string;
  readonly catalog: Catalog;
  /** True if the last attempt to reach the upstream failed. */
  readonly isFailing: boolean;
  /** The upstream's description of itself in its last handshake with anybody; undefined before the first one. */
  readonly server: ServerDescription | undefined;
  /** Returns whether a tool of this upstream can have the exposed name. */
  mayList(exposedName: string): boolean;
  /** Returns whether the exposed name is of this upstream: it has its prefix, or was in a list of it. */
  hasListed(exposedName: string): boolean;
  /** Returns the open connection, or a promise of it, which rejects where it cannot be opened. */
  connection(): UpstreamConnection | Promise<UpstreamConnection>;
  close(): Promise<void>;
}

export type NotificationHandler = (notification: JsonRpcNotification, upstream: string) => void;

interface Merged {
  readonly tools: MergedList<ListedTool>;
  readonly prompts: MergedList<ListedItem>;
  readonly resources: MergedList<ListedItem>;
  readonly resourceTemplates: MergedList<ListedItem>;
}

/**
 * The connections of one scope, opened when needed, and the merged catalog of their upstreams.
 * An upstream that is down is missing from the lists, or listed with its last known items.
 */
export class UpstreamGroup {
  readonly #links: ReadonlyMap<string, Link>;
  readonly #onEvent: UpstreamEventSink;
  readonly #handlers: Set<NotificationHandler>;
  readonly #merged: Merged;
  readonly #onClose: () => void;

  /** `handlers` is read whenever a notification arrives; `onClose` is called when the group is closed. */
  constructor(
    links: readonly Link[],
    handlers: Set<NotificationHandler>,
    onEvent: UpstreamEventSink,
    onClose: () => void = () => undefined,
  ) {
    this.#links = new Map(links.map((link) => [link.upstream, link]));
    this.#onEvent = onEvent;
    this.#handlers = handlers;
    this.#onClose = onClose;
    const key = ({ key }: ListedItem): string => key;
    this.#merged = {
      tools: new MergedList(({ exposedName }) => exposedName),
      prompts: new MergedList(key),
      resources: new MergedList(key),
      resourceTemplates: new MergedList(key),
    };
  }

  /**
   * Finds the tool that clients call by this name. Returns a known tool at once, unless its upstream announced a changed
   * list: then that list is read first. An unknown name has all lists read again, at most once a second; it is refused with
   * UPSTREAM_BUSY or UPSTREAM_STARTING where a list could not be read for want of a connection, and with the fault of its
   * upstream where that one is known to own it and is down.
   */
  tool(exposedName: string): ListedTool | undefined | Promise<ListedTool | undefined> {
    const known = this.#current("tools").byKey.get(exposedName);
    if (known === undefined) return this.#findTool(exposedName);
    // Only the owner's list is waited for: another upstream that fails or hangs must not delay this call.
    if (this.#links.get(known.upstream)?.catalog.tools.isChanged) return this.#rereadTool(known);
    for (const { catalog } of this.#links.values()) void catalog.tools.read(); // an old list is refreshed for later calls
    return known;
  }

  /** Reads the tools of an upstream again, whatever their age, and returns the one of this name. Rejects with the fault. */
  async rereadTool(upstream: string, exposedName: string): Promise<ListedTool | undefined> {
    await this.#links.get(upstream)?.catalog.tools.reread();
    const { claims } = this.#current("tools");
    return claims.find((each) => each.upstream === upstream && each.exposedName === exposedName);
  }

  /** Every tool of the lists that were read so far, those whose name belongs to an earlier upstream included. */
  get toolClaims(): readonly ListedTool[] {
    return this.#current("tools").claims;
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
    const owner = this.#merged.prompts.byKey.get(name)?.upstream ?? (await this.#onlyOne("prompts"));
    if (owner === undefined) this.#checkRead("prompts");
    return owner;
  }

  /** Finds the only upstream with resources, else the one that lists the URI or a template that the URI matches. */
  async resourceOwner(uri: string): Promise<string | undefined> {
    const only = await this.#onlyOne("resources");
    if (only !== undefined) return only;
    await this.resources();
    const listed = this.#merged.resources.byKey.get(uri);
    if (listed !== undefined) return listed.upstream;
    const template = (await this.resourceTemplates()).find(({ key }) => matchesTemplate(uri, key));
    if (template === undefined) this.#checkRead("resources");
    return template?.upstream;
  }

  /** Throws TypeError for an upstream that is not configured. */
  connection(upstream: string): UpstreamConnection | Promise<UpstreamConnection> {
    const link = this.#links.get(upstream);
    if (link === undefined) throw new TypeError(`connection: no upstream \`${upstream}\``);
    return link.connection();
  }

  /**
   * Opens all connections and resolves with the open ones; the faults of the others are reported as events.
   * An upstream whose last attempt failed is tried again without waiting for it. Rejects with UPSTREAM_BUSY where there is
   * none and one has no connection left for this group.
   */
  async open(): Promise<readonly UpstreamConnection[]> {
    const results = await Promise.all([...this.#links.values()].map((link) => openLink(link)));
    const opened = results.flatMap((result) => (result === undefined || result instanceof GatewayError ? [] : result));
    const busy = results.find((result) => result instanceof GatewayError && result.code === "UPSTREAM_BUSY");
    if (opened.length === 0 && busy !== undefined) throw busy;
    return opened;
  }

  /**
   * Opens all connections and resolves with the descriptions of all upstreams. One without a connection is described as in
   * its last handshake; one that was never reached is assumed to have tools, which it announces once it is up.
   */
  async servers(): Promise<readonly ServerDescription[]> {
    const opened = new Map((await this.open()).map(({ upstream, server }) => [upstream, server]));
    return [...this.#links.values()].map((link) => opened.get(link.upstream) ?? announcing(link.server));
  }

  /** Passes every notification outside of a request to `handler` too. Returns the function that removes the handler. */
  onNotification(handler: NotificationHandler): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  /** The items hidden from clients, in all lists that have been read. */
  withheld(): readonly Withheld[] {
    return listNames.flatMap((list) => this.#merged[list].withheld);
  }

  async close(): Promise<void> {
    this.#handlers.clear();
    this.#onClose();
    await Promise.all([...this.#links.values()].map((link) => link.close()));
  }

  async #rereadTool({ upstream, exposedName }: ListedTool): Promise<ListedTool | undefined> {
    await this.#links.get(upstream)?.catalog.tools.read();
    return this.#current("tools").byKey.get(exposedName) ?? this.#findTool(exposedName);
  }

  async #findTool(exposedName: string): Promise<ListedTool | undefined> {
    await Promise.all([...this.#links.values()].map(({ catalog }) => catalog.tools.refresh()));
    const found = this.#current("tools").byKey.get(exposedName);
    if (found === undefined) this.#checkOwner(exposedName);
    return found;
  }

  /** Throws the fault of an upstream whose list was never read where the unknown tool is, or may be, in it. */
  #checkOwner(exposedName: string): void {
    const faults = this.#unread("tools");
    const owned = faults.find(({ link }) => link.hasListed(exposedName));
    const possible = faults.find(({ link, fault }) => isPassing(fault) && link.mayList(exposedName));
    const found = owned ?? possible;
    if (found !== undefined) throw found.fault;
  }

  /** Throws the fault of an upstream whose list was never read for want of a connection: an unknown name may be in it. */
  #checkRead(list: ListName): void {
    const found = this.#unread(list).find(({ fault }) => isPassing(fault));
    if (found !== undefined) throw found.fault;
  }

  /** The upstreams of which a list could never be read, and why. */
  #unread(list: ListName): readonly { readonly link: Link; readonly fault: GatewayError }[] {
    return [...this.#links.values()].flatMap((link) => {
      const { good, fault } = link.catalog[list];
      return good === undefined && fault !== undefined ? [{ link, fault }] : [];
    });
  }

  async #items<L extends ListName>(list: L): Promise<Merged[L]["items"]> {
    await Promise.all([...this.#links.values()].map(({ catalog }) => catalog[list].read()));
    return this.#current(list).items;
  }

  /** The merged list, brought up to date where one of its sources was read again. */
  #current<L extends ListName>(list: L): Merged[L] {
    const merged = this.#merged[list];
    let at = 0;
    let isStale = false;
    for (const { catalog } of this.#links.values()) {
      if (catalog[list].good !== merged.sources[at++]) isStale = true;
    }
    if (isStale) this.#merge(list);
    return merged;
  }

  #merge(list: ListName): void {
    const merged: MergedList<ListedTool> | MergedList<ListedItem> = this.#merged[list];
    const sources = [...this.#links.values()].map(({ catalog }) => catalog[list].good as Listing<never> | undefined);
    for (const conflict of merged.update(sources)) this.#onEvent({ kind: "upstream_item_withheld", ...conflict });
  }

  async #onlyOne(capability: string): Promise<string | undefined> {
    const able = (await this.open()).filter(({ server }) => isJsonObject(server.capabilities[capability]));
    return able.length === 1 ? able[0]?.upstream : undefined;
  }
}

function isPassing({ code }: GatewayError): boolean {
  return code === "UPSTREAM_BUSY" || code === "UPSTREAM_STARTING";
}

const unseen: ServerDescription = {
  era: "legacy",
  revision: latestLegacyRevision,
  capabilities: { tools: {} },
  serverInfo: {},
};

/** Describes an upstream without a connection: the gateway announces its tools once it has one. */
function announcing(last: ServerDescription = unseen): ServerDescription {
  const { tools } = last.capabilities;
  if (!isJsonObject(tools)) return last;
  return { ...last, capabilities: { ...last.capabilities, tools: { ...tools, listChanged: true } } };
}

async function openLink(link: Link): Promise<UpstreamConnection | GatewayError | undefined> {
  const { isFailing } = link;
  const opening = Promise.resolve(link.connection()).catch((cause: unknown) => GatewayError.from(cause));
  return isFailing ? undefined : opening;
}

/** The lists of several upstreams as one, in configuration order. A name that two claim belongs to the earlier one. */
class MergedList<T extends { readonly upstream: string }> {
  sources: readonly (Listing<T> | undefined)[] = [];
  items: readonly T[] = [];
  /** The items of all sources, also those whose name belongs to an earlier one. */
  claims: readonly T[] = [];
  byKey: ReadonlyMap<string, T> = new Map();
  /** The items that the sources withhold, and the names claimed twice. */
  withheld: readonly Withheld[] = [];
  readonly #keyOf: (item: T) => string;

  constructor(keyOf: (item: T) => string) {
    this.#keyOf = keyOf;
  }

  /** Merges the lists anew. Returns the names newly in conflict. */
  update(sources: readonly (Listing<T> | undefined)[]): readonly Withheld[] {
    this.sources = sources;
    const byKey: Map<string, T> = new Map();
    const conflicts: Withheld[] = [];
    this.claims = sources.flatMap((source) => source?.items ?? []);
    for (const item of this.claims) {
      const key = this.#keyOf(item);
      const owner = byKey.get(key);
      if (owner === undefined) byKey.set(key, item);
      else
        conflicts.push({
          upstream: item.upstream,
          name: key,
          reason: `the name belongs to upstream \`${owner.upstream}\``,
        });
    }
    this.byKey = byKey;
    this.items = [...byKey.values()];
    this.withheld = [...sources.flatMap((source) => source?.withheld ?? []), ...conflicts];
    return conflicts;
  }
}

const maxUri = 8_192;

/**
 * Returns whether a URI may be an expansion of an RFC 6570 template: the literal parts occur in order, at the start and
 * at the end of the URI where the template has them there, and each expression stands for one character at least.
 * Linear in the URI's length. The result is only ever used to choose between upstreams.
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
