import type { AbstractLevel } from "abstract-level";

/** A database of string keys and values: atomic batches, strictly ordered ranges. */
export type StringLevel = AbstractLevel<string | Buffer | Uint8Array, string, string>;

/** Half-open range of the keys that start with a prefix ending in `/`. */
export interface KeyRange {
  readonly gte: string;
  readonly lt: string;
}

const maxTenant = 256;

/** Throws TypeError for a name that is empty, too long or not well-formed. */
export function checkTenant(tenant: string): void {
  if (tenant.length > 0 && tenant.length <= maxTenant && tenant.isWellFormed()) return;
  throw new TypeError(`store: expected a tenant of 1 to ${maxTenant} well-formed characters`);
}

/** Prefixes of tenants seen lately; emptied when full, so that no stream of names can grow it. */
const prefixes = new Map<string, string>();
const maxPrefixes = 1_000;

/**
 * A tenant's part of the key space. Percent-encoding is injective and leaves no `/`, so no two tenants share a key. Throws as
 * `checkTenant` does.
 */
export function tenantPrefix(tenant: string): string {
  const known = prefixes.get(tenant);
  if (known !== undefined) return known;
  checkTenant(tenant);
  const prefix = `${encodeURIComponent(tenant)}/`;
  if (prefixes.size >= maxPrefixes) prefixes.clear();
  prefixes.set(tenant, prefix);
  return prefix;
}

/** Every key that starts with `prefix`, which ends in `/`. */
export function rangeOf(prefix: string): KeyRange {
  return { gte: prefix, lt: `${prefix.slice(0, -1)}0` }; // "0" follows "/"
}

/** Returns the part of a key after its last `/`. */
export function lastPart(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1);
}

/**
 * The families of keys that grow with every record, by their beginnings; the tenant comes next. No tenant's name reaches there. On
 * disk they lie in a database of their own.
 */
export const familyPrefixes = { disclosure: "{disclosure}/", piece: "{piece}/", record: "{record}/" } as const;

/** All keys of the families lie between these two; tenants whose names begin with the second have their other keys behind it. */
export const [firstFamilyKey, behindFamilies] = [familyPrefixes.disclosure, "~"] as const;

/** Begins the key of a piece, before every tenant's name: pieces lie apart, so that whoever goes through records does not read them. */
const pieceLead = " ";
const behindPieces = "!";
/** Ends the key of private fields: they lie right behind their record, so that the keys of both together only grow. */
const privateMark = "+";

/** Returns the key in the database of the records; undefined for one that lies in the other database. */
export function recordPlace(key: string): string | undefined {
  const { record, disclosure, piece } = familyPrefixes;
  if (key.startsWith(record)) return key.slice(record.length);
  if (key.startsWith(disclosure)) return key.slice(disclosure.length) + privateMark;
  if (key.startsWith(piece)) return pieceLead + key.slice(piece.length);
  return undefined;
}

/** The bounds of a range as the databases take them. */
export interface KeyBounds {
  readonly gt?: string;
  readonly gte?: string;
  readonly lt?: string;
  readonly lte?: string;
}

/** A family, as the database of the records has it among the other one's keys. */
export interface RecordFamily {
  /** Returns the key of the family; undefined for one of another family. */
  keyAt(place: string): string | undefined;
  /** Returns the bounds of the family's part of a range; undefined where it has none. */
  bounds(range: KeyBounds): KeyBounds | undefined;
}

function makeFamily(prefix: string, { lead = "", mark = "" } = {}): RecordFamily {
  const { lt: end } = rangeOf(prefix);
  const [first, last] = lead === "" ? [{ gte: behindPieces }] : [{ gte: lead }, { lt: behindPieces }];
  const rest = (bound: string): string => lead + bound.slice(prefix.length);
  return {
    keyAt: (place) => {
      if (place.startsWith(pieceLead) !== (lead !== "")) return undefined;
      if (place.endsWith(privateMark) !== (mark !== "")) return undefined;
      return prefix + place.slice(lead.length, place.length - mark.length);
    },
    bounds: ({ gt, gte, lt, lte }) => {
      const [least, most] = [gt ?? gte ?? "", lt ?? lte ?? end];
      if (least >= end || most <= prefix) return undefined;
      const after = least <= prefix ? first : gt === undefined ? { gte: rest(least) } : { gt: rest(least) + mark };
      const before = most >= end ? last : lt === undefined ? { lte: rest(most) + mark } : { lt: rest(most) };
      return { ...after, ...before };
    },
  };
}

export const recordFamily: RecordFamily = makeFamily(familyPrefixes.record);
export const pieceFamily: RecordFamily = makeFamily(familyPrefixes.piece, { lead: pieceLead });
/** In the order of their keys. */
export const recordFamilies: readonly RecordFamily[] = [
  makeFamily(familyPrefixes.disclosure, { mark: privateMark }),
  pieceFamily,
  recordFamily,
];

/** Every tenant that has a key in the store. A few look-ups each, however many keys they have. */
export async function listTenants(store: StringLevel): Promise<string[]> {
  const tenants = new Set<string>();
  for (const before of ["", ...Object.values(familyPrefixes)]) {
    for (let after = before; ; ) {
      const [key] = await store.keys({ gt: after, limit: 1 }).all();
      if (key === undefined || !key.startsWith(before)) break;
      const slash = key.indexOf("/", before.length);
      const isFamily = before === "" && key.startsWith("{");
      if (slash !== -1 && !isFamily) tenants.add(decodeURIComponent(key.slice(before.length, slash)));
      after = slash === -1 ? key : `${key.slice(0, slash)}0`; // "0" follows "/"
    }
  }
  return [...tenants];
}
