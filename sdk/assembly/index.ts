export { Action } from "./action";
export { base64End, decodeBase64 } from "./base64";
export { decode } from "./decode";
export { Severity } from "./finding";
export { definePlugin, evaluate, Judge } from "./plugin";
export { Reader, Token } from "./reader";
export {
  byteAt,
  hasPrefix,
  hasWord,
  isAlphanumeric,
  isDigit,
  isUpperOrDigit,
  isWord,
  isWordByte,
  lower,
  Span,
  textBetween,
} from "./span";
export { Unescaped } from "./unescape";
export { Value } from "./value";
export { abstain, allow, block, review, Verdict } from "./verdict";
