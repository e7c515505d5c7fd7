import type { Random } from "../../action/id.ts";
import { encodeBytes } from "../../store/value-encoding.ts";
import { cipherKeyBytes, encryptBytes, nonceBytes, openBytes } from "../key/wrapping-key.ts";
import { pieceKey } from "../record/key-space.ts";
import type { Reader } from "../record/store-view.ts";

/** The pieces of one record's private fields, which lie in the store ahead of the record, under names of their own. */
export interface PieceGroup {
  readonly tenant: string;
  readonly chain: string;
  readonly name: string;
}

const purpose = "evidence-piece-v1";
const placePattern = /^(?<name>\d{16}-[0-9a-f]{32}) (?<count>\d{1,6})$/;

/** Draws the key of a group: nothing opens its pieces but what the entry of their record holds. */
export function drawPieceKey(random: Random): Uint8Array {
  return Uint8Array.from(random(cipherKeyBytes));
}

/** A piece's place in its group. */
interface PiecePosition {
  readonly index: number;
  readonly isLast: boolean;
}

/** Seals a piece: its bytes as the store keeps them. */
export function sealPiece(
  key: Uint8Array,
  group: PieceGroup,
  position: PiecePosition,
  plain: Uint8Array,
  random: Random,
): Uint8Array {
  return encodeBytes(encryptBytes(key, random(nonceBytes), sealedPlace(group, position), plain, 1));
}

/** The value that lies beside a record whose private fields are in pieces: where these are. */
export function piecePlace(name: string, count: number): string {
  return `${name} ${count}`;
}

/** Returns the keys of the pieces at a place; none where it is damaged. */
export function pieceKeys(tenant: string, place: string): readonly string[] {
  const { name = "", count = 0 } = placePattern.exec(place)?.groups ?? {};
  return Array.from({ length: Number(count) }, (_, index) => pieceKey(tenant, name, index));
}

/** Returns the bytes that pieces at a place were made of; undefined where one is missing, or the key does not open it. */
export async function openPieces(
  reader: Reader,
  key: Uint8Array,
  { tenant, chain }: Omit<PieceGroup, "name">,
  place: string,
): Promise<Uint8Array | undefined> {
  const { name } = placePattern.exec(place)?.groups ?? {};
  if (name === undefined) return undefined;
  const pieces: Uint8Array[] = [];
  const keys = pieceKeys(tenant, place);
  for (const [index, at] of keys.entries()) {
    const position = { index, isLast: index === keys.length - 1 };
    const sealed = await reader.get(at);
    const plain = sealed && openBytes(key, sealedPlace({ tenant, chain, name }, position), sealed);
    if (!plain) return undefined;
    pieces.push(plain);
  }
  return pieces.length === 0 ? undefined : Buffer.concat(pieces);
}

/** The place that a piece is sealed for: a group that lacks its end is noticed. */
function sealedPlace({ chain, name }: PieceGroup, { index, isLast }: PiecePosition): string {
  return `${purpose}\n${chain}\n${name}\n${index}\n${isLast ? "last" : "followed"}`;
}
