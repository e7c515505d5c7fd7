import { posix } from "node:path";
import type { ActionPlaces } from "../action/action-fact.ts";
import type { Capability } from "../action/capability.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import { foundPaths, newPlaceSearch, searchPaths } from "../action/fact.ts";
import { compileGlob, type Glob } from "../action/glob.ts";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { parsedUrl } from "../action/parsed-url.ts";
import { findNamedValues, type NamedValue } from "../fact/named-value.ts";
import { valuesAt } from "../fact/stated-value.ts";
import { lastPart, rangeOf, tenantPrefix } from "../store/key-range.ts";
import { manifestDigest, readTaskManifest, type TaskManifest } from "./task-manifest.ts";

/** The parts of a manifest that an action can depart from. */
const driftKinds = ["tool", "resource", "write_domain", "argument", "host", "address", "actions", "expired"] as const;
export type DriftKind = (typeof driftKinds)[number];

/** One departure of an action, with the text of its finding. */
export interface Departure {
  readonly kind: DriftKind;
  readonly text: string;
}

/** Capabilities that change nothing, for which write domains are not checked. */
const readingCapabilities: ReadonlySet<Capability> = new Set(["read", "generate"]);
/** Separators between the words of a command. */
const wordSeparators = /[\s"'`<>|;&(){}=,@]+/;
/** Places quoted in one finding. */
const maxQuoted = 3;

/** A manifest, compiled for comparison with actions. */
class Plan {
  readonly #manifest: TaskManifest;
  readonly #expiresAt: number;
  readonly #tools: PatternList;
  readonly #resources: PatternList;
  readonly #allowsAnyResource: boolean;
  readonly #domains: WriteDomains;
  readonly #hosts: PatternList | null;
  readonly #addresses: PatternList | null;
  readonly #values: readonly ValuePattern[];
  /** Compiled when it is first asked for. */
  #named: NamedPatterns | undefined;

  constructor(manifest: TaskManifest) {
    this.#manifest = manifest;
    this.#expiresAt = Date.parse(manifest.expires_at);
    this.#tools = new PatternList(manifest.expected_tools);
    this.#resources = new PatternList(manifest.expected_resources);
    this.#allowsAnyResource = allowsAnything(manifest.expected_resources);
    this.#domains = new WriteDomains(manifest.write_domains);
    this.#hosts = lowerCase(manifest.expected_hosts);
    this.#addresses = lowerCase(manifest.expected_addresses);
    this.#values = compileValues(manifest.arguments ?? {});
  }

  /** Finds the departures of an action at a time (milliseconds since 1970). Throws TypeError for one without session state. */
  findDepartures(action: ActionEnvelope, now: number): readonly Departure[] {
    const found = [this.#checkExpiry(now), this.#checkActionCount(action)];
    if (action.protocol !== "model")
      found.push(
        this.#checkTool(action),
        this.#checkResources(action),
        this.#checkDomains(action),
        this.#checkHosts(action),
        this.#checkAddresses(action),
        this.#checkValues(action),
      );
    return found.filter((departure) => departure !== undefined);
  }

  /** Returns whether the manifest names a host, a path or an address: by a glob that is not merely `*`. */
  expects(value: string): boolean {
    this.#named ??= compileNamed(this.#manifest);
    const { values, texts, domains } = this.#named;
    if (value.startsWith("/")) return values.has(value) || texts.has(value) || domains.hasPath(value);
    const [host = ""] = value.split("/", 1);
    return [value, host].some((each) => values.has(each) || texts.has(each.toLowerCase()) || domains.hasHost(each));
  }

  #checkExpiry(now: number): Departure | undefined {
    if (now < this.#expiresAt) return undefined;
    return { kind: "expired", text: `the manifest ended at ${this.#manifest.expires_at}` };
  }

  #checkActionCount({ session_state: state }: ActionEnvelope): Departure | undefined {
    if (state === undefined) throw new TypeError("findDepartures: expected an action with its session's state");
    const { max_actions: maxActions } = this.#manifest;
    if (state.actions < maxActions) return undefined;
    return { kind: "actions", text: `the session has had its ${maxActions} actions` };
  }

  #checkTool({ target, tool }: ActionEnvelope): Departure | undefined {
    const name = `${target}/${tool}`;
    if (isResourceMethod(tool) || this.#tools.has(name)) return undefined;
    return { kind: "tool", text: `${quote(name)} is not among the expected tools` };
  }

  #checkResources(action: ActionEnvelope): Departure | undefined {
    if (this.#allowsAnyResource) return undefined;
    const { paths, more } = isResourceMethod(action.tool) ? { paths: [], more: false } : factsOf(action);
    const named = [...paths.map(plainPath), ...resourcesOf(action)];
    const unexpected = named.filter((resource) => !this.#resources.has(resource));
    return departureOf("resource", unexpected, more, "is not among the expected resources");
  }

  #checkDomains(action: ActionEnvelope): Departure | undefined {
    if (readingCapabilities.has(action.capability) || this.#domains.isAnywhere) return undefined;
    const { hosts, paths, more } = factsOf(action);
    const unexpected = [
      ...hosts.filter((host) => !this.#domains.hasHost(host)),
      ...paths.filter((path) => !this.#domains.hasPath(path)),
    ];
    return departureOf("write_domain", unexpected, more, `is outside the write domains, for ${action.capability}`);
  }

  #checkHosts(action: ActionEnvelope): Departure | undefined {
    const expected = this.#hosts;
    if (expected === null) return undefined;
    const { hosts, more } = factsOf(action);
    const unexpected = hosts.filter((host) => !expected.has(host.toLowerCase()));
    return departureOf("host", unexpected, more, "is not among the expected hosts");
  }

  /** Addresses are known where the operator stated which arguments hold them. */
  #checkAddresses({ facts }: ActionEnvelope): Departure | undefined {
    const expected = this.#addresses;
    if (expected === null || facts?.address === undefined) return undefined;
    const unexpected = facts.address.filter(({ plain, odd }) => odd || !expected.has(plain.toLowerCase()));
    const texts = unexpected.map(({ plain }) => plain);
    return departureOf("address", texts, false, "is not among the expected addresses");
  }

  #checkValues({ tool, target, arguments: args }: ActionEnvelope): Departure | undefined {
    for (const { tool: named, place, expected } of this.#values) {
      if (named !== tool && named !== `${target}/${tool}`) continue;
      const { values, isCut } = valuesAt(args, place);
      const unexpected = values.flatMap((value) => (Array.isArray(value) ? value : [value])).map(textOf);
      const others = unexpected.filter((text) => text === null || !expected.has(text));
      const fault = `is not an expected value of ${quote(place)}`;
      const found = departureOf(
        "argument",
        others.map((text) => text ?? "a value that is no text"),
        isCut,
        fault,
      );
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

/** The values that one argument of a tool may have. */
interface ValuePattern {
  readonly tool: string;
  readonly place: string;
  readonly expected: PatternList;
}

function compileValues(tools: NonNullable<TaskManifest["arguments"]>): readonly ValuePattern[] {
  return Object.entries(tools).flatMap(([tool, places]) =>
    Object.entries(places).map(([place, globs]) => ({ tool, place, expected: new PatternList(globs) })),
  );
}

/** Everything that a manifest names: values, and globs of them without letter case. */
interface NamedPatterns {
  readonly values: ReadonlySet<string>;
  readonly texts: PatternList;
  readonly domains: WriteDomains;
}

function compileNamed({ write_domains: domains, arguments: tools = {}, ...lists }: TaskManifest): NamedPatterns {
  const values = Object.values(tools).flatMap((places) => Object.values(places).flat());
  const { expected_hosts: hosts = [], expected_addresses: addresses = [], expected_resources: resources } = lists;
  const named = [...values, ...hosts, ...addresses, ...resources].filter((glob) => /[^*?]/.test(glob));
  const found = new Set<NamedValue>();
  for (const glob of [...named, ...domains]) findNamedValues(glob, found);
  return {
    values: new Set(Array.from(found, (value) => value.slice(value.indexOf(":") + 1))),
    texts: new PatternList(named.map((glob) => glob.replace(/^[@#]|^[a-z]+:\/\//i, "").toLowerCase())),
    domains: new WriteDomains(domains.filter((glob) => /[^*?]/.test(glob))),
  };
}

/** Returns the text that globs are compared with; null for an object or a list. */
function textOf(value: Json): string | null {
  return typeof value === "object" && value !== null ? null : String(value);
}

function lowerCase(globs: readonly string[] | undefined): PatternList | null {
  return globs === undefined ? null : new PatternList(globs.map((glob) => glob.toLowerCase()));
}

/** `more`: facts were truncated, which is a departure too, because the rest is not known. */
function departureOf(
  kind: DriftKind,
  unexpected: readonly string[],
  more: boolean,
  fault: string,
): Departure | undefined {
  if (unexpected.length > 0) return { kind, text: `${unexpected.slice(0, maxQuoted).map(quote).join(", ")} ${fault}` };
  return more ? { kind, text: `the arguments name more places than are examined; some of it ${fault}` } : undefined;
}

/** Adds the paths among the words of texts that begin like a path: such a text may be a command. */
function factsOf({ facts }: ActionEnvelope): ActionPlaces {
  if (facts === undefined) throw new TypeError("findDepartures: expected an action with its facts");
  const search = newPlaceSearch();
  for (const path of facts.paths) for (const word of path.split(wordSeparators).slice(1)) searchPaths(search, word);
  const { items, more } = foundPaths(search);
  return items.length === 0 ? facts : { ...facts, paths: [...facts.paths, ...items], more: facts.more || more };
}

/** Returns whether a method reads a resource or a prompt; the name of a tool has no `/`. */
function isResourceMethod(tool: string): boolean {
  return /^(?:resources|prompts|completion)\//.test(tool);
}

/** The resource or prompt of such a method: a URI as it is spelt, and as a URL parser normalizes it. */
function resourcesOf({ tool, arguments: params }: ActionEnvelope): readonly string[] {
  if (!isResourceMethod(tool) || !isJsonObject(params)) return [];
  const { uri, name } = isJsonObject(params.ref) ? params.ref : params;
  if (typeof uri === "string") return [uri, parsedUrl(uri)?.href ?? uri];
  return [`prompt:${String(name)}`];
}

function quote(text: string): string {
  return `\`${text.length > 256 ? `${text.slice(0, 256).toWellFormed()}…` : text}\``;
}

function allowsAnything(patterns: readonly string[]): boolean {
  return patterns.includes("*");
}

/**
 * Normalizes a path: `/` between its parts, `..` resolved, no `/` at its end. A path that leaves its start still begins
 * with `..`; a share of another machine with `//`.
 */
export function plainPath(path: string): string {
  const slashed = path.replaceAll("\\", "/");
  const plain = posix.normalize(slashed);
  const ended = plain.length > 1 && plain.endsWith("/") ? plain.slice(0, -1) : plain;
  return slashed.startsWith("//") ? `/${ended}` : ended;
}

class PatternList {
  readonly #globs: readonly Glob[];

  constructor(patterns: readonly string[]) {
    this.#globs = patterns.map(compileGlob);
  }

  has(text: string): boolean {
    return this.#globs.some((glob) => glob.test(text));
  }
}

/** The hosts and paths that actions may change or send to. A pattern matches hosts or paths, never both. */
export class WriteDomains {
  readonly #any: boolean;
  readonly #hosts: PatternList;
  readonly #paths: PatternList;
  readonly #roots: readonly string[];

  constructor(patterns: readonly string[]) {
    this.#any = allowsAnything(patterns);
    const paths = patterns.filter(isPath);
    this.#hosts = new PatternList(patterns.filter((pattern) => !isPath(pattern)).map((host) => host.toLowerCase()));
    this.#paths = new PatternList(paths.filter((path) => path.includes("*")));
    this.#roots = paths.filter((path) => !path.includes("*")).map(plainPath);
  }

  /** Returns whether every place is allowed. */
  get isAnywhere(): boolean {
    return this.#any;
  }

  /** `host`: as in a URL, with its port where one is written. */
  hasHost(host: string): boolean {
    return this.#any || this.#hosts.has(host);
  }

  hasPath(path: string): boolean {
    const plain = plainPath(path);
    return this.#any || this.#paths.has(plain) || this.#roots.some((root) => isBelow(plain, root));
  }
}

function isPath(pattern: string): boolean {
  return /^(?:[/\\~]|[A-Za-z]:[\\/])/.test(pattern);
}

function isBelow(path: string, root: string): boolean {
  return path === root || path.startsWith(root === "/" ? root : `${root}/`);
}

/** A manifest in force, and who declared it. */
export interface Declaration {
  readonly manifest: TaskManifest;
  readonly digest: string;
  readonly plan: Plan;
  /** The principal who declared it. */
  readonly by: string;
  /** RFC 3339, milliseconds, UTC. */
  readonly at: string;
}

/** A declaration as the store keeps it, and as the admin API returns it with its tenant. */
export interface DeclarationView extends TaskManifest {
  readonly digest: string;
  readonly declared_by: string;
  readonly declared_at: string;
}

export function declare(manifest: TaskManifest, by: string, at: string): Declaration {
  return { manifest, digest: manifestDigest(manifest), plan: new Plan(manifest), by, at };
}

export function viewOf({ manifest, digest, by, at }: Declaration): DeclarationView {
  return { ...manifest, digest, declared_by: by, declared_at: at };
}

export function manifestRange(tenant: string): ReturnType<typeof rangeOf> {
  return rangeOf(`${tenantPrefix(tenant)}manifest/`);
}

export function manifestKey(tenant: string, task: string): string {
  return `${tenantPrefix(tenant)}manifest/${encodeURIComponent(task)}`;
}

export function writeDeclaration(declaration: Declaration): string {
  return JSON.stringify(viewOf(declaration));
}

/** Parses an entry. Throws STATE_UNUSABLE for a damaged one: the limits of its sessions are unknown then. */
export function readDeclaration(key: string, text: string): Declaration {
  try {
    const { digest, declared_by: by, declared_at: at, ...manifest } = membersOf(JSON.parse(text) as Json);
    const declaration = declare(readTaskManifest(manifest), String(by), String(at));
    if (declaration.digest === digest) return declaration;
  } catch (cause) {
    throw damaged(key, cause);
  }
  throw damaged(key);
}

function membersOf(value: Json): JsonObject {
  if (isJsonObject(value)) return value;
  throw new TypeError("expected an object");
}

function damaged(key: string, cause?: unknown): GatewayError {
  const task = decodeURIComponent(lastPart(key));
  return new GatewayError("STATE_UNUSABLE", `the entry of manifest \`${task}\` is damaged`, { cause });
}
