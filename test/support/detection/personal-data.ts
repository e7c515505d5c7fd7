import { cpf, iban, luhn, mrz, nie, nir, resident } from "./check-digit.ts";
import { SeededRandom } from "./random.ts";

/** Personal data of nobody: drawn by chance, of domains and ranges that are kept for examples where there are such. */
export interface Datum {
  /** The rule that is to find it. */
  readonly kind: PersonalKind;
  readonly text: string;
}

export const personalKinds = ["email", "phone", "card", "iban", "us-ssn", "national-id", "ip-address"] as const;
export type PersonalKind = (typeof personalKinds)[number];

const perKind = 60;

/** So many of each kind, the same in every run. */
export function personalData(): readonly Datum[] {
  const random = new SeededRandom(20_260_101);
  return personalKinds.flatMap((kind) =>
    Array.from({ length: perKind }, (_, index) => {
      const forms = makers[kind];
      return { kind, text: (forms[index % forms.length] as Maker)(random) };
    }),
  );
}

type Maker = (random: SeededRandom) => string;

const names = [
  "ada",
  "ben.okafor",
  "carol_w",
  "d-nguyen",
  "eve+news",
  "josé",
  "łukasz",
  "x1",
  "o'neil",
  "info",
] as const;
const domains = ["example.com", "mail.example.org", "example.co.uk", "bücher.example", "sub.dom.example.net"] as const;
const mobile = (random: SeededRandom): string => random.digits(3);

const makers: Readonly<Record<PersonalKind, readonly Maker[]>> = {
  email: [
    (random) => `${random.pick(names.slice(0, 8))}@${random.pick(domains)}`,
    (random) => `${random.pick(names.slice(0, 5))}${random.digits(2)}@${random.pick(domains).toUpperCase()}`,
  ],
  phone: [
    (random) => `+1 ${random.between(201, 989)}-555-01${random.digits(2)}`,
    (random) => `(${random.between(212, 989)}) 555-01${random.digits(2)}`,
    (random) => `${random.between(212, 989)}.555.01${random.digits(2)}`,
    (random) => `+44 20 7946 0${mobile(random)}`,
    (random) => `020 7946 0${mobile(random)}`,
    (random) => `07700 900${mobile(random)}`,
    (random) => `+49 (0)30 23125 ${mobile(random)}`,
    (random) => `030 23125${mobile(random)}`,
    (random) => `01 99 00 ${random.digits(2)} ${random.digits(2)}`,
    (random) => `+33199001${mobile(random)}`,
    (random) => `0049 89 9${random.digits(6)}`,
    (random) => `phone: ${random.between(212, 989)}55501${random.digits(2)}`,
    (random) => `+86 138 ${random.digits(4)} ${random.digits(4)}`,
    (random) => `03-${random.digits(4)}-${random.digits(4)}`,
    (random) => `+61 2 5550 ${random.digits(4)}`,
  ],
  card: [
    (random) => luhn(`4${random.digits(14)}`),
    (random) => grouped(luhn(`5${random.between(1, 5)}${random.digits(13)}`), [4, 4, 4, 4], " "),
    (random) => grouped(luhn(`3${random.pick([4, 7])}${random.digits(12)}`), [4, 6, 5], "-"),
    (random) => grouped(luhn(`6011${random.digits(11)}`), [4, 4, 4, 4], "-"),
    (random) => luhn(`35${random.between(28, 89)}${random.digits(11)}`),
    (random) => luhn(`36${random.digits(11)}`),
  ],
  iban: [
    (random) => iban("DE", random.digits(18)),
    (random) => inFours(iban("GB", `${random.letters(4, "ABCDEFGHKLMNPRSTW")}${random.digits(14)}`)),
    (random) => iban("FR", random.digits(23)),
    (random) => inFours(iban("NL", `${random.letters(4, "ABGINRO")}${random.digits(10)}`)),
    (random) => inFours(iban("CH", random.digits(17))),
  ],
  "us-ssn": [
    (random) => `${random.between(100, 665)}-${random.between(10, 99)}-${random.between(1_000, 9_999)}`,
    (random) => `${random.between(100, 665)} ${random.between(10, 99)} ${random.between(1_000, 9_999)}`,
    (random) => `SSN ${random.between(100, 665)}${random.between(10, 99)}${random.between(1_000, 9_999)}`,
  ],
  "national-id": [
    (random) => nie(random.digits(8)),
    (random) => nie(`X${random.digits(7)}`),
    (random) => cpf(random.digits(9)),
    (random) =>
      resident(`1101051${random.between(950, 999)}${twoOf(random, 12)}${twoOf(random, 28)}${random.digits(3)}`),
    (random) => nir(`1${random.digits(2)}${twoOf(random, 12)}${random.digits(8)}`),
    (random) => mrz(`${random.letters(2, "CLTVX")}${random.digits(7)}`, `${random.digits(2)}0812`, "F", "310415"),
  ],
  "ip-address": [
    (random) => `203.0.113.${random.below(256)}`,
    (random) => `198.51.100.${random.below(256)}`,
    (random) => `2001:db8::${random.between(1, 9_999).toString(16)}`,
    (random) => `2001:db8:${random.letters(4, "0123456789abcdef")}:0:0:8a2e:370:7334`,
  ],
};

/** Personal data as some write it, by how; the same in every run. */
export function unusualData(): ReadonlyMap<string, readonly string[]> {
  const random = new SeededRandom(99);
  return new Map(
    Object.entries(unusual).map(([name, make]) => [name, Array.from({ length: perKind }, () => make(random))]),
  );
}

const fullWidth = (digits: string): string =>
  digits.replace(/\d/g, (digit) => String.fromCharCode(0xff10 + Number(digit)));

const unusual: Readonly<Record<string, Maker>> = {
  "an address in a URL, with %40": (random) => `https://a.example/?u=${random.pick(names.slice(0, 4))}%40example.com`,
  "an address in words": (random) => `${random.pick(names.slice(0, 4))} at example dot com`,
  "a telephone number without marks or words": (random) => `${random.between(212, 989)}55501${random.digits(2)}`,
  "a telephone number of eight digits": (random) => `32 12 ${random.digits(2)} ${random.digits(2)}`,
  "a card number with slashes": (random) => grouped(luhn(`4${random.digits(14)}`), [4, 4, 4, 4], "/"),
  "a card number in full-width digits": (random) => fullWidth(luhn(`4${random.digits(14)}`)),
  "an IBAN in lower case": (random) => iban("DE", random.digits(18)).toLowerCase(),
  "a social security number without marks": (random) => `${random.between(100, 665)}12${random.between(1_000, 9_999)}`,
  "a name and a street": (random) => `Ada Sample, Example Street ${random.between(1, 99)}`,
};

function twoOf(random: SeededRandom, most: number): string {
  return String(random.between(1, most)).padStart(2, "0");
}

function inFours(text: string): string {
  return (text.match(/.{1,4}/g) ?? []).join(" ");
}

function grouped(digits: string, sizes: readonly number[], mark: string): string {
  const ends = sizes.map((_, index) => sizes.slice(0, index + 1).reduce((sum, size) => sum + size, 0));
  return ends.map((end, index) => digits.slice(end - (sizes[index] ?? 0), end)).join(mark);
}
