import { GatewayError } from "../action/error.ts";
import { quoteForeign } from "./file-name.ts";

const otherMirror = "try again later, or another mirror with `--url`";

/** Every check of an update that can fail, with the user's next step. */
const nextSteps = {
  root_unusable: "give the `root.json` of this repository with `--root`",
  root_other: "to begin anew with another repository, remove the state file first",
  metadata_expired: "check the clock of this machine, or ask who keeps the repository to renew it",
  metadata_unsigned: "check that `--url` and `--root` are of the same repository",
  metadata_rollback: "who answers shows an older state than before; try another mirror with `--url`",
  metadata_mismatch: otherMirror,
  metadata_malformed: "check that `--url` is a TUF repository",
  file_missing: "check that `--url` is a TUF repository with a `trusted_root.json`",
  too_large: "check that `--url` is a TUF repository",
  target_mismatch: otherMirror,
  target_malformed: "ask who keeps the repository",
} as const;

export type TufCheck = keyof typeof nextSteps;

/** TRUSTED_ROOT_REFUSED for one file; `data.check` names the check. `expected` completes "expected …". */
export function tufRefusal(check: TufCheck, file: string, expected: string, cause?: unknown): GatewayError {
  const text = `${check}: ${quoteForeign(file)}: expected ${expected}; ${nextSteps[check]}`;
  return new GatewayError("TRUSTED_ROOT_REFUSED", text, { cause, data: { check } });
}

/** The texts of the library by the check that failed: it gives most failures no class of their own. */
const texts: readonly (readonly [text: RegExp, check: TufCheck, expected: string])[] = [
  [/\bis expired\b/, "metadata_expired", "metadata that is valid still, got some that has expired"],
  [/\bwas signed by \d+\/\d+ keys\b/, "metadata_unsigned", "the signatures that the root asks for, got fewer"],
  [/\bis less than current\b|^Expected version\b|\bMissing file \S+ in new\b/, "metadata_rollback", "no older version"],
  [
    /\bdoes(?: not|n't) match\b|\bExpected (?:hash|length)\b/,
    "metadata_mismatch",
    "the version, length and digest that the metadata above it gives, got others",
  ],
];

/** Names why the library refused the metadata of a repository; `file` is the one that it asked for last. */
export function describeTufFailure(cause: unknown, file: string): GatewayError {
  const text = cause instanceof Error ? cause.message : String(cause);
  const [, check, expected] = texts.find(([shape]) => shape.test(text)) ?? [];
  const named = /\b(root|timestamp|snapshot|targets)\.json is expired\b/.exec(text)?.[1];
  if (check === undefined || expected === undefined)
    return tufRefusal("metadata_malformed", file, "signed TUF metadata, got something else", cause);
  return tufRefusal(check, named === undefined ? file : `${named}.json`, expected, cause);
}
