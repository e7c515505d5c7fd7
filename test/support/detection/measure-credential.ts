import type { Json } from "../../../core/action/json.ts";
import { makeAction } from "../action.ts";
import type { ImmediatePolicy } from "../plugin-port.ts";
import { type Credential, credentialKinds, credentials, forms, type Holder, places } from "./credential.ts";
import { harmlessTexts } from "./harmless.ts";
import type { Share } from "./measure-personal.ts";
import { noCredentials } from "./no-credential.ts";
import { publishedCredentials } from "./published-shape.ts";

export interface CredentialMeasure {
  /** By kind: found by its own rule, in all places. */
  readonly byKind: readonly Share[];
  readonly byPlace: readonly Share[];
  /** In forms that not all are promised. */
  readonly byForm: readonly Share[];
  /** Of published shapes, by kind: found by its own rule in a sentence. */
  readonly published: readonly Share[];
  /** Harmless texts in which something was taken for a credential. */
  readonly harmed: readonly Share[];
}

/** Of credentials that leave, how many are found by their own rule; and in how many harmless texts anything is. */
export function measureCredentials(plugin: ImmediatePolicy): CredentialMeasure {
  const all = credentials();
  const found = ({ hold }: Holder, some: readonly Credential[]): readonly Credential[] =>
    some.filter(({ kind, text }) => rulesOf(plugin, hold(text)).includes(`secret-egress.${kind}`));
  const share = (holder: Holder): Share => ({ name: holder.name, count: found(holder, all).length, of: all.length });
  return {
    byKind: credentialKinds.map((name) => {
      const some = all.filter(({ kind }) => kind === name);
      const counts = places.map((place) => found(place, some).length);
      return { name, count: counts.reduce((sum, count) => sum + count), of: some.length * places.length };
    }),
    byPlace: places.map(share),
    byForm: forms.map(share),
    published: publishedShares(plugin),
    harmed: [...noCredentials(), ...harmlessTexts()].map(([name, texts]) => {
      return { name, count: texts.filter((text) => rulesOf(plugin, { text }).length > 0).length, of: texts.length };
    }),
  };
}

function publishedShares(plugin: ImmediatePolicy): readonly Share[] {
  const all = publishedCredentials();
  return [...new Set(all.map(({ kind }) => kind))].map((name) => {
    const some = all.filter(({ kind }) => kind === name);
    const count = some.filter(({ text }) =>
      rulesOf(plugin, { body: `use ${text} for it` }).includes(`secret-egress.${name}`),
    );
    return { name, count: count.length, of: some.length };
  });
}

function rulesOf(plugin: ImmediatePolicy, value: Json): readonly string[] {
  return plugin.evaluate(makeAction({ arguments: value })).findings.map(({ rule }) => rule);
}
