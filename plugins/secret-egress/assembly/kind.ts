/** The kinds of credentials: a number each, the name of its rule, and what a message calls one. */
const rules: string[] = [];
const phrases: string[] = [];

/** Kinds that take more than a prefix to tell, or are named elsewhere; `shape-table.ts` has the others. */
export const keyword: i32 = addKind("keyword-value", "a value that looks like a password or a key");
export const aws: i32 = addKind("aws-access-key", "an AWS access key");
export const github: i32 = addKind("github-token", "a GitHub token");
export const slack: i32 = addKind("slack-token", "a Slack token");
export const privateKey: i32 = addKind("private-key", "a private key");
export const jwt: i32 = addKind("json-web-token", "a JSON Web Token");
export const azure: i32 = addKind("azure-key", "a secret of Azure");
export const discord: i32 = addKind("discord-token", "a token of Discord");
export const telegram: i32 = addKind("telegram-token", "a token of a Telegram bot");
export const terraform: i32 = addKind("terraform-token", "a token of Terraform Cloud");

export const none: i32 = -1;

/** Adds a kind and returns its number; of a rule that is there, the one it has. */
export function addKind(rule: string, phrase: string): i32 {
  const known = rules.indexOf(rule);
  if (known >= 0) return known;
  rules.push(rule);
  return phrases.push(phrase) - 1;
}

export function kindCount(): i32 {
  return rules.length;
}

/** The number of the kind with this rule; -1 where there is none. */
export function kindOf(rule: string): i32 {
  return rules.indexOf(rule);
}

export function ruleOf(kind: i32): string {
  return rules[kind];
}

export function phraseOf(kind: i32): string {
  return phrases[kind];
}
