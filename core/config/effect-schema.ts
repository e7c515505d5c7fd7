import type { TUnsafe } from "@sinclair/typebox";
import { type ActionEffect, actionEffects, strictestEffect } from "../action/action-fact.ts";
import { effectAt, type UnstatedReason, unstatedReason } from "../fact/effect-statement.ts";
import { type EffectTable, shippedEffectTable } from "../fact/effect-table.ts";
import type { Draft } from "./check.ts";
import type { FaultList } from "./fault.ts";
import { map } from "./schema.ts";
import { Type } from "./type.ts";

/** The effect, alone or with the shipped one that it is weaker than. */
export type EffectForm = ActionEffect | { readonly effect: ActionEffect; readonly lowers: ActionEffect };

const effectWord = { type: "string", enum: actionEffects } as const;
const words = actionEffects.map((effect) => `\`${effect}\``).join(", ");

const statedEffect: TUnsafe<EffectForm> = Type.Unsafe<EffectForm>({
  anyOf: [
    effectWord,
    {
      type: "object",
      properties: { effect: effectWord, lowers: effectWord },
      required: ["effect", "lowers"],
      additionalProperties: false,
    },
  ],
  description:
    "The effect. Where the gateway ships a stricter one for exactly this key: `{ effect: read, lowers: network }`, with the shipped effect in `lowers`.",
  expected: `one of ${words}, or \`{ effect, lowers }\` of two of them`,
});

export const effectsSchema = map(
  "What programs on command lines do, beside the shipped table: `mytool`, a subcommand (`kubectl get`), or a flag, which only makes the effect stricter (`kubectl get --raw`). What the table says of other subcommands and flags stays.",
  "effect_key",
  statedEffect,
  { default: {} },
);

const reasons: Readonly<Record<UnstatedReason, string>> = {
  wrapper: "a program that does not run another one: that one is judged",
  checked: "another program: the words of this one are judged by the gateway's own code",
};

/**
 * The part of `checkRules` about the effects of programs. A shipped effect is lowered only where the file repeats it: an entry
 * must not weaken a judgement by accident, or unnoticed by whoever reads the change.
 */
export function checkEffects(stated: Draft<Record<string, EffectForm>>, faults: FaultList): void {
  const entries = Object.entries(stated ?? {});
  if (entries.length === 0) return;
  const table = shippedEffectTable();
  for (const [key, form] of entries) if (form !== undefined) checkEffect(table, key, form as EffectForm, faults);
}

function checkEffect(table: EffectTable, key: string, form: EffectForm, faults: FaultList): void {
  const place = `effects.${key}`;
  const reason = unstatedReason(table, key);
  if (reason !== undefined) {
    faults.add(place, `expected ${reasons[reason]}, got \`${key}\``);
    return;
  }
  const { effect, lowers } = typeof form === "string" ? { effect: form, lowers: undefined } : form;
  const shipped = effectAt(table, key);
  const isWeaker = shipped !== undefined && strictestEffect([shipped, effect]) !== effect;
  if (isWeaker && lowers !== shipped) {
    const got = lowers === undefined ? `\`${effect}\`` : `\`lowers: ${lowers}\``;
    faults.add(
      place,
      `expected \`{ effect: ${effect}, lowers: ${shipped} }\`, because the shipped effect is stricter, got ${got}`,
    );
  } else if (!isWeaker && lowers !== undefined) {
    faults.add(place, `expected \`${effect}\` alone, because it lowers no shipped effect, got \`lowers: ${lowers}\``);
  }
}

/** The checked effects as parsers take them. */
export function buildEffects(forms: Readonly<Record<string, EffectForm>>): Readonly<Record<string, ActionEffect>> {
  const entries = Object.entries(forms).map(([key, form]) => [key, typeof form === "string" ? form : form.effect]);
  return Object.fromEntries(entries);
}
