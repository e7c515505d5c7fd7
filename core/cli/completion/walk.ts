import { everyCommand, type ShapeCommand, type Value } from "./shape.ts";

/** A word that is offered, and what it does. */
export type Offer = readonly [word: string, description: string];

/** What the words before the cursor lead to. The subject of each row is what a script compares. */
export interface Walk {
  /** `<path> <word>`, and the path of the command below. */
  readonly steps: readonly (readonly [subject: string, path: string])[];
  /** `<path> <flag>`, and what its value is: the words there are, or `@file`, `@folder`, `@text`. */
  readonly taking: readonly (readonly [subject: string, value: string])[];
  /** `<path> <position>`, and what stands there: the same, or `@command`. */
  readonly places: readonly (readonly [subject: string, value: string])[];
  /** A path, and the commands below it. */
  readonly commands: readonly (readonly [path: string, offers: readonly Offer[]])[];
  /** A path, and its options. */
  readonly flags: readonly (readonly [path: string, offers: readonly Offer[]])[];
}

export function walkOf(program: ShapeCommand): Walk {
  const all = everyCommand(program);
  const holders = all.filter(({ commands }) => commands.length > 0);
  return {
    steps: holders.flatMap(({ commands }) => commands.map(({ path }) => [path, path] as const)),
    taking: all.flatMap(({ path, options }) =>
      options
        .filter(({ value }) => value.kind !== "none")
        .flatMap(({ flags, value }) => flags.map((flag) => [`${path} ${flag}`, tell(value)] as const)),
    ),
    places: all.flatMap(({ path, commands, values }) => {
      const told = commands.length > 0 ? ["@command"] : values.map(tell);
      return told.map((value, place) => [`${path} ${place}`, value] as const);
    }),
    commands: holders.map(({ path, commands }) => [path, commands.map(offerOf)]),
    flags: all.map(({ path, options }) => [
      path,
      options.flatMap(({ flags, description }) => flags.map((flag): Offer => [flag, description])),
    ]),
  };
}

/** No word begins with `@`. */
function tell(value: Value): string {
  return value.kind === "word" ? value.words.join(" ") : `@${value.kind}`;
}

function offerOf({ path, description }: ShapeCommand): Offer {
  return [path.slice(path.lastIndexOf(" ") + 1), description];
}
