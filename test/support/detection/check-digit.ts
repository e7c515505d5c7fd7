// Numbers with the check digits that belong to them, by the definitions of those who issue them.

/** ISO/IEC 7812. */
export function luhn(payload: string): string {
  const sum = [...payload].reverse().reduce((total, digit, index) => {
    const value = index % 2 === 0 ? Number(digit) * 2 : Number(digit);
    return total + (value > 9 ? value - 9 : value);
  }, 0);
  return `${payload}${(10 - (sum % 10)) % 10}`;
}

/** ISO 13616. */
export function iban(country: string, account: string): string {
  const number = [...`${account}${country}00`].map((each) => Number.parseInt(each, 36)).join("");
  return `${country}${String(98n - (BigInt(number) % 97n)).padStart(2, "0")}${account}`;
}

/** DNI of Spain of eight digits, or NIE of X, Y or Z and seven. */
export function nie(body: string): string {
  const number = Number(body.replace(/^[XYZ]/, (letter) => String("XYZ".indexOf(letter))));
  return `${body}${"TRWAGMYFPDXBNJZSQVHLCKE"[number % 23]}`;
}

/** CPF of Brazil. */
export function cpf(nine: string): string {
  const checked = [9, 10].reduce((digits) => {
    const sum = [...digits].reduce((total, digit, index) => total + Number(digit) * (digits.length + 1 - index), 0);
    return `${digits}${((sum * 10) % 11) % 10}`;
  }, nine);
  return checked.replace(/^(...)(...)(...)(..)$/, "$1.$2.$3-$4");
}

/** NIR of France: thirteen digits and a key. */
export function nir(thirteen: string): string {
  return `${thirteen}${String(97n - (BigInt(thirteen) % 97n)).padStart(2, "0")}`;
}

/** Resident identity number of China: seventeen digits and a character (ISO 7064, mod 11-2). */
export function resident(seventeen: string): string {
  const rest = [...seventeen].reduce((total, digit) => ((total + Number(digit)) * 2) % 11, 0);
  return `${seventeen}${"10X98765432"[rest]}`;
}

/** The machine-readable zone of a passport of Utopia, both lines (ICAO 9303). */
export function mrz(passport: string, born: string, sex: string, expires: string): string {
  const check = (text: string): string => {
    const value = (each: string): number => (each === "<" ? 0 : Number.parseInt(each, 36));
    return String([...text].reduce((sum, each, index) => sum + value(each) * ([7, 3, 1][index % 3] ?? 0), 0) % 10);
  };
  const optional = "<".repeat(14);
  const parts = [passport + check(passport), born + check(born), expires + check(expires), optional + check(optional)];
  const [document, birth, expiry, other] = parts;
  return `P<UTOSAMPLE<<${"NOBODY".padEnd(31, "<")}\n${document}UTO${birth}${sex}${expiry}${other}${check(parts.join(""))}`;
}
