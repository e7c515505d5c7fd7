import { isReservedHeader } from "../kernel/upstream-config.ts";
import { type FaultList, quoteInput } from "./fault.ts";
import type { Draft } from "./field.ts";
import { refuseRepeats } from "./repetition.ts";
import type { UpstreamForm } from "./schema.ts";

const secretHeader = /^(?:authorization|proxy-authorization|cookie|(?:x-)?api-key|.*-(?:token|secret|api-key))$/i;
const secretVariable = /(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|PRIVATE_KEY)$/i;

/** The part of `checkRules` about upstreams. */
export function checkUpstreams(upstreams: Draft<readonly UpstreamForm[]>, faults: FaultList): void {
  const at = (index: number): string => `upstreams[${index}]`;
  const names = upstreams?.map((upstream) => upstream?.name) ?? [];
  refuseRepeats(names, (index) => `${at(index)}.name`, "a name of its own", faults);
  const prefixes = upstreams?.map((upstream) => upstream?.tool_prefix || undefined) ?? [];
  refuseRepeats(prefixes, (index) => `${at(index)}.tool_prefix`, "a prefix of its own", faults);
  upstreams?.forEach((upstream, index) => {
    if (upstream === undefined) return;
    checkTimeouts(upstream, at(index), faults);
    checkVariables(upstream, at(index), faults);
    checkHeaders(upstream, at(index), faults);
  });
}

function checkTimeouts(upstream: NonNullable<Draft<UpstreamForm>>, path: string, faults: FaultList): void {
  const { timeout_ms: usual, max_timeout_ms: most } = upstream;
  if (usual === undefined || most === undefined || usual <= most) return;
  faults.add(`${path}.max_timeout_ms`, `expected at least \`timeout_ms\` (${usual}), got ${most}`);
}

function checkVariables(upstream: NonNullable<Draft<UpstreamForm>>, path: string, faults: FaultList): void {
  const literal = Object.keys(upstream.env ?? {});
  const copied = upstream.env_from ?? [];
  const pathOf = (index: number): string =>
    index < literal.length ? `${path}.env.${literal[index]}` : `${path}.env_from[${index - literal.length}]`;
  refuseRepeats([...literal, ...copied], pathOf, "each variable once", faults);
  for (const name of literal.filter((name) => secretVariable.test(name))) {
    faults.add(`${path}.env.${name}`, "expected a secret to come by `env_from`, got its value");
  }
}

function checkHeaders(upstream: NonNullable<Draft<UpstreamForm>>, path: string, faults: FaultList): void {
  const literal = Object.keys(upstream.headers ?? {});
  const names = [...literal, ...Object.keys(upstream.headers_env ?? {})];
  const pathOf = (index: number): string =>
    `${path}.${index < literal.length ? "headers" : "headers_env"}.${names[index]}`;
  refuseRepeats(
    names.map((name) => name.toLowerCase()),
    pathOf,
    "each header once",
    faults,
  );
  names.forEach((name, index) => {
    if (!isReservedHeader(name)) return;
    faults.add(pathOf(index), `expected a header of the operator's, got ${quoteInput(name)}, which the gateway sets`);
  });
  for (const name of literal.filter((name) => secretHeader.test(name))) {
    faults.add(`${path}.headers.${name}`, "expected a secret to come by `headers_env`, got its value");
  }
}
