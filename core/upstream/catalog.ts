import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import { isJsonObject, type JsonObject } from "../action/json.ts";
import type { UpstreamConnection, UpstreamEventSink, Withheld } from "./connection.ts";
import type { ListedTool, ToolReader } from "./tool-reader.ts";

/** A prompt, resource or resource template of one upstream. */
export interface ListedItem {
  readonly upstream: string;
  /** Prompt name, URI or URI template. */
  readonly key: string;
  readonly definition: JsonObject;
}

/** One list of one upstream, and its items that are hidden from clients. */
export interface Listing<T> {
  readonly items: readonly T[];
  readonly withheld: readonly Withheld[];
}

export const listNames = ["tools", "prompts", "resources", "resourceTemplates"] as const;
export type ListName = (typeof listNames)[number];

const methods: Readonly<Record<ListName, string>> = {
  tools: "tools/list",
  prompts: "prompts/list",
  resources: "resources/list",
  resourceTemplates: "resources/templates/list",
};
const keys: Readonly<Record<Exclude<ListName, "tools">, string>> = {
  prompts: "name",
  resources: "uri",
  resourceTemplates: "uriTemplate",
};
/** The lists that each notification announces as changed. */
const changedBy: Readonly<Record<string, readonly ListName[]>> = {
  "notifications/tools/list_changed": ["tools"],
  "notifications/prompts/list_changed": ["prompts"],
  "notifications/resources/list_changed": ["resources", "resourceTemplates"],
};
const maxKey = 8_192;

interface CatalogOptions {
  readonly upstream: string;
  readonly tools: ToolReader;
  readonly clock: Clock;
  readonly onEvent: UpstreamEventSink;
  readonly connect: () => UpstreamConnection | Promise<UpstreamConnection>;
}

/** The tools, prompts and resources of one upstream, cached until they are old or announced as changed. */
export class Catalog {
  readonly tools: CachedList<Listing<ListedTool>>;
  readonly prompts: CachedList<Listing<ListedItem>>;
  readonly resources: CachedList<Listing<ListedItem>>;
  readonly resourceTemplates: CachedList<Listing<ListedItem>>;
  readonly #options: CatalogOptions;
  readonly #reported: Set<string> = new Set();

  /** Reads no list before it is asked for. */
  constructor(options: CatalogOptions) {
    this.#options = options;
    const { clock } = options;
    const onFault = (fault: GatewayError): void => {
      if (fault.code === "UPSTREAM_STARTING") return; // it may still succeed; its start reports its own end
      options.onEvent({ kind: "upstream_failed", upstream: options.upstream, reason: fault.message });
    };
    const items = (list: Exclude<ListName, "tools">) => new CachedList(() => this.#loadItems(list), clock, onFault);
    this.tools = new CachedList(() => this.#loadTools(), clock, onFault);
    this.prompts = items("prompts");
    this.resources = items("resources");
    this.resourceTemplates = items("resourceTemplates");
  }

  /** Invalidates the lists that a change notification names; ignores other methods. */
  onNotification(method: string): void {
    if (!Object.hasOwn(changedBy, method)) return;
    for (const list of changedBy[method] ?? []) this[list].invalidate();
  }

  /** Invalidates all lists: another connection may offer other items. */
  invalidate(): void {
    for (const list of listNames) this[list].invalidate();
  }

  async #loadTools(): Promise<Listing<ListedTool>> {
    const { tools, upstream } = this.#options;
    return this.#load("tools", (definition) => {
      const read = tools.read(definition);
      const name = typeof definition.name === "string" ? definition.name.slice(0, 128) : "(no name)";
      return typeof read === "string" ? { upstream, name, reason: read } : { key: read.exposedName, item: read };
    });
  }

  async #loadItems(list: Exclude<ListName, "tools">): Promise<Listing<ListedItem>> {
    const { upstream } = this.#options;
    return this.#load(list, (definition) => {
      const key = definition[keys[list]];
      if (typeof key === "string" && key.length <= maxKey) return { key, item: { upstream, key, definition } };
      return {
        upstream,
        name: `(${list})`,
        reason: `expected \`${keys[list]}\` to be a string of at most ${maxKey} characters`,
      };
    });
  }

  async #load<T>(
    list: ListName,
    read: (definition: JsonObject) => Withheld | { readonly key: string; readonly item: T },
  ): Promise<Listing<T>> {
    const connection = await this.#options.connect();
    const area = list === "resourceTemplates" ? "resources" : list;
    if (!isJsonObject(connection.server.capabilities[area])) return { items: [], withheld: [] };
    const definitions = await readList(connection, methods[list], list);
    const items: Map<string, T> = new Map();
    const withheld: Withheld[] = [];
    for (const definition of definitions) {
      const one = read(definition);
      if ("reason" in one) withheld.push(one);
      else if (items.has(one.key))
        withheld.push({ upstream: this.#options.upstream, name: one.key, reason: "the name is listed twice" });
      else items.set(one.key, one.item);
    }
    this.#report(withheld);
    return { items: [...items.values()], withheld };
  }

  /** Reports each name and reason once, so that the refresh of every minute does not fill the log. */
  #report(withheld: readonly Withheld[]): void {
    for (const one of withheld) {
      const key = JSON.stringify([one.name, one.reason]);
      if (this.#reported.has(key) || this.#reported.size >= 1_000) continue;
      this.#reported.add(key);
      this.#options.onEvent({ kind: "upstream_item_withheld", ...one });
    }
  }
}

const maxPages = 100;
const maxItems = 5_000;
const maxCharacters = 16 * 1024 * 1024;

/**
 * Reads a list to its last page. Rejects with UPSTREAM_INVALID beyond 100 pages, 5,000 items or 16 Mi characters, for a
 * cursor that repeats, and for a page that is no list; never returns a part of a list.
 */
async function readList(
  connection: UpstreamConnection,
  method: string,
  member: string,
): Promise<readonly JsonObject[]> {
  const items: JsonObject[] = [];
  const cursors: Set<string> = new Set();
  let characters = 0;
  for (let cursor: string | undefined, page = 1; ; page++) {
    const result = await readPage(connection, method, cursor);
    const listed = result[member];
    if (!Array.isArray(listed) || !listed.every(isJsonObject))
      throw invalid(`expected \`${member}\` to be a list of objects`);
    items.push(...listed);
    characters += JSON.stringify(listed).length;
    cursor = typeof result.nextCursor === "string" && result.nextCursor !== "" ? result.nextCursor : undefined;
    if (items.length > maxItems) throw invalid(`\`${method}\`: expected at most ${maxItems} items`);
    if (characters > maxCharacters) throw invalid(`\`${method}\`: expected at most ${maxCharacters} characters`);
    if (cursor === undefined) return items;
    if (page >= maxPages) throw invalid(`\`${method}\`: expected at most ${maxPages} pages`);
    if (cursors.has(cursor)) throw invalid(`\`${method}\`: the same cursor came twice`);
    cursors.add(cursor);
  }
}

async function readPage(
  connection: UpstreamConnection,
  method: string,
  cursor: string | undefined,
): Promise<JsonObject> {
  const response = await connection.request({ method, ...(cursor === undefined ? {} : { params: { cursor } }) });
  if ("result" in response) return response.result;
  throw invalid(`\`${method}\` failed with error ${response.error.code}`);
}

function invalid(detail: string): GatewayError {
  return new GatewayError("UPSTREAM_INVALID", detail);
}

const freshMs = 60_000;
const minIntervalMs = 1_000;

/**
 * A list that is read again when it is a minute old or announced as changed. After a failure the last good list remains,
 * and the next attempt is at least a second later.
 */
export class CachedList<T> {
  /** The last list that was read without a fault. Written by this class only. */
  good: T | undefined;
  /**
   * True if the list was announced as changed since it was read, and the last attempt to read it did not fail. Written by
   * this class only.
   */
  isChanged = false;
  /** The fault of the last attempt to read it. Written by this class only. */
  fault: GatewayError | undefined;
  readonly #load: () => Promise<T>;
  readonly #clock: Clock;
  readonly #onFault: (fault: GatewayError) => void;
  #readAt: number = Number.NEGATIVE_INFINITY;
  #hasFailed = false;
  #reading: Promise<T | undefined> | undefined;

  constructor(load: () => Promise<T>, clock: Clock, onFault: (fault: GatewayError) => void) {
    this.#load = load;
    this.#clock = clock;
    this.#onFault = onFault;
  }

  /** Requires the list to be read again before it is returned. */
  invalidate(): void {
    this.isChanged = true;
    this.#hasFailed = false;
  }

  /**
   * Returns the list, read again where it is stale; undefined where it could never be read. Never rejects.
   * After a failure the next attempt is not waited for: a source that hangs must not delay the others.
   */
  read(): T | undefined | Promise<T | undefined> {
    const age = this.#clock() - this.#readAt;
    const isStale = this.good === undefined || this.isChanged || this.#hasFailed || age >= freshMs;
    if (!isStale) return this.good;
    const read = this.refresh();
    return this.#hasFailed ? this.good : read;
  }

  /** Reads the list again, unless that was done within the last second and no change was announced. */
  refresh(): T | undefined | Promise<T | undefined> {
    if (this.#reading !== undefined) return this.#reading;
    const isSoon = this.#clock() - this.#readAt < minIntervalMs;
    if (isSoon && (this.#hasFailed || !this.isChanged)) return this.good;
    this.#reading = this.#read();
    return this.#reading;
  }

  /** Reads the list again, whatever its age; a reading in progress does not count. Rejects with the fault. */
  async reread(): Promise<void> {
    await this.#reading;
    this.#reading ??= this.#read();
    await this.#reading;
    if (this.fault !== undefined) throw this.fault;
  }

  async #read(): Promise<T | undefined> {
    this.#readAt = this.#clock();
    this.isChanged = false;
    try {
      this.good = await this.#load();
      this.#hasFailed = false;
      this.fault = undefined;
    } catch (error) {
      this.#hasFailed = true;
      this.fault = GatewayError.from(error);
      this.isChanged = false;
      this.#onFault(this.fault);
    } finally {
      this.#reading = undefined;
    }
    return this.good;
  }
}
