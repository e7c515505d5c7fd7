import { isBidi, isInvisible, isSelector, isTag } from "./fold";
import { hear } from "./score";
import { Signal } from "./signal";

const blackFlag: i32 = 0x1f3f4;
const longestFlag: i32 = 8;

let before: i32 = 0;
let tags: i32 = 0;
let selectors: i32 = 0;
let splits: i32 = 0;
let isTurned: bool = false;

/** Counts from the beginning of a text. */
export function beginHidden(): void {
  before = 0;
  tags = 0;
  selectors = 0;
  splits = 0;
  isTurned = false;
}

/** Takes each character that is not ASCII; `insideWord` says that a Latin word goes on around it. */
export function hearHidden(code: i32, insideWord: bool): void {
  if (isTag(code)) hearTag();
  else if (isSelector(code)) hearSelector();
  else {
    tags = 0;
    selectors = 0;
    if (isBidi(code)) hearTurn(code === 0x202d || code === 0x202e);
    else if (isInvisible(code) && insideWord) hearSplit();
  }
  before = code;
}

/** Flags of some countries end in tags; anything longer is a message. */
function hearTag(): void {
  if (tags === 0 && before === blackFlag) tags = -longestFlag;
  if (++tags === 4) hear(Signal.hiddenText, 60);
}

/** Text forced into another direction reads differently than it looks; isolated text is ordinary. */
function hearTurn(isForced: bool): void {
  if (isForced && !isTurned) hear(Signal.hiddenText, 30);
  isTurned = isTurned || isForced;
}

function hearSelector(): void {
  if (++selectors === 4) hear(Signal.hiddenText, 50);
}

function hearSplit(): void {
  splits++;
  if (splits === 2) hear(Signal.hiddenText, 15);
  else if (splits === 6) hear(Signal.hiddenText, 40);
}
