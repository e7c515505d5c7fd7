import type { Json } from "../../../core/kernel/json.ts";
import { makeAction } from "../action.ts";
import type { ImmediatePolicy } from "../plugin-port.ts";
import { harmlessTexts } from "./harmless.ts";
import type { Share } from "./measure-personal.ts";
import { SeededRandom } from "./random.ts";

const perKind = 40;
const word = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** Credentials of nothing, by the rule that is to find each; put together so that no scanner takes this file for one. */
const makers: Readonly<Record<string, (random: SeededRandom) => string>> = {
  "aws-access-key": (random) => `${random.pick(["AKIA", "ASIA"])}${random.letters(16, upper)}`,
  "github-token": (random) => `${random.pick(["ghp", "gho", "ghs"])}_${random.letters(36, word)}`,
  "slack-token": (random) => `${random.pick(["xoxb", "xoxp"])}-${random.digits(12)}-${random.letters(24, word)}`,
  "private-key": (random) =>
    `-----BEGIN ${random.pick(["RSA ", "OPENSSH ", "EC ", ""])}PRIVATE KEY-----\n${random.letters(60, word)}`,
  "json-web-token": (random) => `${token(random, 24)}.${token(random, 40)}.${random.letters(43, word)}`,
  "keyword-value": (random) =>
    `${random.pick(["DB_PASSWORD=", "api_key: ", '"client_secret": "', "access_key="])}${random.letters(24, word)}9z7`,
};

/** How an argument holds one. */
const holders: readonly (readonly [name: string, hold: (text: string) => Json])[] = [
  ["a sentence", (text) => ({ body: `use ${text} for it` })],
  ["a line of a file", (text) => ({ content: `first\n${text}\nlast` })],
  ["a value in a list", (text) => ({ rows: [["a", text]] })],
  ["JSON in a text", (text) => ({ body: JSON.stringify({ note: text }) })],
  ["the name of a member", (text) => ({ [text]: true })],
  ["base64", (text) => ({ body: Buffer.from(`${text} `).toString("base64") })],
  ["two texts, half in each", (text) => ({ a: text.slice(0, text.length / 2), b: text.slice(text.length / 2) })],
];

export interface CredentialMeasure {
  readonly byKind: readonly Share[];
  readonly byHolder: readonly Share[];
  readonly harmed: readonly Share[];
}

/** Of credentials in arguments, how many are found; and in how many harmless texts something is. */
export function measureCredentials(plugin: ImmediatePolicy): CredentialMeasure {
  const random = new SeededRandom(11);
  const credentials = Object.entries(makers).flatMap(([kind, make]) =>
    Array.from({ length: perKind }, () => ({ kind, text: make(random) })),
  );
  const runs = credentials.flatMap(({ kind, text }) =>
    holders.map(([holder, hold]) => ({ kind, holder, found: isFound(plugin, hold(text)) })),
  );
  const share = (name: string, some: typeof runs): Share => {
    return { name, count: some.filter(({ found }) => found).length, of: some.length };
  };
  return {
    byKind: Object.keys(makers).map((kind) => {
      return share(
        kind,
        runs.filter((run) => run.kind === kind && run.holder === holders[0]?.[0]),
      );
    }),
    byHolder: holders.map(([name]) =>
      share(
        name,
        runs.filter(({ holder }) => holder === name),
      ),
    ),
    harmed: Array.from(harmlessTexts(), ([name, texts]) => {
      return { name, count: texts.filter((text) => isFound(plugin, { text })).length, of: texts.length };
    }),
  };
}

function isFound(plugin: ImmediatePolicy, value: Json): boolean {
  return plugin.evaluate(makeAction({ arguments: value })).decision !== "abstain";
}

function token(random: SeededRandom, length: number): string {
  return `eyJ${random.letters(length, word)}`;
}
