import { GatewayError } from "../../kernel/error.ts";
import type { ShownField, ShownFields } from "./build.ts";

/** A field that an export withholds. */
export interface Redaction {
  readonly seq: number;
  readonly member: "arguments" | "output";
  readonly field: string;
}

const most = 1_000;
const shape = /^(\d{1,15})\.(arguments|output)\.(.{0,512})$/su;

/** Reads `<seq>.<member>.<field>`, each. Throws INVALID_PARAMS. */
export function parseRedactions(texts: readonly string[]): readonly Redaction[] {
  if (texts.length > most) {
    throw new GatewayError("INVALID_PARAMS", `expected at most ${most} fields to redact, got ${texts.length}`);
  }
  return texts.map((text) => {
    const [, seq, member, field] = shape.exec(text) ?? [];
    if (seq === undefined || field === undefined) {
      throw new GatewayError("INVALID_PARAMS", `expected \`<seq>.<arguments|output>.<field>\`, got \`${cut(text)}\``);
    }
    return { seq: Number(seq), member: member as Redaction["member"], field };
  });
}

/** The fields with those withheld. Throws INVALID_PARAMS for one that is not there: a slip must not disclose it. */
export function withhold(
  fields: ReadonlyMap<number, ShownFields>,
  redactions: readonly Redaction[],
): ReadonlyMap<number, ShownFields> {
  const result = new Map(fields);
  for (const { seq, member, field } of redactions) {
    const shown = result.get(seq);
    const list = shown?.[member];
    if (list?.some((each) => isNamed(each, field)) !== true) {
      throw new GatewayError("INVALID_PARAMS", `no field \`${seq}.${member}.${cut(field)}\` to redact`);
    }
    const kept = list.map((each) => (isNamed(each, field) ? { commitment: each.commitment } : each));
    result.set(seq, { ...shown, [member]: kept });
  }
  return result;
}

function isNamed(field: ShownField, name: string): boolean {
  return "name" in field && field.name === name;
}

function cut(text: string): string {
  return text.slice(0, 64).toWellFormed();
}
