import { expect } from "chai";
import { faultsOf, loadText } from "./fixture.ts";

const env = { KEY: "sk-not-a-real-key" };
const a = "name: a, type: openai, base_url: 'https://a.example/v1', models: [m]";
const b = "name: b, type: anthropic, base_url: 'https://b.example', models: [m, n]";

function text(providers: readonly string[], routes: readonly string[] = []): string {
  const list = (entries: readonly string[]): string => entries.map((entry) => `  - {${entry}}\n`).join("");
  const table =
    routes.length === 0 ? "" : `model_gateway:\n  routes:\n${list(routes).replace(/^/gm, "  ").trimEnd()}\n`;
  return `providers:\n${list(providers)}${table}`;
}

describe("providers", () => {
  it("is the mock provider alone, which nothing leads to, where the file names none", async () => {
    const { providers, modelGateway } = await loadText("log: {}\n");
    expect(providers.map(({ name, type }) => [name, type])).to.deep.equal([["mock", "mock"]]);
    expect(modelGateway.routes).to.deep.equal([]);
  });

  it("takes the key from the environment, and says where from", async () => {
    const { providers } = await loadText(text([`${a}, api_key_env: KEY`, b]), env);
    expect(providers[0]).to.deep.include({
      type: "openai",
      baseUrl: "https://a.example/v1",
      apiKey: env.KEY,
      keyVariable: "KEY",
    });
    expect(providers[1]).to.deep.include({ type: "anthropic", apiKey: null, keyVariable: null });
  });

  it("sends a key unencrypted to this machine alone", async () => {
    for (const host of ["localhost", "127.0.0.1", "[::1]"]) {
      const local = `name: a, type: openai, base_url: 'http://${host}:1/v1', models: [m], api_key_env: KEY`;
      expect(await faultsOf(text([local]), env), host).to.deep.equal([]);
    }
    const keyless = "name: a, type: openai, base_url: 'http://a.example/v1', models: [m]";
    expect(await faultsOf(text([keyless]))).to.deep.equal([]);
    expect(await faultsOf(text([`${keyless}, api_key_env: KEY`]), env)).to.deep.equal([
      "gateway.yaml:2:39: providers[0].base_url: expected an https: URL, or one of this machine, because `api_key_env` is given",
    ]);
  });

  const faults: Readonly<Record<string, readonly [providers: readonly string[], fault: string]>> = {
    "no provider at all": [[], "1:11: providers: expected a list, got nothing"],
    "an unknown type": [
      ["name: a, type: opnai, models: [m]"],
      "2:21: providers[0].type: expected `mock`, `openai`, `responses` or `anthropic`, got `opnai` (did you mean `openai`?)",
    ],
    "no address": [
      ["name: a, type: openai, models: [m]"],
      "2:5: providers[0].base_url: expected this key, got nothing",
    ],
    "an address of a mock": [
      ["name: a, type: mock, models: [m], base_url: 'https://a.example'"],
      "2:40: providers[0].base_url: expected this key only where `type` is `openai`, `responses` or `anthropic`, got it with `mock`",
    ],
    "an address with credentials": [
      ["name: a, type: openai, base_url: 'https://u:p@a.example', models: [m]"],
      "2:39: providers[0].base_url: expected an http: or https: URL without credentials or fragment, got a string of 21 characters",
    ],
    "no models": [
      ["name: a, type: mock, models: []"],
      "2:35: providers[0].models: expected at least one entry, got an empty list (a provider without models serves nothing)",
    ],
    "a model twice": [
      ["name: a, type: mock, models: [m, m]"],
      "2:39: providers[0].models[1]: expected each model once, got `m` that `providers[0].models[0]` has",
    ],
    "a name twice": [
      [a, a],
      "3:12: providers[1].name: expected a name of its own, got `a` that `providers[0].name` has",
    ],
    "less time in all than to the first byte": [
      [`${a}, first_byte_timeout_ms: 2, max_timeout_ms: 1`],
      "2:118: providers[0].max_timeout_ms: expected at least `first_byte_timeout_ms` (2), got 1",
    ],
    "a key that is not there": [
      [`${a}, api_key_env: OTHER`],
      "2:89: providers[0].api_key_env: expected environment variable `OTHER` to hold 8 to 512 of `A-Z a-z 0-9 . _ ~ + / = -`, got no such variable",
    ],
    "a key in the file": [
      [`${a}, api_key: sk-secret`],
      "2:76: providers[0].api_key: unknown key, expected one of `name`, `type`, `enabled`, `base_url`, `api_key_env`, `models`, `first_byte_timeout_ms`, `idle_timeout_ms`, `max_timeout_ms`, `max_retries`, `max_connections`, `breaker`",
    ],
  };
  for (const [name, [providers, fault]] of Object.entries(faults)) {
    it(`refuses ${name}`, async () => {
      expect(await faultsOf(text(providers), env)).to.deep.equal([`gateway.yaml:${fault}`]);
    });
  }
});

describe("model_gateway.routes", () => {
  it("names the model as the route does unless told otherwise", async () => {
    const route =
      "model: m, providers: [{name: a, model: m-2, weight: 1}, {name: b, weight: 3}], canary: {name: b, model: c, percent: 5}, fallback: true";
    const { modelGateway } = await loadText(text([a, b], [route]));
    expect(modelGateway.routes).to.deep.equal([
      {
        model: "m",
        steps: [
          { provider: "a", model: "m-2", weight: 1 },
          { provider: "b", model: "m", weight: 3 },
        ],
        fallback: true,
        canary: { provider: "b", model: "c", percent: 5 },
      },
    ]);
  });

  const faults: Readonly<Record<string, readonly [route: string, fault: string]>> = {
    "a provider that there is not": [
      "model: m, providers: [{name: aa}]",
      "7:37: model_gateway.routes[0].providers[0].name: expected the name of a provider, got `aa` (did you mean `a`?)",
    ],
    "a provider that is not enabled": [
      "model: m, providers: [{name: off}]",
      "7:37: model_gateway.routes[0].providers[0].name: expected an enabled provider, got `off`, which is not",
    ],
    "a provider that does not expose the model": [
      "model: n, providers: [{name: b}, {name: a}]",
      "7:48: model_gateway.routes[0].providers[1].name: expected a provider whose `models` name `n`, got `a`",
    ],
    "no provider": [
      "model: m, providers: []",
      "7:29: model_gateway.routes[0].providers: expected at least one entry, got an empty list (leave the route out to serve none)",
    ],
    "the same provider's model twice": [
      "model: m, providers: [{name: a}, {name: a, model: m}]",
      "7:41: model_gateway.routes[0].providers[1]: expected each provider's model once, got `a/m` that `model_gateway.routes[0].providers[0]` has",
    ],
    "a canary that the route asks anyway": [
      "model: m, providers: [{name: a}], canary: {name: a, percent: 5}",
      "7:50: model_gateway.routes[0].canary: expected each provider's model once, got `a/m` that `model_gateway.routes[0].providers[0]` has",
    ],
    "a weight for some": [
      "model: m, providers: [{name: a, weight: 1}, {name: b}]",
      "7:52: model_gateway.routes[0].providers[1]: expected a `weight`, got none, because others have one",
    ],
    "a canary that there is not": [
      "model: m, providers: [{name: a}], canary: {name: zz, percent: 1}",
      "7:57: model_gateway.routes[0].canary.name: expected the name of a provider, got `zz`",
    ],
    "a canary without a share": [
      "model: m, providers: [{name: a}], canary: {name: b}",
      "7:50: model_gateway.routes[0].canary: expected a `percent` from 1 to 100, because `name` is given",
    ],
    "a share without a canary": [
      "model: m, providers: [{name: a}], canary: {percent: 1}",
      "7:50: model_gateway.routes[0].canary: expected a `name`, got none, because `percent` is 1",
    ],
    "a canary's model without a canary": [
      "model: m, providers: [{name: a}], canary: {model: x}",
      "7:50: model_gateway.routes[0].canary: expected a `name`, got none, because `model` is given",
    ],
  };
  for (const [name, [route, fault]] of Object.entries(faults)) {
    it(`refuses ${name}`, async () => {
      const off = "name: off, type: mock, enabled: false, models: [m]";
      expect(await faultsOf(text([a, b, off], [route]))).to.deep.equal([`gateway.yaml:${fault}`]);
    });
  }

  it("refuses two routes of one model", async () => {
    const route = "model: m, providers: [{name: a}]";
    expect(await faultsOf(text([a], [route, route]))).to.deep.equal([
      "gateway.yaml:6:15: model_gateway.routes[1].model: expected a model of its own, got `m` that `model_gateway.routes[0].model` has",
    ]);
  });
});
