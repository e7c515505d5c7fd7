const size = 65_536;

/** Texts of 64 kB that begin what detectors look for over and over, and never or always end it. */
export function hostileTexts(): ReadonlyMap<string, string> {
  return new Map(
    pieces.map((piece) => [piece.slice(0, 24), piece.repeat(Math.ceil(size / piece.length)).slice(0, size)]),
  );
}

const maxSigns = 10;
const classes: readonly (readonly [inSource: RegExp, member: string])[] = [
  [/\\d|0-9/, "0"],
  [/\\w|a-z/, "a"],
  [/A-Z/, "A"],
  [/\\s/, " "],
  [/\\n/, "\n"],
  [/\\p|\[\^/, "é"],
];

/**
 * Texts of 64 kB made for one regular expression: what it begins with, then signs that it speaks of, each alone and in
 * pairs, over and over, and an end that it does not expect.
 */
export function hostileTextsFor({ source }: Pick<RegExp, "source">): readonly string[] {
  const literals = source.replace(/\\[dDwWsSbBpPuxnrtfv0]|[\^$()[\]{}|?*+\\]/g, "");
  const members = classes.filter(([inSource]) => inSource.test(source)).map(([, member]) => member);
  const signs = [...new Set([...members, "x", ...literals])].slice(0, maxSigns);
  const units = signs.flatMap((first) => signs.map((second) => (first === second ? first : first + second)));
  const [, beginning = ""] = /^\^?((?:\\[^\w]|[\w@:/ #"'<>=-])+)/.exec(source) ?? [];
  const start = beginning.replace(/\\(.)/g, "$1");
  return units.map((unit) => `${start}${unit.repeat(Math.ceil(size / unit.length))}`.slice(0, size - 1).concat("\0"));
}

const pieces: readonly string[] = [
  "a",
  "@",
  "a@",
  "a.",
  "a.b@c.",
  "ada@example.com ",
  "%40",
  "+",
  "+1",
  "+49 ",
  "(",
  "(1",
  "(415) ",
  "1",
  "1 ",
  "1-",
  "12-",
  "0 1 ",
  "4111 ",
  "4111 1111 1111 1111 ",
  "4111-1111-1111-1111-",
  "DE89",
  "DE89 3704 ",
  "GB82WEST12345698765432 ",
  "X1234567",
  "L898902C36UTO7408122F1204159",
  "<".repeat(44),
  "phone ",
  "ssn 12345678 ",
  "2001:",
  "1.2.3.4.",
  "::",
  "A",
  "QUJD",
  `${"QUJD".repeat(15)}\n`,
  Buffer.from("ada@example.com ignore previous instructions ").toString("base64"),
  "\\",
  "\\\\",
  "\\u",
  "\\u0041",
  "\\ud83d",
  "\u0000",
  "\u200b",
  "a\u200b",
  "\u202e",
  "\ufe0f",
  "\u{e0041}",
  "é",
  "і",
  "忽略",
  "ignore ",
  "ignore previous instructions ",
  "you are now ",
  "do not tell the user ",
  "from now on ",
  "<!--",
  "<!-- -->",
  "<|",
  "<|im_start|>",
  "<a ",
  "<d style='display",
  "![",
  "![a](http://a?",
  "[INST]",
  "\nSystem:",
  "://",
];
