import { type ActionFacts, capabilityEffect, type FactStatement, type SqlDialect } from "../action/action-fact.ts";
import type { ActionEnvelope, Protocol } from "../action/envelope.ts";
import { findPlaces } from "../action/fact.ts";
import type { GlobTable } from "../action/glob.ts";
import { type CallStatements, factsOfCalls, type StatedCall, statedCalls } from "./call-fact.ts";
import type { FactParsers, ParserLoaders, ParserName } from "./parser.ts";
import { joinPlaces, parsersFor, readStated, type StatedFacts } from "./stated-fact.ts";
import { pickStated, type StatedArguments } from "./stated-value.ts";

interface FactReaderOptions {
  /** The operator's statements about tools, by the name of the upstream. */
  readonly statements?: ReadonlyMap<string, GlobTable<FactStatement>>;
  readonly parsers?: ParserLoaders;
  /** The operator's word about the SQL of a direct action, by its tool and target. */
  readonly dialectOf?: (tool: string, target: string) => SqlDialect | undefined;
  /** The operator's statements about the tools that models ask for; undefined where there are none. */
  readonly calls?: CallStatements | undefined;
}

/** Finds what an action does, before any policy sees it. */
export class FactReader {
  readonly #statements: ReadonlyMap<string, GlobTable<FactStatement>>;
  readonly #loaders: ParserLoaders;
  readonly #dialectOf: FactReaderOptions["dialectOf"];
  readonly #calls: CallStatements | undefined;
  readonly #parsers: { -readonly [Name in ParserName]?: FactParsers[Name] } = {};

  constructor({ statements = new Map(), parsers = {}, dialectOf, calls }: FactReaderOptions = {}) {
    this.#statements = statements;
    this.#loaders = parsers;
    this.#dialectOf = dialectOf;
    this.#calls = calls;
  }

  /**
   * Returns the action with its facts; a model request, and a tool that is listed, without any, and the answer of a model with
   * those of the stated tool calls that it asks for. Neither throws nor rejects: what cannot be read has the effect `unknown`.
   * A promise only where a parser has to be loaded first. `given`: of its arguments, in place of the operator's.
   */
  describe(action: ActionEnvelope, given?: FactStatement): ActionEnvelope | Promise<ActionEnvelope> {
    const { protocol, phase, target, tool } = action;
    // Model requests reach no host or path themselves, and listed tools have no arguments.
    if (protocol === "model") return phase === "output" ? this.#describeCalls(action) : action;
    if (phase === "list") return action;
    // Methods, such as `resources/read`, are no tools.
    const ofTool = tool.includes("/") ? undefined : this.#statements.get(target)?.get(tool);
    const statement = given ?? (protocol === "mcp" ? ofTool : this.#directStatement(action));
    if (statement !== undefined) return this.#describeStated(action, pickStated(action.arguments, statement));
    return { ...action, facts: { ...findPlaces(action.arguments), effect: capabilityEffect[action.capability] } };
  }

  #directStatement({ protocol, target, tool }: ActionEnvelope): FactStatement | undefined {
    // INVARIANT: no agent states the dialect of its own statement: another reading of a text may be the harmless one.
    if (protocol === "sql") return { sql: "statement", dialect: this.#dialectOf?.(tool, target) ?? "every" };
    return directStatement(protocol);
  }

  #describeStated(action: ActionEnvelope, stated: StatedArguments): ActionEnvelope | Promise<ActionEnvelope> {
    return this.#withParsers([stated], () => withFacts(action, readStated(stated, this.#parsers)));
  }

  #describeCalls(action: ActionEnvelope): ActionEnvelope | Promise<ActionEnvelope> {
    const calls: readonly StatedCall[] = this.#calls === undefined ? [] : statedCalls(action, this.#calls);
    if (calls.length === 0) return action;
    const stated = calls.flatMap((call) => call.stated ?? []);
    return this.#withParsers(stated, () => ({ ...action, facts: factsOfCalls(calls, this.#parsers) }));
  }

  /** Describes once the parsers of the arguments are there, at once where they are. */
  #withParsers(
    stated: readonly StatedArguments[],
    describe: () => ActionEnvelope,
  ): ActionEnvelope | Promise<ActionEnvelope> {
    const missing = new Set(stated.flatMap(parsersFor).filter((name) => this.#parsers[name] === undefined));
    return missing.size === 0 ? describe() : this.#load([...missing]).then(describe);
  }

  /** Resolves once each of these parsers is there, or cannot be had. */
  async #load(names: readonly ParserName[]): Promise<void> {
    await Promise.all(names.map((name) => this.#loadOne(name)));
  }

  async #loadOne<Name extends ParserName>(name: Name): Promise<void> {
    try {
      const loaded = await this.#loaders[name]?.();
      if (loaded !== undefined) this.#parsers[name] = loaded;
    } catch {
      // Without it the effect is unknown; the next action tries again.
    }
  }
}

/** The statement that the arguments of a direct action carry by definition. */
function directStatement(protocol: Protocol): FactStatement | undefined {
  if (protocol === "shell") return { shell: "command" };
  if (protocol === "git") return { git: "args" };
  return protocol === "http" ? { url: ["url"] } : undefined;
}

function withFacts(action: ActionEnvelope, { kinds, places, effect }: StatedFacts): ActionEnvelope {
  const facts: ActionFacts = {
    ...joinPlaces([findPlaces(action.arguments), ...places]),
    effect: effect ?? capabilityEffect[action.capability],
    ...kinds,
  };
  return { ...action, facts };
}
