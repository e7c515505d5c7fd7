import { randomBytes } from "node:crypto";

/** DER by hand, so that a test can also make what no tool would. */
export function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const value = Buffer.concat(parts);
  const size = value.length;
  const bytes = size < 0x80 ? [] : size < 0x100 ? [size] : [size >> 8, size & 0xff];
  if (size > 0xffff) throw new RangeError(`expected at most 65535 bytes, got ${size}`);
  const length = bytes.length === 0 ? [size] : [0x80 | bytes.length, ...bytes];
  return Buffer.concat([Buffer.from([tag, ...length]), value]);
}

export function sequence(...parts: readonly Uint8Array[]): Buffer {
  return der(0x30, ...parts);
}

export function set(...parts: readonly Uint8Array[]): Buffer {
  return der(0x31, ...parts);
}

/** `[number]`, around other values. */
export function tagged(number: number, ...parts: readonly Uint8Array[]): Buffer {
  return der(0xa0 | number, ...parts);
}

export function integer(value: number | Uint8Array): Buffer {
  const bytes = typeof value === "number" ? Uint8Array.of(value) : value;
  return der(0x02, (bytes[0] ?? 0) > 0x7f ? Buffer.concat([Uint8Array.of(0), bytes]) : bytes);
}

/** A random INTEGER of nine bytes; the first is 1, since DER allows no zeros before. */
export function serialNumber(): Buffer {
  return integer(Buffer.concat([Uint8Array.of(1), randomBytes(8)]));
}

export function octets(value: Uint8Array): Buffer {
  return der(0x04, value);
}

export function bits(value: Uint8Array): Buffer {
  return der(0x03, Uint8Array.of(0), value);
}

export function truth(): Buffer {
  return der(0x01, Uint8Array.of(0xff));
}

export function utf8(text: string): Buffer {
  return der(0x0c, Buffer.from(text));
}

export function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split(".").map(Number);
  return der(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

/** UTCTime: for certificates, up to 2049. */
export function utcTime(date: Date): Buffer {
  return der(0x17, Buffer.from(`${digits(date).slice(2)}Z`));
}

export function generalizedTime(date: Date): Buffer {
  return der(0x18, Buffer.from(`${digits(date)}Z`));
}

function digits(date: Date): string {
  return date.toISOString().replace(/\D/g, "").slice(0, 14);
}

function base128(value: number): readonly number[] {
  const low = [value & 0x7f];
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) low.unshift(0x80 | (rest & 0x7f));
  return low;
}
