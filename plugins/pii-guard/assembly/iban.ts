import { found, isWanted } from "./found";
import { Kind } from "./kind";
import { Bits, bitsAt, blankAt, byteAt, isDigit, isWordAt } from "./span";

/** Countries and the lengths of their numbers, as the registry of the IBAN has them. */
const registry: string =
  "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29ES24FI18FK18FO18FR27GB22GE22" +
  "GI23GL18GR27GT28HN28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20MR27MT31" +
  "MU30NI28NL18NO15OM23PK24PL28PS29PT25QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24TR26UA29VA22VG24XK20YE30";

const alphabet: i32 = 26;
const lengths = new StaticArray<u8>(alphabet * alphabet);

for (let at = 0; at < registry.length; at += 4) {
  const country = (registry.charCodeAt(at) - 0x41) * alphabet + registry.charCodeAt(at + 1) - 0x41;
  lengths[country] = <u8>((registry.charCodeAt(at + 2) - 0x30) * 10 + registry.charCodeAt(at + 3) - 0x30);
}

/** An account number that begins here, whole or in groups of four: where it ends, or 0. */
export function ibanAt(from: i32): i32 {
  if (!isWanted(Kind.iban) || !isDigit(byteAt(from + 2)) || !isDigit(byteAt(from + 3))) return 0;
  if ((bitsAt(from) & bitsAt(from + 1) & Bits.upper) === 0) return 0;
  const length: i32 = lengths[(byteAt(from) - 0x41) * alphabet + byteAt(from + 1) - 0x41];
  if (length === 0) return 0;
  const to = endOf(from, length);
  return to > 0 ? found(Kind.iban, from, to) : 0;
}

/** Reads as many characters as the country's numbers have, and checks them by ISO 7064 (mod 97-10). */
function endOf(from: i32, length: i32): i32 {
  let rest: u32 = 0;
  let at = from;
  for (let index = 0; index < length; index++) {
    if (index > 0 && (index & 3) === 0) at += blankAt(at);
    const value = valueAt(at++);
    if (value < 0) return 0;
    if (index >= 4) rest = (rest * (value > 9 ? 100 : 10) + value) % 97;
  }
  if (isWordAt(at)) return 0;
  return (rest * 1_000_000 + headNumber(from)) % 97 === 1 ? at : 0;
}

/** Country and check digits, which go to the end: six digits. */
function headNumber(from: i32): u32 {
  return <u32>(valueAt(from) * 10_000 + valueAt(from + 1) * 100 + valueAt(from + 2) * 10 + valueAt(from + 3));
}

function valueAt(at: i32): i32 {
  const bits = bitsAt(at);
  if ((bits & Bits.digit) !== 0) return byteAt(at) - 0x30;
  return (bits & Bits.upper) !== 0 ? byteAt(at) - 0x37 : -1;
}
