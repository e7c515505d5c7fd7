import { createHash } from "node:crypto";
import { SeededRandom } from "./random.ts";

const perKind = 100;

/** What looks like a credential, or speaks of one, and is none, by what it is; the same in every run. */
export function noCredentials(): ReadonlyMap<string, readonly string[]> {
  const random = new SeededRandom(13);
  return new Map(
    Object.entries(makers).map(([name, make]) => [name, Array.from({ length: perKind }, () => make(random))]),
  );
}

const letters = "abcdefghijklmnopqrstuvwxyz";
const vocabulary = "the password was sent to ada with a token for her secret garden api key vault and login form".split(
  " ",
);
const latin = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor".split(" ");

const words = (random: SeededRandom, from: readonly string[]): string =>
  Array.from({ length: random.between(20, 60) }, () => random.pick(from)).join(" ");
const digest = (random: SeededRandom, kind: string): Buffer => createHash(kind).update(random.digits(9)).digest();
const named = (random: SeededRandom): string =>
  random.pick(["password", "api_key", "token", "client_secret", "private_key"]);
const bytes = (random: SeededRandom, length: number): Buffer =>
  Buffer.from(Array.from({ length }, () => random.below(256)));
const uuid = (random: SeededRandom): string =>
  digest(random, "md5")
    .toString("hex")
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");

const makers: Readonly<Record<string, (random: SeededRandom) => string>> = {
  "commits of git": (random) => `commit ${digest(random, "sha1").toString("hex")}\nAuthor: Ada <ada@example.com>`,
  "digests of packages": (random) => `"integrity": "sha512-${digest(random, "sha512").toString("base64")}"`,
  "pictures in base64": (random) =>
    `data:image/png;base64,${Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), bytes(random, 600)]).toString("base64")}`,
  "texts in base64": (random) => Buffer.from(words(random, latin)).toString("base64"),
  "lorem ipsum": (random) => words(random, latin),
  "prose about passwords": (random) => `${named(random)}: ${words(random, vocabulary)}`,
  placeholders: (random) =>
    `${named(random)}=${random.pick(["<your-key-1234567890>", "xxxxxxxxxxxxxxxxxxxx", "********************", "changeme-changeme-changeme"])}`,
  "variables and templates": (random) =>
    `${named(random)}: ${random.pick([`\${SERVICE_KEY_${random.digits(4)}}`, `{{ vault.key_${random.digits(4)} }}`, `\${{ secrets.KEY_${random.digits(4)} }}`])}`,
  "code that handles tokens": (random) =>
    `const token = await ${random.letters(8, letters)}.readToken(request.headers, ${random.digits(4)});`,
  "names that say nothing secret": (random) =>
    `id=${random.letters(24, letters)}${random.digits(8)} key: ${uuid(random)}`,
  "public keys": (random) =>
    `-----BEGIN PUBLIC KEY-----\n${bytes(random, 44).toString("base64")}\n-----END PUBLIC KEY-----`,
  "UUIDs named token": (random) => `${random.pick(["csrf_token", "page_token", "token_id"])}=${uuid(random)}`,
  "digests named token": (random) => `token_digest: ${digest(random, "sha256").toString("hex")}`,
};
