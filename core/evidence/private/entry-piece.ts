import type { Random } from "../../action/id.ts";
import { encodeBytes } from "../../store/value-encoding.ts";
import { cipherKeyBytes, encryptBytes, nonceBytes, openBytes } from "../key/wrapping-key.ts";
import { pieceKey } from "../record/key-space.ts";
import type { Reader } from "../record/store-view.ts";

const purpose = "evidence-piece-v1";
const placePattern = /^(?<group>\d{16}-[0-9a-f]{32}) (?<count>\d{1,6})$/;

/** Draws the key of a group: nothing opens its pieces but what the entry of their record holds. */
export function drawPieceKey(random: Random): Uint8Array {
  return Uint8Array.from(random(cipherKeyBytes));
}

/** Seals a piece for the place that it has in the store: its bytes as the store keeps them. */
export function sealPiece(key: Uint8Array, at: string, plain: Uint8Array, random: Random): Uint8Array {
  return encodeBytes(encryptBytes(key, random(nonceBytes), sealedPlace(at), plain, 1));
}

/** The value that lies beside a record whose private fields are in pieces: where these are. */
export function piecePlace(group: string, count: number): string {
  return `${group} ${count}`;
}

/** Returns the keys of the pieces at a place; none where it is damaged. */
export function pieceKeys(tenant: string, place: string): readonly string[] {
  const { group = "", count = 0 } = placePattern.exec(place)?.groups ?? {};
  return Array.from({ length: Number(count) }, (_, index) => pieceKey(tenant, group, index));
}

/** Returns the bytes that pieces were made of; undefined where one is missing, or the key does not open it. */
export async function openPieces(
  reader: Reader,
  key: Uint8Array,
  places: readonly string[],
): Promise<Uint8Array | undefined> {
  const pieces: Uint8Array[] = [];
  for (const at of places) {
    const sealed = await reader.get(at);
    const plain = sealed && openBytes(key, sealedPlace(at), sealed);
    if (!plain) return undefined;
    pieces.push(plain);
  }
  return Buffer.concat(pieces);
}

function sealedPlace(at: string): string {
  return `${purpose}\n${at}`;
}
