import type { Capability } from "../kernel/capability.ts";
import type { ActionEnvelope } from "../kernel/envelope.ts";
import { isJsonObject } from "../kernel/json.ts";
import { PathFinder } from "../kernel/path-fact.ts";
import type { ActionFacts } from "../kernel/session-state.ts";
import type { TaskManifest } from "../kernel/task-manifest.ts";
import { allowsAnything, Places, plainPath, WriteDomains } from "./place.ts";

/** What an action departs from its task's manifest in. */
export const driftKinds = ["tool", "resource", "write_domain", "actions", "expired"] as const;
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
const mostNamed = 3;

/** A manifest, ready to compare actions with. */
export class Plan {
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
  if (strange.length > 0) return { kind, text: `${strange.slice(0, mostNamed).map(quote).join(", ")} ${what}` };
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
