import { isJsonObject } from "../action/json.ts";
import { visibleText } from "../action/visible-text.ts";
import type { ToolPlace, WithholdReason } from "./entry.ts";
import { findInstruction, textsIn } from "./instruction-text.ts";
import { mixesScripts, orderedName } from "./look-alike.ts";
import type { PublishedTool } from "./published-tool.ts";
import type { TenantDefinitions } from "./tenant-definitions.ts";

/** The facts that a definition is judged by, beside itself. */
export interface Surroundings {
  readonly known: TenantDefinitions;
  /** The upstreams of the names that clients call, as all upstreams list them now. */
  readonly listed: ReadonlyMap<string, string>;
  /** Pinned tools of its upstream that it no longer lists, and that this may be under another name. */
  readonly gone: readonly string[];
  /** True where each new tool of its upstream is to be reviewed. */
  readonly reviewsNewTools: boolean;
  /** Lets other work run. */
  readonly pause: () => Promise<void>;
}

/** Reasons to withhold a definition that is not the pinned one, and the pinned definition to compare it with. */
interface Judged {
  readonly reasons: readonly WithholdReason[];
  readonly comparedWith: ToolPlace | null;
}

/** Finds every reason to withhold a definition; none for a new one that is clean. */
export async function findReasons(tool: PublishedTool, around: Surroundings): Promise<Judged> {
  const place = { upstream: tool.upstream, tool: tool.name };
  const own = around.known.pin(place);
  const shadowed = find(around.known.named(tool.exposedName), (pin) => pin.upstream !== tool.upstream);
  const resembled = find(
    around.known.resembling(tool.exposedName),
    (pin) => pin.upstream !== tool.upstream && pin.exposed_name !== tool.exposedName,
  );
  const reasons: WithholdReason[] = [];
  if (own !== undefined)
    reasons.push({ finding: "changed", text: `the definition pinned at ${own.pinned_at} is another` });
  else reasons.push(...newcomerReasons(around));
  if (shadowed !== undefined)
    reasons.push({ finding: "shadowing", text: `the name is that of a tool of upstream \`${shadowed.upstream}\`` });
  reasons.push(...steeringReasons(tool, around));
  if (resembled !== undefined) {
    const text = `the name resembles \`${resembled.exposed_name}\` of upstream \`${resembled.upstream}\``;
    reasons.push({ finding: "look_alike", text });
  }
  reasons.push(...titleReasons(tool));
  const found = await findInstruction(tool.definition, around.pause);
  if (found !== undefined) {
    const text = `text that gives orders to a model (${found.sign}): ${visibleText(found.quote)}`;
    reasons.push({ finding: "instructions", text });
  }
  const [former] = around.gone;
  const renamed = former === undefined ? undefined : { upstream: place.upstream, tool: former };
  return { reasons, comparedWith: toPlace(own ?? renamed ?? shadowed ?? resembled) };
}

/** A tool that is new while one that resembles it is gone may be that one under another name, past its pin. */
function newcomerReasons({ gone, reviewsNewTools }: Surroundings): readonly WithholdReason[] {
  if (gone.length > 0) {
    const names = gone.slice(0, 3).map((name) => `\`${name}\``);
    const more = gone.length > names.length ? " and others" : "";
    return [
      {
        finding: "renamed",
        text: `it is new, and its upstream no longer lists what it resembles: ${names.join(", ")}${more}`,
      },
    ];
  }
  return reviewsNewTools ? [{ finding: "unreviewed", text: "the tool is new at its upstream" }] : [];
}

/** A text may steer how another upstream's tool is used. */
function steeringReasons(
  { upstream, definition }: PublishedTool,
  { known, listed }: Surroundings,
): readonly WithholdReason[] {
  const isForeign = (name: string): boolean => {
    const owner = listed.get(name) ?? find(known.named(name), () => true)?.upstream;
    return owner !== undefined && owner !== upstream;
  };
  for (const text of textsIn(definition)) {
    const name = orderedName(text, isForeign);
    if (name === undefined) continue;
    return [{ finding: "shadowing", text: `a text gives orders about \`${name}\`, a tool of another upstream` }];
  }
  return [];
}

function titleReasons({ definition: { title, annotations } }: PublishedTool): readonly WithholdReason[] {
  const titles = [title, isJsonObject(annotations) ? annotations.title : undefined];
  const mixed = titles.find((each) => typeof each === "string" && mixesScripts(each));
  return typeof mixed === "string" ? [{ finding: "look_alike", text: `the title is ${visibleText(mixed)}` }] : [];
}

function find<T>(items: Iterable<T>, isWanted: (item: T) => boolean): T | undefined {
  for (const item of items) if (isWanted(item)) return item;
  return undefined;
}

function toPlace(of: ToolPlace | undefined): ToolPlace | null {
  return of === undefined ? null : { upstream: of.upstream, tool: of.tool };
}
