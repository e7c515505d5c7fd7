import { Host } from "@extism/as-pdk";
import { detect, isSecretName, Kind, looksRandom, setLeastEntropy } from "./detector";
import { hasPrefix, openText, textBetween } from "./text";
import { depthNow, pointerOf, stepEnd, stepIs, stepStart, walk } from "./walk";

const mostFindings: i32 = 16;
const longestPointer: i32 = 1_000;

let decision = "block";
let wanted: i32 = Kind.all;
let isCall = false;
let found = "";
let count: i32 = 0;
/** Below this step a name is a credential itself, and the pointer must not tell it. */
let sealedStep: i32 = i32.MAX_VALUE;

/** The gateway's entry point: credentials that leave in a call's arguments. */
export function evaluate(): i32 {
  openText(Host.input());
  walk(hear);
  const verdict = count === 0 ? "abstain" : decision;
  const answer = String.UTF8.encode(`{"decision":"${verdict}","findings":[${found}]}`);
  Host.output(Uint8Array.wrap(answer));
  return 0;
}

/** What the runtime calls where it cannot go on: a trap, which blocks. */
export function fail(_message: string | null, _file: string | null, _line: u32, _column: u32): void {
  unreachable();
}

function hear(from: i32, to: i32, isName: bool): void {
  if (stepIs(0, "settings")) {
    if (!isName) readSetting(from, to);
  } else if (depthNow() === 2 && stepIs(1, "phase") && !isName) {
    isCall = hasPrefix(from, to, "input");
  } else if (isCall && count < mostFindings && (stepIs(1, "arguments") || stepIs(1, "continuation"))) {
    if (depthNow() > 2 || !isName) judge(from, to, isName);
  }
}

function readSetting(from: i32, to: i32): void {
  if (stepIs(1, "decision")) decision = textBetween(from, to);
  else if (stepIs(1, "least_entropy")) setLeastEntropy(<i32>I32.parseInt(textBetween(from, to)));
  else if (stepIs(1, "ignore")) wanted &= ~kindOf(textBetween(from, to));
}

function judge(from: i32, to: i32, isName: bool): void {
  const last = depthNow() - 1;
  // A new name at this level: what was sealed here or below is behind us.
  if (isName && sealedStep >= last) sealedStep = i32.MAX_VALUE;
  let kinds = detect(from, to, wanted);
  if (isName) {
    if (kinds !== Kind.none) sealedStep = last;
  } else if (kinds === Kind.none && (wanted & Kind.keyword) !== 0 && stepStart(last) >= 0) {
    if (isSecretName(stepStart(last), stepEnd(last)) && looksRandom(from, to)) kinds = Kind.keyword;
  }
  for (let kind: i32 = 1; kind <= Kind.keyword; kind <<= 1) if ((kinds & kind) !== 0) report(kind);
}

function report(kind: i32): void {
  if (count >= mostFindings) return;
  const pointer = pointerOf(1, min(depthNow(), sealedStep));
  const where = pointer.length > 0 && pointer.length <= longestPointer ? `,"pointer":"${pointer}"` : "";
  const rule = `"rule":"secret-egress.${nameOf(kind)}","decision":"${decision}","message":"${messageOf(kind)}"`;
  found += `${count === 0 ? "" : ","}{${rule},"severity":"${kind === Kind.keyword ? "high" : "critical"}","risk":90${where}}`;
  count++;
}

function nameOf(kind: i32): string {
  if (kind === Kind.aws) return "aws-access-key";
  if (kind === Kind.github) return "github-token";
  if (kind === Kind.slack) return "slack-token";
  if (kind === Kind.privateKey) return "private-key";
  return kind === Kind.jwt ? "json-web-token" : "keyword-value";
}

function messageOf(kind: i32): string {
  if (kind === Kind.aws) return "the arguments hold an AWS access key";
  if (kind === Kind.github) return "the arguments hold a GitHub token";
  if (kind === Kind.slack) return "the arguments hold a Slack token";
  if (kind === Kind.privateKey) return "the arguments hold a private key";
  return kind === Kind.jwt
    ? "the arguments hold a JSON Web Token"
    : "the arguments hold a value that looks like a password or a key";
}

function kindOf(name: string): i32 {
  for (let kind: i32 = 1; kind <= Kind.keyword; kind <<= 1) if (nameOf(kind) === name) return kind;
  return Kind.none;
}
