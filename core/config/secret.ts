import { contentDigest } from "../action/canonical-json.ts";
import type { Draft } from "./check.ts";
import type { FaultList } from "./fault.ts";
import type { FileForm, UpstreamForm } from "./file-schema.ts";
import { formats } from "./format.ts";
import type { ValueOrigin } from "./gateway-config.ts";
import { readWebhookSecret } from "./gateway-config.ts";

/** Values by name, each with where it came from. */
export interface SourcedValues {
  readonly values: Readonly<Record<string, string>>;
  readonly origins: Readonly<Record<string, ValueOrigin>>;
}

/** Secrets from the environment, in the order of the file's lists. */
export interface Secrets {
  /** One a key; undefined where it could not be had. */
  readonly keyHashes: readonly (string | undefined)[];
  /** The secret of the client of `console.oidc`, or null where it has none. */
  readonly console: string | null | undefined;
  /** One an upstream: its whole environment, or all its headers. */
  readonly upstreams: readonly SourcedValues[];
  /** One a provider: its key, or null where it has none. */
  readonly providers: readonly (string | null | undefined)[];
  /** One an engine: the token of its server, or null where it has none. */
  readonly engines: readonly (string | null | undefined)[];
  /** One a witness: its headers. */
  readonly witnesses: readonly SourcedValues[];
  /** One a webhook: its secrets. */
  readonly webhooks: readonly (readonly string[])[];
  /** The headers for the collector. */
  readonly telemetry: SourcedValues;
  /** The secrets of replicas; null where the file names none. */
  readonly store: { readonly url: string | null; readonly secret: string | null; readonly host: string | null };
  /** The URL of the report database; null where the file names none. */
  readonly reports: string | null;
}

/** Key characters are those a `Bearer` token can have (RFC 6750), in a number that cannot be guessed. */
const keyText = /^[A-Za-z0-9._~+/=-]{32,512}$/;

/** Providers make these themselves. */
const clientSecret: Fitness = {
  expected: "8 to 1024 printable ASCII characters",
  test: (value) => /^[\x21-\x7e]{8,1024}$/.test(value),
};

const databaseUrl: Fitness = {
  expected: "a postgres: URL",
  test: (value) => /^postgres(?:ql)?:\/\//.test(value) && URL.canParse(value),
};
const replicaSecret: Fitness = {
  expected: "32 to 512 printable ASCII characters",
  test: (value) => /^[\x21-\x7e]{32,512}$/.test(value),
};

/** Reads every variable the file names. A missing, empty or invalid one is a fault that gives its name only. */
export function readSecrets(draft: Draft<FileForm>, env: NodeJS.ProcessEnv, faults: FaultList): Secrets {
  const reader = new Reader(env, faults);
  return {
    keyHashes: (draft?.keys ?? []).map((key, index) =>
      key === undefined ? undefined : reader.keyHash(key, `keys[${index}]`),
    ),
    console: reader.clientSecret(draft?.console?.oidc?.client_secret_env, "console.oidc.client_secret_env"),
    upstreams: (draft?.upstreams ?? []).map((upstream, index) => reader.upstream(upstream, `upstreams[${index}]`)),
    providers: (draft?.providers ?? []).map((provider, index) =>
      reader.token(provider?.api_key_env, `providers[${index}].api_key_env`),
    ),
    engines: (draft?.policy?.engines ?? []).map((engine, index) =>
      reader.token(engine?.token_env, `policy.engines[${index}].token_env`),
    ),
    witnesses: (draft?.evidence?.witnesses ?? []).map((witness, index) =>
      sortOut(reader.headers(witness?.headers_env, `evidence.witnesses[${index}]`)),
    ),
    webhooks: (draft?.approvals?.webhooks ?? []).map((webhook, index) =>
      reader.webhook(webhook?.secrets_env, `approvals.webhooks[${index}]`),
    ),
    telemetry: sortOut(reader.headers(draft?.telemetry?.headers_env, "telemetry")),
    store: {
      url: reader.fit(draft?.store?.url_env, "store.url_env", databaseUrl),
      secret: reader.fit(draft?.store?.secret_env, "store.secret_env", replicaSecret),
      host: reader.fit(draft?.store?.host_env, "store.host_env", formats.listen_host),
    },
    reports: reader.fit(draft?.reports?.url_env, "reports.url_env", databaseUrl),
  };
}

class Reader {
  readonly #env: NodeJS.ProcessEnv;
  readonly #faults: FaultList;

  constructor(env: NodeJS.ProcessEnv, faults: FaultList) {
    this.#env = env;
    this.#faults = faults;
  }

  keyHash(key: NonNullable<Draft<FileForm["keys"][number]>>, path: string): string | undefined {
    const { key_hash: hash, key_env: variable } = key;
    if (hash === undefined || variable === undefined) return undefined;
    if ((hash === null) === (variable === null)) {
      this.#faults.add(path, `expected either \`key_hash\` or \`key_env\`, got ${hash === null ? "neither" : "both"}`);
      return undefined;
    }
    if (variable === null) return hash ?? undefined;
    const text = this.#variable(variable, `${path}.key_env`, {
      expected: "a key of 32 to 512 of `A-Z a-z 0-9 . _ ~ + / = -`",
      test: (value) => keyText.test(value),
    });
    return text === undefined ? undefined : contentDigest(text);
  }

  upstream(upstream: Draft<UpstreamForm>, path: string): SourcedValues {
    const env = pairs(upstream?.env).map(([name, value]) => literal(name, value));
    const headers = pairs(upstream?.headers).map(([name, value]) => literal(name, value));
    const copied = (upstream?.env_from ?? []).map((name, index) =>
      this.#sourced(name, name, `${path}.env_from[${index}]`, formats.argument),
    );
    return sortOut([...env, ...headers, ...copied, ...this.headers(upstream?.headers_env, path)]);
  }

  /** Reads what goes behind `Bearer`, or into a header of its own. */
  token(variable: string | null | undefined, path: string): string | null | undefined {
    return typeof variable === "string" ? this.#variable(variable, path, formats.provider_key) : variable;
  }

  clientSecret(variable: string | null | undefined, path: string): string | null | undefined {
    return typeof variable === "string" ? this.#variable(variable, path, clientSecret) : variable;
  }

  fit(variable: string | null | undefined, path: string, fitness: Fitness): string | null {
    return typeof variable === "string" ? (this.#variable(variable, path, fitness) ?? null) : null;
  }

  webhook(variables: readonly (string | undefined)[] | undefined, path: string): string[] {
    const secrets = (variables ?? []).map((variable, index) =>
      variable === undefined
        ? undefined
        : this.#variable(variable, `${path}.secrets_env[${index}]`, {
            expected: "`whsec_` and the base64 of 24 to 64 bytes",
            test: (value) => readWebhookSecret(value) !== undefined,
          }),
    );
    return secrets.filter((secret) => secret !== undefined);
  }

  headers(variables: Variables, path: string): (Sourced | undefined)[] {
    return pairs(variables).map(([name, variable]) =>
      this.#sourced(name, variable, `${path}.headers_env.${name}`, formats.header_value),
    );
  }

  #sourced(name: string | undefined, variable: string | undefined, path: string, format: Fitness): Sourced | undefined {
    if (name === undefined || variable === undefined) return undefined;
    const value = this.#variable(variable, path, format);
    return value === undefined ? undefined : { name, value, origin: { variable } };
  }

  #variable(name: string, path: string, { expected, test }: Fitness): string | undefined {
    const value = this.#env[name];
    if (value !== undefined && value !== "" && test(value)) return value;
    const got = value === undefined ? "no such variable" : value === "" ? "an empty one" : "an unfit value";
    this.#faults.add(path, `expected environment variable \`${name}\` to hold ${expected}, got ${got}`);
    return undefined;
  }
}

interface Sourced {
  readonly name: string;
  readonly value: string;
  readonly origin: ValueOrigin;
}

interface Fitness {
  readonly expected: string;
  test(value: string): boolean;
}

type Variables = Readonly<Record<string, string | undefined>> | null | undefined;

function sortOut(entries: readonly (Sourced | undefined)[]): SourcedValues {
  const all = entries.filter((entry) => entry !== undefined);
  return {
    values: Object.fromEntries(all.map(({ name, value }) => [name, value])),
    origins: Object.fromEntries(all.map(({ name, origin }) => [name, origin])),
  };
}

function literal(name: string, value: string | undefined): Sourced | undefined {
  return value === undefined ? undefined : { name, value, origin: "file" };
}

function pairs(map: Variables): [string, string | undefined][] {
  return Object.entries(map ?? {});
}
