import { Action, abstain, definePlugin, Reader, Severity, Token, Value, Verdict } from "agent-governance-sdk/assembly";
import { isSecretName, Kind } from "./detector";
import { looksRandom, setLeastEntropy } from "./random-value";
import { search } from "./text-search";

export { evaluate } from "agent-governance-sdk/assembly";

const mostFindings: i32 = 16;

let decision = "";
let wanted: i32 = Kind.all;
let count: i32 = 0;

/** Credentials that leave in a call's arguments, or in what continues it. */
definePlugin("secret-egress", (action: Action, settings: Value): Verdict => {
  const verdict = abstain();
  if (!action.isInput) return verdict;
  decision = settings.get("/decision").text();
  setLeastEntropy(<i32>settings.get("/least_entropy").integer());
  const ignored = settings.get("/ignore").items();
  for (let index = 0; index < ignored.length; index++) wanted &= ~kindOf(ignored[index].text());
  judge(action.arguments.read(), verdict);
  judge(action.continuation.read(), verdict);
  return verdict;
});

function judge(reader: Reader, verdict: Verdict): void {
  /** Below this depth a name is a credential itself, so the pointer must not contain it. */
  let sealedDepth: i32 = i32.MAX_VALUE;
  while (count < mostFindings && reader.next()) {
    const isName = reader.token === Token.name;
    const above = reader.depth - 1;
    // A new name at this level: what was sealed here or below is done.
    if (isName && sealedDepth >= above) sealedDepth = i32.MAX_VALUE;
    const kinds = kindsAt(reader, isName);
    if (isName && kinds !== Kind.none) sealedDepth = above;
    if (kinds !== Kind.none) report(kinds, reader.pointer(min(reader.depth, sealedDepth)), verdict);
  }
}

function kindsAt(reader: Reader, isName: bool): i32 {
  const text = reader.decoded();
  const kinds = search(text, text.from !== reader.from, wanted);
  if (isName || kinds !== Kind.none || (wanted & Kind.keyword) === 0) return kinds;
  const name = reader.stepName();
  const isSecret = name !== null && isSecretName(name.from, name.to) && looksRandom(text.from, text.to);
  return isSecret ? Kind.keyword : Kind.none;
}

function report(kinds: i32, pointer: string, verdict: Verdict): void {
  for (let kind: i32 = 1; kind <= Kind.keyword && count < mostFindings; kind <<= 1) {
    if ((kinds & kind) === 0) continue;
    const severity = kind === Kind.keyword ? Severity.high : Severity.critical;
    verdict.decide(decision, nameOf(kind), messageOf(kind)).severity(severity).risk(90).at(pointer);
    count++;
  }
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
