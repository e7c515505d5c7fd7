import { GatewayError } from "../kernel/error.ts";
import { isJsonObject, type JsonObject } from "../kernel/json.ts";
import type { Clock } from "../kernel/port.ts";
import { CachedList } from "./cached-list.ts";
import type { UpstreamConnection } from "./connection.ts";
import type { EventSink, Withheld } from "./event.ts";
import { readList } from "./list-pages.ts";
import type { ListedTool, ToolReader } from "./tool-reader.ts";

/** A prompt, resource or resource template of one upstream. */
export interface ListedItem {
  readonly upstream: string;
  /** Prompt name, URI or URI template. */
  readonly key: string;
  readonly definition: JsonObject;
}

/** One list of one upstream, and what of it is not shown. */
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
/** Which lists a notification says have changed. */
const changedBy: Readonly<Record<string, readonly ListName[]>> = {
  "notifications/tools/list_changed": ["tools"],
  "notifications/prompts/list_changed": ["prompts"],
  "notifications/resources/list_changed": ["resources", "resourceTemplates"],
};
const longestKey = 8_192;

export interface CatalogOptions {
  readonly upstream: string;
  readonly tools: ToolReader;
  readonly clock: Clock;
  readonly onEvent: EventSink;
  readonly connect: () => UpstreamConnection | Promise<UpstreamConnection>;
}

/** What one upstream offers, kept until it is old or known to have changed. */
export class Catalog {
  readonly tools: CachedList<Listing<ListedTool>>;
  readonly prompts: CachedList<Listing<ListedItem>>;
  readonly resources: CachedList<Listing<ListedItem>>;
  readonly resourceTemplates: CachedList<Listing<ListedItem>>;
  readonly #options: CatalogOptions;
  readonly #reported: Set<string> = new Set();

  constructor(options: CatalogOptions) {
    this.#options = options;
    const { clock } = options;
    const onFault = (error: unknown): void => {
      const reason = GatewayError.from(error).message;
      options.onEvent({ kind: "refused", upstream: options.upstream, reason });
    };
    const items = (list: Exclude<ListName, "tools">) => new CachedList(() => this.#loadItems(list), clock, onFault);
    this.tools = new CachedList(() => this.#loadTools(), clock, onFault);
    this.prompts = items("prompts");
    this.resources = items("resources");
    this.resourceTemplates = items("resourceTemplates");
  }

  /** Takes note of a change notification; others are none of its business. */
  note(method: string): void {
    if (!Object.hasOwn(changedBy, method)) return;
    for (const list of changedBy[method] ?? []) this[list].invalidate();
  }

  /** Another connection may have other things to offer. */
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
      if (typeof key === "string" && key.length <= longestKey) return { key, item: { upstream, key, definition } };
      return {
        upstream,
        name: `(${list})`,
        reason: `its \`${keys[list]}\` is no string of at most ${longestKey} characters`,
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
        withheld.push({ upstream: this.#options.upstream, name: one.key, reason: "it is listed twice" });
      else items.set(one.key, one.item);
    }
    this.#report(withheld);
    return { items: [...items.values()], withheld };
  }

  /** Once for each name and reason, so that the minute's refresh does not fill the log. */
  #report(withheld: readonly Withheld[]): void {
    for (const one of withheld) {
      const key = JSON.stringify([one.name, one.reason]);
      if (this.#reported.has(key) || this.#reported.size >= 1_000) continue;
      this.#reported.add(key);
      this.#options.onEvent({ kind: "withheld", ...one });
    }
  }
}
