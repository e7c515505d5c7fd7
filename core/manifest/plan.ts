import { posix } from "node:path";
import type { ActionEnvelope, Capability } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import { PathFinder } from "../action/fact.ts";
import { compileGlob, type Glob } from "../action/glob.ts";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import type { ActionFacts } from "../action/session-state.ts";
import { lastPart, rangeOf, tenantPrefix } from "../store/key-range.ts";
import { manifestDigest, readTaskManifest, type TaskManifest } from "./task-manifest.ts";

/** What an action departs from its task's manifest in. */
const driftKinds = ["tool", "resource", "write_domain", "actions", "expired"] as const;
export type DriftKind = (typeof driftKinds)[number];

/** One departure, and in words what departs. */
export interface Departure {
  readonly kind: DriftKind;
  readonly text: string;
}

/** What only looks, or only speaks, changes nothing anywhere. */
const harmless: ReadonlySet<Capability> = new Set(["read", "generate"]);
/** What parts the words of a command. */
const betweenWords = /[\s"'`<>|;&(){}=,@]+/;
/** Of one action, so many places are named. */
const maxNamed = 3;

/** A manifest, ready to compare actions with. */
class Plan {
  readonly #manifest: TaskManifest;
  readonly #expiresAt: number;
  readonly #tools: Places;
  readonly #resources: Places;
  readonly #anyResource: boolean;
  readonly #domains: WriteDomains;

  constructor(manifest: TaskManifest) {
    this.#manifest = manifest;
    this.#expiresAt = Date.parse(manifest.expires_at);
    this.#tools = new Places(manifest.expected_tools);
    this.#resources = new Places(manifest.expected_resources);
    this.#anyResource = allowsAnything(manifest.expected_resources);
    this.#domains = new WriteDomains(manifest.write_domains);
  }

  /** What the action departs in, at a time (milliseconds since 1970). Throws TypeError for one without its session's past. */
  departures(action: ActionEnvelope, now: number): readonly Departure[] {
    const found = [this.#expired(now), this.#overdone(action)];
    if (action.protocol !== "model")
      found.push(this.#strangeTool(action), this.#resource(action), this.#domain(action));
    return found.filter((departure) => departure !== undefined);
  }

  #expired(now: number): Departure | undefined {
    if (now < this.#expiresAt) return undefined;
    return { kind: "expired", text: `the manifest ended at ${this.#manifest.expires_at}` };
  }

  #overdone({ session_state: state }: ActionEnvelope): Departure | undefined {
    if (state === undefined) throw new TypeError("departures: expected an action with its session's state");
    const { max_actions: most } = this.#manifest;
    if (state.actions < most) return undefined;
    return { kind: "actions", text: `the session has had its ${most} actions` };
  }

  #strangeTool({ target, tool }: ActionEnvelope): Departure | undefined {
    const name = `${target}/${tool}`;
    if (isResourceMethod(tool) || this.#tools.has(name)) return undefined;
    return { kind: "tool", text: `${quote(name)} is not among the expected tools` };
  }

  #resource(action: ActionEnvelope): Departure | undefined {
    if (this.#anyResource) return undefined;
    const { paths, more } = isResourceMethod(action.tool) ? { paths: [], more: false } : factsOf(action);
    const asked = [...paths.map(plainPath), ...resourcesOf(action)];
    const strange = asked.filter((resource) => !this.#resources.has(resource));
    return departureOf("resource", strange, more, "is not among the expected resources");
  }

  #domain(action: ActionEnvelope): Departure | undefined {
    if (harmless.has(action.capability) || this.#domains.isAnywhere) return undefined;
    const { hosts, paths, more } = factsOf(action);
    const strange = [
      ...hosts.filter((host) => !this.#domains.hasHost(host)),
      ...paths.filter((path) => !this.#domains.hasPath(path)),
    ];
    return departureOf("write_domain", strange, more, `is outside the write domains, for ${action.capability}`);
  }
}

/** What was not told of is a departure too: nobody knows what it is. */
function departureOf(kind: DriftKind, strange: readonly string[], more: boolean, what: string): Departure | undefined {
  if (strange.length > 0) return { kind, text: `${strange.slice(0, maxNamed).map(quote).join(", ")} ${what}` };
  return more ? { kind, text: `not all that the arguments name is known; some of it ${what}` } : undefined;
}

/** A text that begins like a path counts as one, blanks and all; where it is a command, its words are others. */
function factsOf({ facts }: ActionEnvelope): ActionFacts {
  if (facts === undefined) throw new TypeError("departures: expected an action with its facts");
  const finder = new PathFinder();
  for (const path of facts.paths) for (const word of path.split(betweenWords).slice(1)) finder.look(word);
  const { items, more } = finder.facts();
  return items.length === 0 ? facts : { ...facts, paths: [...facts.paths, ...items], more: facts.more || more };
}

/** Methods that ask for a resource or a prompt; a tool's name has no `/`. */
function isResourceMethod(tool: string): boolean {
  return /^(?:resources|prompts|completion)\//.test(tool);
}

/** What such a method asks for: a URI as it is spelt, and as a client of it would read it. */
function resourcesOf({ tool, arguments: params }: ActionEnvelope): readonly string[] {
  if (!isResourceMethod(tool) || !isJsonObject(params)) return [];
  const { uri, name } = isJsonObject(params.ref) ? params.ref : params;
  if (typeof uri === "string") return URL.canParse(uri) ? [uri, new URL(uri).href] : [uri];
  return [`prompt:${String(name)}`];
}

function quote(text: string): string {
  return `\`${text.length > 256 ? `${text.slice(0, 256).toWellFormed()}…` : text}\``;
}

/** Whether any of the patterns is a way to say: whatever it is. */
function allowsAnything(patterns: readonly string[]): boolean {
  return patterns.includes("*");
}

/**
 * A path in its one spelling: `/` between its parts, nothing that climbs inside it, no `/` at its end. What climbs out of
 * where it begins still begins with `..`; a share of another machine with `//`.
 */
export function plainPath(path: string): string {
  const slashed = path.replaceAll("\\", "/");
  const plain = posix.normalize(slashed);
  const ended = plain.length > 1 && plain.endsWith("/") ? plain.slice(0, -1) : plain;
  return slashed.startsWith("//") ? `/${ended}` : ended;
}

/** The places that a list of patterns names: what a text must be in to be expected. */
class Places {
  readonly #globs: readonly Glob[];

  constructor(patterns: readonly string[]) {
    this.#globs = patterns.map(compileGlob);
  }

  has(text: string): boolean {
    return this.#globs.some((glob) => glob.test(text));
  }
}

/** Where something may be changed or sent to: hosts, and what lies below paths. Neither kind of pattern speaks of the other. */
export class WriteDomains {
  readonly #any: boolean;
  readonly #hosts: Places;
  readonly #paths: Places;
  readonly #roots: readonly string[];

  constructor(patterns: readonly string[]) {
    this.#any = allowsAnything(patterns);
    const paths = patterns.filter(isPath);
    this.#hosts = new Places(patterns.filter((pattern) => !isPath(pattern)).map((host) => host.toLowerCase()));
    this.#paths = new Places(paths.filter((path) => path.includes("*")));
    this.#roots = paths.filter((path) => !path.includes("*")).map(plainPath);
  }

  /** Whether it is not asked where. */
  get isAnywhere(): boolean {
    return this.#any;
  }

  /** `host`: as a URL names it, with its port where one is written. */
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

/** As the store keeps it, and as the admin port tells it beside its tenant. */
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

/** The prefix of all manifests of a tenant. */
export function manifestRange(tenant: string): ReturnType<typeof rangeOf> {
  return rangeOf(`${tenantPrefix(tenant)}manifest/`);
}

export function manifestKey(tenant: string, task: string): string {
  return `${tenantPrefix(tenant)}manifest/${encodeURIComponent(task)}`;
}

export function writeDeclaration(declaration: Declaration): string {
  return JSON.stringify(viewOf(declaration));
}

/** Throws STATE_UNUSABLE for an entry that no gateway wrote: nobody knows then what its task's sessions may do. */
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
