import { createHash } from "node:crypto";
import { luhn } from "./check-digit.ts";
import { SeededRandom } from "./random.ts";

const perKind = 100;

/** What looks like personal data and is none, by what it is; the same in every run. */
export function harmlessTexts(): ReadonlyMap<string, readonly string[]> {
  const random = new SeededRandom(7);
  return new Map(
    Object.entries(makers).map(([name, make]) => [name, Array.from({ length: perKind }, () => make(random))]),
  );
}

const hex = "0123456789abcdef";
const hash = (random: SeededRandom, kind: string): string => createHash(kind).update(random.digits(9)).digest("hex");
const two = (random: SeededRandom, most: number): string => String(random.between(1, most)).padStart(2, "0");
const date = (random: SeededRandom): string => `20${two(random, 30)}-${two(random, 12)}-${two(random, 28)}`;
const clock = (random: SeededRandom): string => `${two(random, 23)}:${two(random, 59)}:${two(random, 59)}`;

const makers: Readonly<Record<string, (random: SeededRandom) => string>> = {
  UUIDs: (random) => hash(random, "md5").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5"),
  "hashes and keys": (random) => `${hash(random, random.pick(["sha1", "sha256", "md5"]))}`,
  "dates and times": (random) =>
    `${date(random)}T${clock(random)}.${random.digits(3)}Z, ${date(random)} ${clock(random)} +0${random.below(10)}00`,
  "Unix times": (random) => `${random.between(1_600_000_000, 1_800_000_000)} ${random.between(16e11, 18e11)}`,
  versions: (random) => `v${random.below(20)}.${random.below(99)}.${random.below(9)}-rc.${random.below(9)}`,
  packages: (random) => `@scope/pkg@${random.below(9)}.${random.below(30)}.${random.below(9)} lib@latest icon@2x.png`,
  "amounts of money": (random) => `EUR ${random.between(1, 999)},${random.digits(3)}.${random.digits(2)}`,
  coordinates: (random) => `52.${random.digits(random.between(4, 15))}, -13.${random.digits(random.between(4, 15))}`,
  "order numbers": (random) => `ORD-${random.between(2_000, 2_030)}-${random.digits(6)} / INV${random.digits(8)}`,
  "ISBN and EAN": (random) => `978-${random.below(10)}-${random.digits(3)}-${random.digits(5)}-${random.below(10)}`,
  "sizes and ranges": (random) => `bytes ${random.digits(5)}-${random.digits(6)}/${random.digits(7)}`,
  "MAC addresses": (random) => Array.from({ length: 6 }, () => random.letters(2, hex)).join(":"),
  "rows of numbers": (random) => Array.from({ length: 8 }, () => random.between(0, 9_999)).join(" "),
  "CSV of numbers": (random) => Array.from({ length: 8 }, () => random.between(0, 999_999)).join(","),
  "cards with a wrong digit": (random) =>
    luhn(`4${random.digits(14)}`).replace(/.$/, (d) => String((Number(d) + 1) % 10)),
  "sixteen digits": (random) => `${random.between(1, 9)}${random.digits(15)}`,
  "ten digits": (random) => `${random.between(1, 9)}${random.digits(9)}`,
  "numbers never issued": (random) => `000-${random.digits(2)}-${random.digits(4)} 9${random.digits(2)}-12-3456`,
  "random base64": (random) => Buffer.from(hash(random, "sha256"), "hex").toString("base64"),
  "mentions and code": (random) =>
    `thanks @user${random.digits(3)}: @Component({ id: ${random.digits(4)} }) git@host.example:a/b`,
};
