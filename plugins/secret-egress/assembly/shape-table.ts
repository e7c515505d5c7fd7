import { Bytes } from "./byte-class";
import { addKind, azure, github, privateKey, slack, telegram } from "./kind";

/** Judges what stands behind a prefix, beside its bytes and their number. */
export enum Rule {
  /** Counts unless it looks like a placeholder. */
  plain,
  /** Counts unless it is crossed out: also with words in it. */
  lenient,
  /** The last six of 36 characters are check digits of those before: CRC-32 in base62. */
  checked,
  /** 14 characters, a dot, and 64 of hexadecimal. */
  airtable,
  /** A number of 8 to 10 digits, a colon and `AA`. */
  telegram,
  /** Nothing has to follow. */
  alone,
}

/** A prefix that a vendor publishes, and what follows it. */
export class Shape {
  /** Index of the next shape that begins alike; -1 at the end. */
  next: i32 = -1;

  constructor(
    public kind: i32,
    public prefix: string,
    public bytes: u8,
    public least: i32,
    /** 0: no limit. */
    public most: i32,
    public rule: Rule,
  ) {}
}

export const shapes: Shape[] = [];

/** `prefixes` are separated by blanks. */
function add(kind: i32, prefixes: string, bytes: u8, least: i32, most: i32 = 0, rule: Rule = Rule.plain): void {
  const each = prefixes.split(" ");
  for (let index = 0; index < each.length; index++) {
    shapes.push(new Shape(kind, each[index], bytes, least, most, rule));
  }
}

function named(rule: string, phrase: string, prefixes: string, bytes: u8, least: i32, most: i32 = 0): void {
  add(addKind(rule, phrase), prefixes, bytes, least, most);
}

// Of shapes that begin alike the longer comes first.

add(github, "github_pat_", Bytes.word, 22);
add(github, "ghp_ gho_ ghu_ ghs_ ghr_", Bytes.alphanumeric, 36, 0, Rule.checked);
add(github, "ghs_", Bytes.dotted, 60);
add(slack, "xapp- xoxe.xoxp- xoxe.xoxb-", Bytes.word, 20, 0, Rule.lenient);
add(slack, "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs-", Bytes.word, 20, 0, Rule.lenient);
add(slack, "hooks.slack.com/services/T", Bytes.word, 7, 0, Rule.lenient);
add(slack, "hooks.slack.com/workflows/T hooks.slack.com/triggers/T", Bytes.word, 7);
add(privateKey, "AGE-SECRET-KEY-1 AGE-SECRET-KEY-PQ-1", Bytes.upper, 50);
add(privateKey, "PuTTY-User-Key-File-", Bytes.alphanumeric, 1, 1, Rule.alone);
add(azure, "AccountKey=", Bytes.base64, 80);
add(azure, "SharedAccessKey=", Bytes.base64, 40);
add(telegram, "bot", Bytes.word, 0, 0, Rule.telegram);

// Models
named("anthropic-key", "a key of Anthropic", "sk-ant-", Bytes.word, 32);
named("openrouter-key", "a key of OpenRouter", "sk-or-", Bytes.word, 40);
named("langfuse-key", "a key of Langfuse", "sk-lf-", Bytes.word, 32);
named("openai-key", "a key of OpenAI", "sk-proj- sk-svcacct- sk-admin- sk-None-", Bytes.word, 32);
named("openai-key", "a key of OpenAI", "sk-", Bytes.alphanumeric, 32);
named("google-key", "a key of Google", "AIza", Bytes.word, 35);
named("google-key", "a key of Google", "ya29.", Bytes.dotted, 20);
named("google-key", "a key of Google", "GOCSPX- 1//0", Bytes.word, 24);
named("hugging-face-token", "a token of Hugging Face", "hf_ api_org_", Bytes.alphanumeric, 30);
named("groq-key", "a key of Groq", "gsk_", Bytes.alphanumeric, 40);
named("xai-key", "a key of xAI", "xai-", Bytes.alphanumeric, 60);
named("replicate-token", "a token of Replicate", "r8_", Bytes.alphanumeric, 36);
named("perplexity-key", "a key of Perplexity", "pplx-", Bytes.alphanumeric, 40);
named("nvidia-key", "a key of NVIDIA", "nvapi-", Bytes.word, 60);
named("cerebras-key", "a key of Cerebras", "csk-", Bytes.alphanumeric, 40);
named("together-key", "a key of Together AI", "tgp_v1_", Bytes.word, 40);
named("langsmith-key", "a key of LangSmith", "lsv2_pt_ lsv2_sk_", Bytes.word, 40);
named("pinecone-key", "a key of Pinecone", "pcsk_", Bytes.word, 50);
named("tavily-key", "a key of Tavily", "tvly-", Bytes.word, 30);
named("jina-key", "a key of Jina", "jina_", Bytes.word, 50);
named("elevenlabs-key", "a key of ElevenLabs", "sk_", Bytes.hex, 48, 48);

// Packages and source code
add(addKind("npm-token", "a token of npm"), "npm_", Bytes.alphanumeric, 36, 36, Rule.checked);
named("pypi-token", "a token of PyPI", "pypi-", Bytes.word, 50);
named("rubygems-key", "a key of RubyGems", "rubygems_", Bytes.hex, 48);
named("clojars-token", "a token of Clojars", "CLOJARS_", Bytes.hex, 60);
named("nuget-key", "a key of NuGet", "oy2", Bytes.alphanumeric, 43, 43);
named("gitlab-token", "a token of GitLab", "glpat- gldt- glrt- glptt- glft- glsoat- glcbt-", Bytes.dotted, 20);
named("gitlab-token", "a token of GitLab", "glimt- glagent- gloas- glffct- glwt- GR1348941", Bytes.dotted, 20);
named("sourcegraph-token", "a token of Sourcegraph", "sgp_", Bytes.word, 40);
named("docker-token", "a token of Docker", "dckr_pat_ dckr_oat_", Bytes.word, 24);
named("artifactory-token", "a token of Artifactory", "AKCp", Bytes.alphanumeric, 64);
named("artifactory-token", "a token of Artifactory", "cmVmdGtuO", Bytes.alphanumeric, 50);
named("buildkite-token", "a token of Buildkite", "bkua_", Bytes.hex, 40);

// Payment and trade
named("stripe-key", "a key of Stripe", "sk_live_ sk_test_ rk_live_ rk_test_ sk_org_", Bytes.alphanumeric, 16);
named("stripe-key", "a key of Stripe", "whsec_", Bytes.base64, 32);
named("shopify-token", "a token of Shopify", "shpat_ shpca_ shppa_ shpss_ shpua_", Bytes.hex, 32);
named("square-token", "a token of Square", "sq0atp- sq0csp-", Bytes.word, 22);
named("square-token", "a token of Square", "EAAA", Bytes.word, 60, 64);
named("plaid-token", "a token of Plaid", "access-production- access-sandbox- access-development-", Bytes.word, 32);
named("easypost-key", "a key of EasyPost", "EZAK EZTK", Bytes.alphanumeric, 54);
named("flutterwave-key", "a key of Flutterwave", "FLWSECK- FLWSECK_TEST-", Bytes.word, 32);
named("shippo-token", "a token of Shippo", "shippo_live_ shippo_test_", Bytes.hex, 40);
named("duffel-token", "a token of Duffel", "duffel_live_ duffel_test_", Bytes.word, 40);

// Mail and messages
named("sendgrid-key", "a key of SendGrid", "SG.", Bytes.dotted, 60);
named("mailgun-key", "a key of Mailgun", "key-", Bytes.hex, 32, 32);
named("brevo-key", "a key of Brevo", "xkeysib- xsmtpsib-", Bytes.word, 64);
named("resend-key", "a key of Resend", "re_", Bytes.word, 30, 40);
named("twilio-key", "a key of Twilio", "SK", Bytes.hex, 32, 32);
named(
  "discord-token",
  "a token of Discord",
  "discord.com/api/webhooks/ discordapp.com/api/webhooks/",
  Bytes.alphanumeric,
  17,
);
named("facebook-token", "a token of Facebook", "EAAB EAAC EAAD EAAG EAAJ EAAM", Bytes.alphanumeric, 80);

// Clouds and hosts
named("digitalocean-token", "a token of DigitalOcean", "dop_v1_ doo_v1_ dor_v1_", Bytes.hex, 64);
named("databricks-token", "a token of Databricks", "dapi", Bytes.hex, 32);
named("heroku-key", "a key of Heroku", "HRKU-", Bytes.word, 36);
named("fly-token", "a token of Fly.io", "fo1_ fm1_ fm1a_ fm1r_ fm2_", Bytes.base64, 40);
named("netlify-token", "a token of Netlify", "nfp_ nfc_ nfo_ nfu_ nfb_", Bytes.alphanumeric, 36);
named("vercel-token", "a token of Vercel", "vcp_ vci_ vca_ vcr_ vck_", Bytes.alphanumeric, 24);
named("cloudflare-token", "a token of Cloudflare", "cfut_ cfat_ cfk_", Bytes.word, 40);
named("cloudflare-token", "a token of Cloudflare", "v1.0-", Bytes.word, 160);
named("render-key", "a key of Render", "rnd_", Bytes.alphanumeric, 28);
named("supabase-key", "a key of Supabase", "sbp_", Bytes.hex, 40);
named("supabase-key", "a key of Supabase", "sbp_oauth_ sb_secret_", Bytes.word, 22);
named("planetscale-token", "a token of PlanetScale", "pscale_tkn_ pscale_pw_ pscale_oauth_", Bytes.dotted, 32);
named("tailscale-key", "a key of Tailscale", "tskey-", Bytes.word, 24);
named("pulumi-token", "a token of Pulumi", "pul-", Bytes.hex, 40);
named("prefect-key", "a key of Prefect", "pnu_ pnb_", Bytes.alphanumeric, 36);

// Safes, watchers and work
named("vault-token", "a token of Vault", "hvs. hvb. hvr.", Bytes.word, 24);
named(
  "doppler-token",
  "a token of Doppler",
  "dp.pt. dp.st. dp.ct. dp.sa. dp.said. dp.scim. dp.audit.",
  Bytes.dotted,
  40,
);
named("onepassword-token", "a token of 1Password", "ops_eyJ", Bytes.base64, 80);
named("sentry-token", "a token of Sentry", "sntrys_", Bytes.base64, 60);
named("sentry-token", "a token of Sentry", "sntryu_ sntrya_ sntryi_", Bytes.hex, 64);
named("grafana-token", "a token of Grafana", "glsa_", Bytes.word, 40);
named("grafana-token", "a token of Grafana", "glc_ eyJrIjoi", Bytes.base64, 60);
named("new-relic-key", "a key of New Relic", "NRAK- NRII- NRIQ- NRRA- NRSP-", Bytes.word, 27);
named("dynatrace-token", "a token of Dynatrace", "dt0c01. dt0s01. dt0s16.", Bytes.dotted, 80);
named("posthog-key", "a key of PostHog", "phx_ phs_", Bytes.alphanumeric, 40);
named("linear-key", "a key of Linear", "lin_api_ lin_oauth_ lin_wh_", Bytes.alphanumeric, 32);
named("notion-token", "a token of Notion", "secret_", Bytes.alphanumeric, 43, 43);
named("notion-token", "a token of Notion", "ntn_", Bytes.alphanumeric, 40);
named("figma-token", "a token of Figma", "figd_ figu_ figo_", Bytes.word, 36);
add(addKind("airtable-token", "a token of Airtable"), "pat", Bytes.alphanumeric, 14, 0, Rule.airtable);
named("atlassian-token", "a token of Atlassian", "ATATT3 ATCTT3 ATSTT3", Bytes.base64, 60);
named("atlassian-token", "a token of Atlassian", "ATBB", Bytes.alphanumeric, 32);
named("postman-key", "a key of Postman", "PMAK- PMAT-", Bytes.word, 26);
named("typeform-token", "a token of Typeform", "tfp_", Bytes.dotted, 40);
named("contentful-token", "a token of Contentful", "CFPAT-", Bytes.word, 40);
named("readme-key", "a key of ReadMe", "rdme_", Bytes.alphanumeric, 64);
named("frame-io-token", "a token of Frame.io", "fio-u-", Bytes.word, 60);
named("adafruit-key", "a key of Adafruit IO", "aio_", Bytes.alphanumeric, 28, 28);
named("infracost-key", "a key of Infracost", "ico-", Bytes.alphanumeric, 32);
named("scalingo-token", "a token of Scalingo", "tk-us-", Bytes.word, 40);
named("gateway-key", "a key of this gateway", "agw_", Bytes.word, 43, 43);
