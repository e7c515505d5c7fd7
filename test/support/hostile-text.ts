const size = 64_000;

/** Texts of 64 kB that begin what detectors look for over and over, and never or always end it. */
export function hostileTexts(): ReadonlyMap<string, string> {
  return new Map(
    pieces.map((piece) => [piece.slice(0, 24), piece.repeat(Math.ceil(size / piece.length)).slice(0, size)]),
  );
}

/** How long something takes where nothing else delays it: the least of some times. */
export function leastMilliseconds(run: () => unknown): number {
  const times = Array.from({ length: 4 }, () => {
    const started = performance.now();
    run();
    return performance.now() - started;
  });
  return Math.min(...times);
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
