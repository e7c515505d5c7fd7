/** Reads an IPv4 address of four decimal numbers without leading zeros; undefined for any other text. */
export function ipv4Bytes(text: string): readonly number[] | undefined {
  const parts = text.split(".", 5);
  if (parts.length !== 4 || text.length > 15) return undefined;
  const bytes = parts.map(octet);
  return bytes.includes(-1) ? undefined : bytes;
}

const zero = 0x30;
const nine = 0x39;

/** Returns the number of one to three digits without leading zeros, or -1. */
export function octet(text: string): number {
  if (text.length === 0 || text.length > 3 || (text.length > 1 && text.startsWith("0"))) return -1;
  let value = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < zero || code > nine) return -1;
    value = value * 10 + code - zero;
  }
  return value > 255 ? -1 : value;
}

const maxIpv6Text = 45;

/** Reads an IPv6 address as RFC 4291 writes it, without brackets and without a zone id; undefined for any other text. */
export function ipv6Bytes(text: string): readonly number[] | undefined {
  if (text.length > maxIpv6Text || text.length < 2) return undefined;
  const gap = text.indexOf("::");
  if (gap === -1) {
    const whole = groupBytes(text, true);
    return whole?.length === 16 ? whole : undefined;
  }
  const head = groupBytes(text.slice(0, gap), false);
  const tail = groupBytes(text.slice(gap + 2), true);
  // The gap stands for one group at least.
  if (head === undefined || tail === undefined || head.length + tail.length > 14) return undefined;
  return [...head, ...new Array<number>(16 - head.length - tail.length).fill(0), ...tail];
}

/** Reads groups of up to four hexadecimal digits between colons, the last one perhaps an IPv4 address. */
function groupBytes(text: string, mayEndInIpv4: boolean): readonly number[] | undefined {
  if (text === "") return [];
  const bytes: number[] = [];
  const groups = text.split(":", 9);
  for (const [at, group] of groups.entries()) {
    const ipv4 = mayEndInIpv4 && at === groups.length - 1 ? ipv4Bytes(group) : undefined;
    const value = ipv4 === undefined ? hexValue(group) : 0;
    if (value === -1) return undefined;
    bytes.push(...(ipv4 ?? [value >> 8, value & 0xff]));
  }
  return bytes.length > 16 ? undefined : bytes;
}

/** Returns the value of one to four hexadecimal digits, or -1. */
function hexValue(text: string): number {
  if (text.length === 0 || text.length > 4) return -1;
  let value = 0;
  for (let at = 0; at < text.length; at++) {
    const digit = "0123456789abcdef".indexOf(text.charAt(at).toLowerCase());
    if (digit === -1) return -1;
    value = value * 16 + digit;
  }
  return value;
}
