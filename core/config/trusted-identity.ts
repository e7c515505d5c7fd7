import type { TrustedIdentity, TrustedSubject } from "../kernel/trust-policy.ts";
import type { trustSchema } from "./extension-schema.ts";
import type { FaultList } from "./fault.ts";
import type { Draft, Form } from "./field.ts";

type IdentityForm = Form<typeof trustSchema>["all_of"][number]["identity"];

/** Undefined where it is a fault, null where there is none. */
export function readIdentity(
  draft: Draft<IdentityForm>,
  path: string,
  faults: FaultList,
): TrustedIdentity | null | undefined {
  if (draft === null) return null;
  const { equal, prefix } = draft?.subject ?? {};
  if (equal === undefined || prefix === undefined) return undefined;
  if ((equal === null) === (prefix === null)) {
    const got = equal === null ? "neither" : "both";
    faults.add(`${path}.subject`, `expected either \`equal\` or \`prefix\`, got ${got}`);
    return undefined;
  }
  const subject = equal === null ? prefixSubject(prefix) : equalSubject(equal);
  const issuer = draft?.issuer;
  return issuer === undefined || subject === undefined ? undefined : { issuer, subject };
}

function prefixSubject(prefix: string | null): TrustedSubject | undefined {
  return prefix === null ? undefined : { kind: "uri", prefix };
}

function equalSubject(equal: string): TrustedSubject {
  return { kind: /^[^:@]+:/.test(equal) ? "uri" : "email", equal };
}

/** An identity that two signers cover would count as both of them: one person would be two. */
export function refuseOverlaps(
  identities: readonly (TrustedIdentity | undefined)[],
  pathOf: (index: number) => string,
  faults: FaultList,
): void {
  identities.forEach((identity, index) => {
    const earlier = identities.findIndex((other, at) => at < index && overlaps(identity, other));
    if (earlier === -1) return;
    faults.add(pathOf(index), `expected an identity of its own, got one that \`${pathOf(earlier)}\` shares`);
  });
}

function overlaps(one: TrustedIdentity | undefined, other: TrustedIdentity | undefined): boolean {
  if (one === undefined || other === undefined || one.issuer !== other.issuer) return false;
  return covers(one.subject, other.subject) || covers(other.subject, one.subject);
}

function covers(wide: TrustedSubject, narrow: TrustedSubject): boolean {
  const text = "equal" in narrow ? narrow.equal : narrow.prefix;
  return "equal" in wide ? "equal" in narrow && wide.equal === text : text.startsWith(wide.prefix);
}
