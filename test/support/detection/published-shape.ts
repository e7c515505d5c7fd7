import { crc32 } from "node:zlib";
import type { Credential } from "./credential.ts";
import { SeededRandom } from "./random.ts";

const perShape = 10;
const word62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const alphabets = {
  word62,
  word: `${word62}${word62}_`,
  letters: word62.slice(10),
  hex: "0123456789abcdef",
  upper: "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
  digits: "0123456789",
} as const;

type Part = string | readonly [alphabet: keyof typeof alphabets, length: number];
type Shape = readonly [kind: string, prefix: readonly [string, string], ...rest: readonly Part[]];

/** As vendors publish them; the prefix is in two pieces, so that no scanner takes this file for a credential. */
const shapes: readonly Shape[] = [
  ["anthropic-key", ["sk-ant-", "api03-"], ["word", 93]],
  ["anthropic-key", ["sk-ant-", "admin01-"], ["word", 93]],
  ["openrouter-key", ["sk-or-", "v1-"], ["hex", 64]],
  ["openai-key", ["sk-", "proj-"], ["word", 120]],
  ["openai-key", ["sk-", "svcacct-"], ["word", 120]],
  ["openai-key", ["sk-", ""], ["word62", 48]],
  ["google-key", ["AI", "zaSy"], ["word", 33]],
  ["google-key", ["ya29", ".a0"], ["word", 60]],
  ["google-key", ["GOC", "SPX-"], ["word", 28]],
  ["google-key", ["1/", "/0"], ["word", 60]],
  ["hugging-face-token", ["hf", "_"], ["letters", 34]],
  ["groq-key", ["gsk", "_"], ["word62", 52]],
  ["xai-key", ["xai", "-"], ["word62", 80]],
  ["replicate-token", ["r8", "_"], ["word62", 37]],
  ["perplexity-key", ["pplx", "-"], ["word62", 48]],
  ["nvidia-key", ["nvapi", "-"], ["word", 64]],
  ["langsmith-key", ["lsv2", "_pt_"], ["hex", 32], "_", ["hex", 10]],
  ["pinecone-key", ["pcsk", "_"], ["word", 70]],
  ["pypi-token", ["pypi", "-AgEIcHlwaS5vcmc"], ["word", 120]],
  ["rubygems-key", ["rubygems", "_"], ["hex", 48]],
  ["gitlab-token", ["glpat", "-"], ["word", 20]],
  ["gitlab-token", ["glrt", "-"], ["word", 20]],
  ["gitlab-token", ["gldt", "-"], ["word", 20]],
  ["docker-token", ["dckr", "_pat_"], ["word", 27]],
  ["buildkite-token", ["bkua", "_"], ["hex", 40]],
  ["stripe-key", ["sk", "_live_"], ["word62", 24]],
  ["stripe-key", ["sk", "_live_"], ["word62", 99]],
  ["stripe-key", ["rk", "_live_"], ["word62", 99]],
  ["stripe-key", ["sk", "_test_"], ["word62", 24]],
  ["stripe-key", ["whsec", "_"], ["word62", 32]],
  ["shopify-token", ["shpat", "_"], ["hex", 32]],
  ["shopify-token", ["shpss", "_"], ["hex", 32]],
  ["square-token", ["sq0", "atp-"], ["word", 22]],
  ["square-token", ["sq0", "csp-"], ["word", 43]],
  ["easypost-key", ["EZ", "AK"], ["word62", 54]],
  ["shippo-token", ["shippo", "_live_"], ["hex", 40]],
  ["sendgrid-key", ["SG", "."], ["word", 22], ".", ["word", 43]],
  ["mailgun-key", ["key", "-"], ["hex", 32]],
  ["brevo-key", ["xkey", "sib-"], ["hex", 64], "-", ["word62", 16]],
  ["twilio-key", ["S", "K"], ["hex", 32]],
  ["digitalocean-token", ["dop", "_v1_"], ["hex", 64]],
  ["digitalocean-token", ["doo", "_v1_"], ["hex", 64]],
  ["databricks-token", ["da", "pi"], ["hex", 32]],
  ["fly-token", ["fo1", "_"], ["word", 43]],
  ["fly-token", ["fm2", "_"], ["word62", 160]],
  ["netlify-token", ["nfp", "_"], ["word62", 36]],
  ["vercel-token", ["vcp", "_"], ["word62", 56]],
  ["supabase-key", ["sbp", "_"], ["hex", 40]],
  ["supabase-key", ["sb", "_secret_"], ["word", 31]],
  ["planetscale-token", ["pscale", "_tkn_"], ["word", 43]],
  ["tailscale-key", ["tskey", "-auth-"], ["word62", 11], "CNTRL-", ["word62", 30]],
  ["pulumi-token", ["pul", "-"], ["hex", 40]],
  ["vault-token", ["hvs", "."], ["word", 95]],
  ["vault-token", ["hvb", "."], ["word", 120]],
  ["doppler-token", ["dp", ".pt."], ["word62", 43]],
  ["sentry-token", ["sntrys", "_"], ["word62", 120]],
  ["sentry-token", ["sntryu", "_"], ["hex", 64]],
  ["grafana-token", ["glsa", "_"], ["word62", 32], "_", ["hex", 8]],
  ["new-relic-key", ["NRAK", "-"], ["upper", 27]],
  ["dynatrace-token", ["dt0c01", "."], ["upper", 24], ".", ["upper", 64]],
  ["posthog-key", ["phx", "_"], ["word62", 43]],
  ["linear-key", ["lin", "_api_"], ["word62", 40]],
  ["notion-token", ["secret", "_"], ["word62", 43]],
  ["notion-token", ["ntn", "_"], ["word62", 46]],
  ["figma-token", ["figd", "_"], ["word", 40]],
  ["airtable-token", ["p", "at"], ["word62", 14], ".", ["hex", 64]],
  ["atlassian-token", ["ATA", "TT3"], ["word", 180]],
  ["postman-key", ["PM", "AK-"], ["hex", 24], "-", ["hex", 34]],
  ["slack-token", ["xox", "p-"], ["digits", 12], "-", ["word62", 24]],
  ["slack-token", ["xapp", "-1-"], ["upper", 11], "-", ["hex", 64]],
  ["github-token", ["github", "_pat_"], ["word62", 22], "_", ["word62", 59]],
  ["github-token", ["ghu", "_"], ["word62", 36]],
  ["github-token", ["ghr", "_"], ["word62", 76]],
  ["private-key", ["AGE-SECRET", "-KEY-1"], ["upper", 58]],
  ["azure-key", ["ab1", "8Q~"], ["word62", 34]],
  ["discord-token", ["MTA", "4"], ["word62", 22], ".", ["word62", 6], ".", ["word62", 38]],
  ["telegram-token", ["5", "123456789:AA"], ["word62", 33]],
  ["terraform-token", ["A", "b3"], ["word62", 11], ".atlasv1.", ["word62", 67]],
  ["heroku-key", ["HRKU", "-AA"], ["word", 58]],
  ["gateway-key", ["agw", "_"], ["word", 43]],
  ["onepassword-token", ["ops", "_eyJ"], ["word62", 200]],
];

export const shapeCount: number = shapes.length;

/** Credentials of nothing, of each published shape, the same in every run. */
export function publishedCredentials(): readonly Credential[] {
  const random = new SeededRandom(17);
  return shapes.flatMap(([kind, prefix, ...rest]) =>
    Array.from({ length: perShape }, () => ({
      kind,
      text: prefix.join("") + rest.map((part) => made(part, random)).join(""),
    })),
  );
}

function made(part: Part, random: SeededRandom): string {
  return typeof part === "string" ? part : random.letters(part[1], alphabets[part[0]]);
}

/** A token whose last six characters are the CRC-32 in base62 of the 30 before them, as GitHub and npm write theirs. */
export function checkedToken(prefix: string, body: string): string {
  let rest = crc32(body);
  let digits = "";
  for (let count = 0; count < 6; count++) {
    digits = `${word62[rest % 62]}${digits}`;
    rest = Math.floor(rest / 62);
  }
  return `${prefix}${body}${digits}`;
}
