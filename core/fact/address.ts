import type { AddressFact } from "../action/action-fact.ts";
import { readMailbox } from "./mailbox.ts";
import { hasUnseen, misleads } from "./name-sign.ts";

const maxAddressText = 1_024;

/**
 * Reads whom an action is for: `plain` is equal for equal addresses. What cannot be read, or names several, is `odd`, and its
 * `plain` is the text. Never throws.
 */
export function readAddress(text: string): AddressFact {
  const plain = text.length > maxAddressText ? text : text.normalize("NFKC").replace(/\s+/g, " ").trim();
  const hidden =
    text.length > maxAddressText || hasUnseen(text) || plain !== text.normalize("NFC").replace(/\s+/g, " ").trim();
  if (text.length > maxAddressText || plain === "") return { kind: "other", plain, odd: true };
  const read = readMail(plain) ?? readHandle(plain) ?? readPhone(plain) ?? readAccount(plain);
  if (read === undefined) return { kind: "other", plain, odd: hidden || misleads(plain) || namesSeveral(plain) };
  return { ...read, odd: read.odd || hidden };
}

function namesSeveral(text: string): boolean {
  return /[,;]/.test(text);
}

function readMail(text: string): AddressFact | undefined {
  if (!text.includes("@") || text.startsWith("@")) return undefined;
  const isUrl = /^mailto:/i.test(text);
  const address = isUrl ? text.slice("mailto:".length) : text;
  // `?cc=` names others, and an escape is read by some alone.
  const odd = isUrl && /[?%]/.test(address);
  const mailbox = odd ? undefined : readMailbox(address);
  return mailbox === undefined ? { kind: "mail", plain: text.toLowerCase(), odd: true } : { kind: "mail", ...mailbox };
}

/** `@name`, and `@name@server` and `@name:server` of federated ones. */
function readHandle(text: string): AddressFact | undefined {
  if (!text.startsWith("@")) return undefined;
  const plain = text.toLowerCase();
  const isHandle = /^@[\p{L}\p{M}\p{N}._-]+(?:[@:][a-z0-9.-]+(?::\d{1,5})?)?$/u.test(plain);
  return { kind: "handle", plain, odd: !isHandle || plain.split(/[@:]/).some(misleads) };
}

const minDigits = 7;
const maxDigits = 15;

/** Telephone numbers, in digits alone behind the `+` where one is written. */
function readPhone(text: string): AddressFact | undefined {
  const number = text.replace(/^(?:tel|sms|callto):/i, "");
  if (!/^\+?[\d ().\-/]+$/.test(number)) return undefined;
  const digits = number.replace(/\D/g, "");
  const isMarked = number !== text || /^(?:\+|00)/.test(number) || number.includes("(");
  if (!isMarked && !/^(?:0\d+|\d{3})[ .\-/]\d{3}[ .\-/]\d{4}$/.test(number)) return undefined;
  const hasLength = digits.length >= minDigits && digits.length <= maxDigits;
  // The zero of `+49 (0)30` is dialled by some.
  const odd = !hasLength || (number.startsWith("+") && /\(0/.test(number));
  return { kind: "phone", plain: number.startsWith("+") ? `+${digits}` : digits, odd };
}

/** Account numbers and wallets: without blanks and hyphens, in upper case where letter case means nothing. */
function readAccount(text: string): AddressFact | undefined {
  const joined = text.replace(/[ -]/g, "");
  if (/^\d{6,34}$/.test(joined)) return { kind: "account", plain: joined, odd: false };
  if (/^[a-z]{2}\d{2}[a-z0-9]{8,30}$/i.test(joined))
    return { kind: "account", plain: joined.toUpperCase(), odd: false };
  if (/^0x[0-9a-f]{40}$/i.test(text) || /^bc1[a-z0-9]{8,87}$/i.test(text)) {
    return { kind: "account", plain: text.toLowerCase(), odd: false };
  }
  const isWallet = /^[13][1-9A-HJ-NP-Za-km-z]{25,34}$/.test(text);
  return isWallet ? { kind: "account", plain: text, odd: false } : undefined;
}
