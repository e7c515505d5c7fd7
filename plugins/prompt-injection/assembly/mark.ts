import { byteAt, hasPrefix, hasWord, isAlphanumeric } from "agent-governance-sdk/assembly";
import { hear } from "./score";
import { Signal } from "./signal";

const longestTag: i32 = 200;
const longestImage: i32 = 600;

/** Up to here a text is not shown to people: a comment, or what hidden markup holds. */
let unseenTo: i32 = 0;

export function beginMarks(): void {
  unseenTo = 0;
}

export function isUnseen(at: i32): bool {
  return at < unseenTo;
}

/** Looks at what begins with `<`. */
export function hearAngle(at: i32, to: i32): void {
  switch (at + 1 < to ? byteAt(at + 1) : 0) {
    case 0x21: // !
      if (at >= unseenTo && hasPrefix(at, to, "<!--")) unseenTo = commentEnd(at + 4, to);
      break;
    case 0x7c: // |
      hearToken(at, to);
      break;
    case 0x2f: // /
      hearTag(at + 2, to);
      break;
    case 0x3c: // <
      if (at + 3 < to && isAlphanumeric(byteAt(at + 3)) && isInstruction(at, to)) hear(Signal.roleMarker, 50);
      break;
    default:
      if (!hearTag(at + 1, to) && isHiddenTag(at, to)) unseenTo = max(unseenTo, min(to, at + 600));
  }
}

/** `<<SYS>>`, and how it ends. */
function isInstruction(at: i32, to: i32): bool {
  return hasWord(at, to, "<<sys>>") || hasWord(at, to, "<</sys>>");
}

function commentEnd(from: i32, to: i32): i32 {
  for (let at = from; at + 2 < to; at++) if (byteAt(at) === 0x2d && hasPrefix(at, to, "-->")) return at;
  return to;
}

/** `<|im_start|>` and its like. */
function hearToken(at: i32, to: i32): void {
  let end = at + 2;
  while (end < to && end - at < 32 && (isAlphanumeric(byteAt(end)) || byteAt(end) === 0x5f)) end++;
  if (end > at + 2 && hasPrefix(end, to, "|>")) hear(Signal.roleMarker, 50);
}

/** Tags that only a prompt has. */
function hearTag(name: i32, to: i32): bool {
  const weight = name < to ? weightOf(name, to) : 0;
  if (weight > 0) hear(Signal.roleMarker, weight);
  return weight > 0;
}

function weightOf(name: i32, to: i32): i32 {
  switch (byteAt(name) | 0x20) {
    case 0x73: // s
      if (isTagName(name, to, "system") || isTagName(name, to, "system_prompt")) return 35;
      return isTagName(name, to, "system-reminder") ? 40 : 0;
    case 0x74: // t
      return isTagName(name, to, "tool_result") || isTagName(name, to, "tool_response") ? 40 : 0;
    case 0x66: // f
      return isTagName(name, to, "function_results") ? 40 : 0;
    case 0x69: // i
      if (isTagName(name, to, "important")) return 30;
      return isTagName(name, to, "instructions") ? 20 : 0;
    case 0x61: // a
      return isTagName(name, to, "assistant") ? 20 : 0;
    default:
      return 0;
  }
}

function isTagName(at: i32, to: i32, name: string): bool {
  return hasWord(at, to, name) && at + name.length < to && byteAt(at + name.length) === 0x3e;
}

/** A tag whose style keeps what it holds from being seen. */
function isHiddenTag(at: i32, to: i32): bool {
  for (let place = at + 1; place < min(to, at + longestTag); place++) {
    const byte = byteAt(place);
    if (byte === 0x3c || byte === 0x3e) return false;
    if (byte === 0x64 && (hasPrefix(place, to, "display:none") || hasPrefix(place, to, "display: none"))) return true;
    if (byte === 0x66 && (hasPrefix(place, to, "font-size:0") || hasPrefix(place, to, "font-size: 0"))) return true;
    if (byte === 0x6f && (hasPrefix(place, to, "opacity:0;") || hasPrefix(place, to, "opacity: 0;"))) return true;
  }
  return false;
}

/** Looks at what begins with `[`. */
export function hearBracket(at: i32, to: i32): void {
  if (hasPrefix(at, to, "[INST]") || hasPrefix(at, to, "[/INST]")) hear(Signal.roleMarker, 50);
  else if (hasWord(at, to, "[system]") || hasWord(at, to, "[/system]")) hear(Signal.roleMarker, 30);
  else if (hasWord(at, to, "[system ") || hasWord(at, to, "[admin")) hear(Signal.roleMarker, 20);
}

/** Looks at a word that begins a line: `System:`, `Assistant:`. */
export function hearLineStart(at: i32, to: i32): void {
  if (hasWord(at, to, "system:") || hasWord(at, to, "system message:")) hear(Signal.roleMarker, 25);
  else if (hasWord(at, to, "assistant:") || hasWord(at, to, "human:")) hear(Signal.roleMarker, 15);
  else if (hasWord(at, to, "instruction:") || hasWord(at, to, "instructions:")) hear(Signal.roleMarker, 10);
}

/** Looks at what begins with `![`: a picture whose address has room for what a model is told to put there. */
export function hearImage(at: i32, to: i32): void {
  const end = min(to, at + longestImage);
  let open = at + 2;
  while (open < end && byteAt(open) !== 0x5d && byteAt(open) !== 0x5b && byteAt(open) !== 0x0a) open++;
  if (!hasPrefix(open, end, "](http")) return;
  let query = 0;
  for (let place = open + 2; place < end && byteAt(place) !== 0x29 && byteAt(place) !== 0x0a; place++) {
    const byte = byteAt(place);
    if (byte === 0x3f) query = place;
    if (query > 0 && (byte === 0x7b || byte === 0x5b || byte === 0x3c || byte === 0x24)) {
      hear(Signal.image, 40);
      return;
    }
    if (query > 0 && place - query === 60) hear(Signal.image, 15);
  }
}
