/** Kinds of personal data; the number is the index in every table of kinds. */
export namespace Kind {
  export const email: i32 = 0;
  export const phone: i32 = 1;
  export const card: i32 = 2;
  export const iban: i32 = 3;
  export const ssn: i32 = 4;
  export const nationalId: i32 = 5;
  export const ip: i32 = 6;
  export const count: i32 = 7;
}

const names: StaticArray<string> = ["email", "phone", "card", "iban", "us-ssn", "national-id", "ip-address"];
const settings: StaticArray<string> = ["email", "phone", "card", "iban", "us_ssn", "national_id", "ip_address"];
const labels: StaticArray<string> = ["[email]", "[phone]", "[card]", "[iban]", "[ssn]", "[id]", "[ip]"];
const words: StaticArray<string> = [
  "e-mail address",
  "telephone number",
  "payment card number",
  "bank account number (IBAN)",
  "US social security number",
  "passport or identity number",
  "IP address",
];
const risks: StaticArray<i32> = [30, 30, 70, 60, 80, 80, 20];

/** The rule of a kind, without the plugin's name. */
export function ruleOf(kind: i32): string {
  return names[kind];
}

/** The name for people. */
export function wordOf(kind: i32): string {
  return words[kind];
}

/** The replacement. */
export function labelOf(kind: i32): string {
  return labels[kind];
}

export function riskOf(kind: i32): i32 {
  return risks[kind];
}

/** The setting that chooses the action for a kind. */
export function settingOf(kind: i32): string {
  return settings[kind];
}
