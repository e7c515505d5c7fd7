/** Writes a code point at a position and returns the position after it. An invalid one becomes U+FFFD. */
export function writeCode(at: i32, code: i32): i32 {
  if (code >= 0xd800 && code < 0xe000) return writeCode(at, 0xfffd);
  if (code < 0x80) {
    store<u8>(<usize>at, <u8>code);
    return at + 1;
  }
  const more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  const lead: i32 = (0xf0 << (3 - more)) | (code >> (6 * more));
  store<u8>(<usize>at, <u8>lead);
  for (let index = 1; index <= more; index++) {
    const next: i32 = 0x80 | ((code >> (6 * (more - index))) & 0x3f);
    store<u8>(<usize>(at + index), <u8>next);
  }
  return at + more + 1;
}
