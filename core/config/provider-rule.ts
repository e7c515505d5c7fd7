import { type Draft, didYouMeanHint } from "./check.ts";
import { checkStatements } from "./fact-schema.ts";
import { type FaultList, quoteInput } from "./fault.ts";
import type { FileForm, ProviderForm, RouteForm } from "./file-schema.ts";
import { refuseRepeats, requireEncryption } from "./repetition.ts";

/** The part of `checkRules` about model providers and routes. */
export function checkProviders(
  { providers, model_gateway: models }: NonNullable<Draft<FileForm>>,
  faults: FaultList,
): void {
  const at = (index: number): string => `providers[${index}]`;
  const names = providers?.map((provider) => provider?.name) ?? [];
  refuseRepeats(names, (index) => `${at(index)}.name`, "a name of its own", faults);
  providers?.forEach((provider, index) => {
    if (provider === undefined) return;
    checkTimeouts(provider, at(index), faults);
    checkAddress(provider, at(index), faults);
    refuseRepeats(provider.models ?? [], (model) => `${at(index)}.models[${model}]`, "each model once", faults);
  });
  checkStatements(models?.tools?.facts, "model_gateway.tools.facts", faults);
  const routes = models?.routes ?? [];
  refuseRepeats(
    routes.map((route) => route?.model),
    (index) => `model_gateway.routes[${index}].model`,
    "a model of its own",
    faults,
  );
  routes.forEach((route, index) => {
    if (route !== undefined) new RouteRule(`model_gateway.routes[${index}]`, route, providers, faults).check();
  });
}

function checkTimeouts(provider: NonNullable<Draft<ProviderForm>>, path: string, faults: FaultList): void {
  const { first_byte_timeout_ms: first, max_timeout_ms: max } = provider;
  if (first === undefined || max === undefined || first <= max) return;
  faults.add(`${path}.max_timeout_ms`, `expected at least \`first_byte_timeout_ms\` (${first}), got ${max}`);
}

/** Never sends a key over the network unencrypted. */
function checkAddress(provider: NonNullable<Draft<ProviderForm>>, path: string, faults: FaultList): void {
  const { base_url: address, api_key_env: variable } = provider;
  if (typeof address === "string" && typeof variable === "string")
    requireEncryption(address, `${path}.base_url`, "api_key_env", faults);
}

/** Checks the names in one route. Silent where a value it needs was a fault already. */
class RouteRule {
  readonly #path: string;
  readonly #route: NonNullable<Draft<RouteForm>>;
  readonly #providers: Draft<readonly ProviderForm[]>;
  readonly #faults: FaultList;

  constructor(
    path: string,
    route: NonNullable<Draft<RouteForm>>,
    providers: Draft<readonly ProviderForm[]>,
    faults: FaultList,
  ) {
    this.#path = path;
    this.#route = route;
    this.#providers = providers;
    this.#faults = faults;
  }

  check(): void {
    const steps = this.#route.providers ?? [];
    const at = (index: number): string => `${this.#path}.providers[${index}]`;
    steps.forEach((step, index) => void this.#checkName(step?.name, `${at(index)}.name`));
    const { canary } = this.#route;
    const targets = [...steps, canary].map((step) => this.#target(step));
    const pathOf = (index: number): string => (index < steps.length ? at(index) : `${this.#path}.canary`);
    refuseRepeats(targets, pathOf, "each provider's model once", this.#faults);
    this.#checkWeights(steps.map((step) => step?.weight));
    this.#checkCanary();
  }

  /** `<provider>/<model>`; undefined for a canary that there is not. */
  #target(step: Draft<RouteForm["canary"] | RouteForm["providers"][number]>): string | undefined {
    const model = step?.model === null ? this.#route.model : step?.model;
    return typeof step?.name !== "string" || model === undefined ? undefined : `${step.name}/${model}`;
  }

  #checkName(name: string | undefined, path: string): void {
    if (name === undefined || this.#providers === undefined) return;
    const provider = this.#providers.find((one) => one?.name === name);
    if (provider === undefined) {
      this.#checkKnown(name, path);
      return;
    }
    if (provider.enabled === false)
      this.#faults.add(path, `expected an enabled provider, got ${quoteInput(name)}, which is not`);
    const { model } = this.#route;
    const { models } = provider;
    if (model === undefined || models === undefined || models.some((one) => one === undefined || one === model)) return;
    this.#faults.add(path, `expected a provider whose \`models\` name ${quoteInput(model)}, got ${quoteInput(name)}`);
  }

  #checkKnown(name: string, path: string): void {
    const known = this.#providers?.map((one) => one?.name) ?? [];
    if (known.includes(undefined)) return;
    const near = didYouMeanHint(
      name,
      known.filter((one) => one !== undefined),
    );
    this.#faults.add(path, `expected the name of a provider, got ${quoteInput(name)}${near}`);
  }

  #checkWeights(weights: readonly (number | null | undefined)[]): void {
    if (weights.every((weight) => weight !== null) || weights.every((weight) => typeof weight !== "number")) return;
    const without = weights.indexOf(null);
    this.#faults.add(`${this.#path}.providers[${without}]`, "expected a `weight`, got none, because others have one");
  }

  #checkCanary(): void {
    const { canary } = this.#route;
    const path = `${this.#path}.canary`;
    if (typeof canary?.name === "string") {
      this.#checkName(canary.name, `${path}.name`);
      if (canary.percent === 0) this.#faults.add(path, "expected a `percent` from 1 to 100, because `name` is given");
    } else if (canary?.name === null && canary.percent !== undefined && canary.percent > 0) {
      this.#faults.add(path, `expected a \`name\`, got none, because \`percent\` is ${canary.percent}`);
    } else if (canary?.name === null && typeof canary.model === "string") {
      this.#faults.add(path, "expected a `name`, got none, because `model` is given");
    }
  }
}
